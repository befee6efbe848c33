// Transformer-VQ's speed against length: attention to a codebook of c codes costs 6 n c d FLOPs where causal softmax
// costs 2 n^2 d, so that tokens per second do not fall with n. Published for whole models: more than 3 times as fast as
// quadratic attention at 8k tokens and more than 12 times at 32k, with 512 codes.
#include <fmt/format.h>

#include "experiments/recipes/blocks.hpp"
#include "experiments/recipes/growth.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;

// Sweeps would make the codebook better, and no call faster.
const std::string vq = "vq:codes=512,sweeps=0", exact = "softmax";

const Description text{
    .name = "transformer-vq-speed",
    .summary = "Speed of attention to a codebook against length",
    .formula = "Attention to a codebook takes time linear in n: tokens per second do not fall with n.",
    .reference = "Lingle 2023, arXiv:2309.16354, abstract and section 5"};

std::vector<Index> lengths(RecipeSize size) {
  if (size == RecipeSize::smoke) return {64, 128};
  if (size == RecipeSize::quick) return {1024, 2048, 4096, 8192};
  return {1024, 2048, 4096, 8192, 16384, 32768};
}

std::string experiment(RecipeSize size) { return "speed:" + turns(size); }
std::string method(RecipeSize size) { return size == RecipeSize::smoke ? "vq:codes=16,sweeps=0" : vq; }

std::vector<RunRequest> runs(RecipeSize size) {
  return {{.experiment = experiment(size),
           .methods = {exact, method(size)},
           .inputs = {"gaussian"},
           .n = lengths(size),
           .causal = true,
           .precision = Precision::f32}};
}

std::vector<Figure> figures(RecipeSize size) {
  const Panel time = time_panel("time of one head", {{"experiment", experiment(size)},
                                                     {"input", "gaussian"},
                                                     {"causal", 1},
                                                     {"precision", "f32"},
                                                     {"threads", 1},
                                                     {"method", Specs{exact, method(size)}}});
  Panel speedup = time;
  speedup.title = "over softmax";
  speedup.where["method"] = method(size);
  speedup.y = "speedup";
  speedup.y_label = "times faster than softmax";
  speedup.y_scale = "log2";
  speedup.theory = "speedup_by_flops";
  speedup.slope = false;
  speedup.crossing = true;
  return {figure("transformer-vq-speed", text, "Attention to a codebook against length",
                 "One head, d = dv = 64, 512 codes, float, one thread, causal: medians with distribution-free 95 % "
                 "intervals; n^a is the fitted exponent, the line on the right is the ratio of FLOPs. Published, of "
                 "whole models: more than 3 times faster at n = 8192, more than 12 times at n = 32,768.",
                 {time, speedup})};
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  const auto n = lengths(size);
  const Index last = n.back();
  const auto samples = [&](Index length, const std::string& metric) {
    return results.array({{"method", method(size)}, {"n", length}}, metric);
  };
  const auto shortest = samples(n.front(), "speedup"), longest = samples(last, "speedup");
  std::vector<double> behind = longest;
  for (double& speedup : behind) speedup = 3 / speedup;
  return {
      exponents_below(1.1,
                      fmt::format("Up to n = {} attention to a codebook takes linear time: tokens per second do not "
                                  "fall (exponent below 1.1)",
                                  last),
                      growths(results, nlohmann::json::object(), {method(size)}, n)),
      all_below(1, fmt::format("It gains more over softmax at n = {} than at {} (ratio of speedups)", last, n.front()),
                {{"vq", median_of(ratios(shortest, longest), share_of_error_rate(1))}}),
      all_below(1,
                {fmt::format("At n = {} it is more than three times as fast as softmax (3 over the speedup)", last),
                 Verdict::Outcome::ambiguous, "Lingle 2023, arXiv:2309.16354, abstract: whole models at 8k"},
                {{"vq", median_of(behind, share_of_error_rate(1))}})};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
