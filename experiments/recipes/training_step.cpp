// A training step of attention against sequence length: time, what the backward pass costs, and what taking keys out of
// the state again does to the gradients.
#include "experiments/recipes/growth.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;

const std::string subtracting = "linear:backward=subtract";

Specs linear(RecipeSize size) {
  if (size == RecipeSize::quick) return {"performer", "linear"};
  return {"performer", "linear", "polynomial", "cosformer"};
}

Specs methods(RecipeSize size) {
  Specs all{"softmax", subtracting, "identity"};
  if (size != RecipeSize::quick) all.push_back("softmax:form=materialised");
  for (const auto& method : linear(size)) all.push_back(method);
  return all;
}

const Description text{
    .name = "training-step",
    .summary = "Time and gradients of a training step",
    .formula = "Forward and backward of linear attention take time linear in the sequence length and constant memory.",
    .reference =
        "Katharopoulos et al. 2020, arXiv:2006.16236, Fig. 1 and section 3.3.1; Choromanski et al. 2020, "
        "arXiv:2009.14794, Fig. 3"};

std::vector<Index> lengths(RecipeSize size) {
  if (size == RecipeSize::smoke) return {64, 128};
  if (size == RecipeSize::quick) return {512, 1024, 2048};
  return {512, 1024, 2048, 4096, 8192};
}

std::string timed(RecipeSize size) { return "training-step:" + turns(size); }
// For the gradients' rounding, which several inputs tell better than one.
const std::string untimed = "training-step:blocks=2,turn=0.1,pair=false";

std::vector<RunRequest> runs(RecipeSize size) {
  const RunRequest timing{.experiment = timed(size),
                          .methods = methods(size),
                          .inputs = {"gaussian"},
                          .n = lengths(size),
                          .causal = true,
                          .precision = Precision::f32};
  RunRequest rounding = timing;
  rounding.experiment = untimed;
  rounding.methods = {"linear", subtracting};
  rounding.replicates = size == RecipeSize::smoke ? 2 : 5;
  return {timing, rounding};
}

std::vector<Figure> figures(RecipeSize size) {
  const Panel time = time_panel("forward and backward",
                                {{"experiment", timed(size)},
                                 {"input", "gaussian"},
                                 {"causal", 1},
                                 {"precision", "f32"},
                                 {"threads", 1},
                                 {"method", methods(size)}},
                                "seconds per training step");
  Panel memory = time, share = time, error = time;
  memory.title = "memory beyond input, output and gradients";
  memory.y = "peak_bytes";
  memory.y_label = "peak memory in bytes";
  memory.slope = false;
  share.title = "backward over forward";
  share.y = "backward_over_forward";
  share.y_label = "time of backward / time of forward";
  share.y_scale = "linear";
  share.slope = false;
  error.title = "rounding of the gradients";
  error.where["experiment"] = untimed;
  error.where["method"] = Specs{"linear", subtracting};
  error.interval = "mean";
  error.y = "gradient_error";
  error.y_label = "relative error of float gradients";
  error.slope = false;
  return {
      figure("training-step", text, "A training step of causal attention",
             "One head, d = dv = 64, float, one thread, causal: medians with distribution-free 95 % intervals; n^a is "
             "the fitted exponent. backward=subtract takes each key out of the last state again instead of streaming "
             "the states once more: its gradients lose digits as n grows.",
             {time, memory, share, error})};
}

std::vector<double> samples(const Results& results, const std::string& method, Index n, const std::string& metric,
                            RecipeSize size) {
  return results.array({{"experiment", timed(size)}, {"method", method}, {"n", n}}, metric);
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  const auto n = lengths(size);
  std::vector<Comparison> shares, losses;
  for (const char* method : {"performer", "linear"})
    shares.push_back(
        {method, median_of(samples(results, method, n.back(), "backward_over_forward", size), share_of_error_rate(2))});
  const auto rounding = [&](const std::string& method) {
    return results.scalar({{"experiment", untimed}, {"method", method}, {"n", n.back()}}, "gradient_error");
  };
  losses.push_back(
      {fmt::format("n = {}", n.back()), ratio(rounding("linear"), rounding(subtracting), share_of_error_rate(1))});
  return {
      exponents_below(1.1,
                      {"The time of a training step of causal linear attention grows as the sequence length: exponent "
                       "below 1.1"},
                      growths(results, {{"experiment", timed(size)}}, linear(size), n)),
      all_below(
          3,
          {fmt::format("The backward pass of linear attention takes at most three times its forward pass (n = {})",
                       n.back())},
          shares),
      all_below(1,
                {"Gradients round less when the states are streamed again than when keys are taken out of the last "
                 "state (ratio of errors, float)",
                 Verdict::Outcome::pass,
                 "Choromanski et al. 2020, arXiv:2009.14794, whose published code takes keys out again"},
                losses)};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
