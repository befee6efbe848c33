// The gradients of causal linear attention as published: what they are gradients of, and what they cost. methods.md H3:
// eq. 13 to 15 are those of the numerators. Of the attention, queries and keys also move the denominators, by
// gamma_i Z_i and zeta_i; values do not. An implementation that takes eq. 13 to 15 for all of it trains on other
// gradients.
#include <fmt/format.h>

#include "experiments/recipes/growth.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;

const Specs laws{"gaussian", "ar1"};
const Specs tensors{"queries", "keys", "values"};

const Description text{.name = "gradients",
                       .summary = "Published gradients of linear attention: of its numerators, at linear cost",
                       .formula =
                           "Equations 13 to 15 are the gradients of causal linear attention, in linear time and "
                           "constant memory.",
                       .reference = "Katharopoulos et al. 2020, arXiv:2006.16236, eq. 13 to 15 (source 004)"};

std::vector<Index> lengths(RecipeSize size) {
  if (size == RecipeSize::smoke) return {32};
  if (size == RecipeSize::quick) return {64, 128, 256};
  return {64, 128, 256, 512, 1024};
}
std::vector<Index> timed_lengths(RecipeSize size) {
  if (size == RecipeSize::smoke) return {512, 1024};  // memory comes in pages
  if (size == RecipeSize::quick) return {2048, 4096, 8192};
  return {2048, 4096, 8192, 16384, 32768};
}

std::string timed(RecipeSize size) { return "training-step:" + turns(size) + ",pair=false"; }

std::vector<RunRequest> runs(RecipeSize size) {
  const RunRequest differences{.experiment = "gradients",
                               .methods = {"linear"},
                               .inputs = laws,
                               .n = lengths(size),
                               .d = {16},
                               .causal = true,
                               .replicates = size == RecipeSize::smoke ? 2 : 6};
  const RunRequest timing{.experiment = timed(size),
                          .methods = {"linear"},
                          .inputs = {"gaussian"},
                          .n = timed_lengths(size),
                          .causal = true,
                          .precision = Precision::f32};
  return {differences, timing};
}

std::vector<Figure> figures(RecipeSize size) {
  std::vector<Panel> panels;
  for (const auto& tensor : tensors)
    panels.push_back({.title = "equations 13 to 15 for the " + tensor,
                      .where = {{"experiment", "gradients"}, {"input", laws}, {"d", 16}, {"causal", 1}},
                      .x = {"n"},
                      .x_label = "sequence length n",
                      .x_scale = "log2",
                      .y = "published_error_" + tensor,
                      .y_label = "relative error against differences",
                      .y_scale = "log10",
                      .series = {"input"}});
  Panel time{.title = "forward and backward",
             .where = {{"experiment", timed(size)}, {"input", "gaussian"}, {"causal", 1}, {"precision", "f32"}},
             .x = {"n"},
             .x_label = "sequence length n",
             .x_scale = "log2",
             .y = "seconds",
             .y_label = "seconds per training step",
             .y_scale = "log10",
             .interval = "median",
             .slope = true};
  Panel memory = time;
  memory.title = "memory beyond input, output and gradients";
  memory.y = "peak_bytes";
  memory.y_label = "peak memory in bytes";
  memory.slope = false;
  panels.push_back(time);
  panels.push_back(memory);
  return {figure("gradients", text, "Gradients of causal linear attention",
                 "Equations 13 to 15 with the gradient of the numerators, against differences of the loss, d = 16: "
                 "an error of 1 and more for queries and keys, which move the denominators as well, and 1e-10, what "
                 "differences resolve, for values, which do not. Below: one head, d = 64, float, one thread.",
                 panels)};
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  constexpr double resolution = 1e-6;  // of differences: those over the bend of elu at 0 err by 5e-7 at most
  const auto errors = [&](const std::string& kind, const std::string& tensor) {
    std::vector<Bounded> all;
    for (const auto& input : laws)
      for (const Index n : lengths(size))
        for (const auto& [replicate, error] : results.scalar({{"experiment", "gradients"}, {"input", input}, {"n", n}},
                                                             fmt::format("{}_error_{}", kind, tensor)))
          all.push_back({fmt::format("{} of {}, n = {}", tensor, input, n), error, resolution});
    return all;
  };
  std::vector<Bounded> of_numerators, whole;
  std::vector<Region> published;
  for (const auto& tensor : tensors) {
    for (const Bounded& error : errors("numerator", tensor)) of_numerators.push_back(error);
    for (const Bounded& error : errors("whole", tensor)) whole.push_back(error);
    Region region{tensor, {}};
    for (const Bounded& error : errors("published", tensor))
      region.comparisons.push_back({error.what, certain(error.value)});
    published.push_back(region);
  }

  const auto n = timed_lengths(size);
  const auto at = [&](Index length) { return nlohmann::json{{"experiment", timed(size)}, {"n", length}}; };

  constexpr double state_bytes = 64 * 64 * 4;  // S of one token, in float
  const auto peak = [&](Index length) { return results.scalar(at(length), "peak_bytes").at(0); };
  const double a_token = (peak(n.back()) - peak(n.front())) / static_cast<double>(n.back() - n.front());
  using Outcome = Verdict::Outcome;
  return {
      all_at_most("Equations 13 to 15 are the gradients of the numerators (against differences, relative)",
                  of_numerators),
      below_where(resolution,
                  {"Equations 13 to 15 are the gradients of causal linear attention (against differences, "
                   "relative)",
                   Outcome::conditional},
                  published),
      all_at_most("With the denominators' part they are (against differences, relative)", whole),
      exponents_below(1.1, fmt::format("A training step takes linear time up to n = {}: exponent below 1.1", n.back()),
                      growths(results, {{"experiment", timed(size)}}, {"linear"}, n)),
      all_at_most("A training step takes constant memory: per token it adds at most a hundredth of one state S "
                  "(bytes)",
                  {{fmt::format("n = {} to {}", n.front(), n.back()), a_token, state_bytes / 100}})};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
