// Whether 1 + elu is e^x, as source 000 says in passing: exactly where x <= 0, and below it by 1 - (1 + x) e^-x above,
// 26 % at x = 1 (methods.md C1). What that is worth in an attention is held against what the exponential itself does
// there: its distance to average pooling, from which neither map is far.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <numbers>

#include "experiments/recipes/real_heads.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;

const std::string experiment = "agreement:[linear:features=exp]";
// d = 1 and q = -k = x: the kernels are (1 + x) e^-x and e^x e^-x.
const std::string opposite = fmt::format("pair:direction=axis,angle={}", std::numbers::pi);

const Description text{.name = "elu-against-exp",
                       .summary = "1 + elu against the exponential",
                       .formula = "As an activation of queries and keys, 1 + elu(x) is approximately e^x.",
                       .reference = "Su 2021, kexue.fm/archives/8338"};

Specs points(RecipeSize size) {
  if (size == RecipeSize::smoke) return {"0.5", "1"};
  return {"0.125", "0.25", "0.5", "1", "2", "4"};
}
Specs scales(RecipeSize size) {
  if (size == RecipeSize::smoke) return {"0.25", "4"};
  return {"0.25", "0.5", "1", "2", "4", "8"};
}
Specs shares(RecipeSize size) {
  if (size == RecipeSize::smoke) return {"0", "0.5"};
  return {"0", "0.05", "0.1", "0.25", "0.5", "0.75", "1"};
}
Index length(RecipeSize size) { return size == RecipeSize::smoke ? 64 : size == RecipeSize::quick ? 256 : 1024; }

std::string at(const std::string& x) { return opposite + ",length=" + x; }
std::string normal(const std::string& scale) { return "gaussian:scale=" + scale; }
std::string with_positive(const std::string& share) { return "signs:positive=" + share; }

std::vector<RunRequest> runs(RecipeSize size) {
  const RunRequest pointwise{.experiment = experiment,
                             .methods = {"linear"},
                             .inputs = {opposite},
                             .n = {2},
                             .d = {1},
                             .causal = false,
                             .sweep = {{"length", points(size)}}};
  RunRequest over_scale{.experiment = experiment,
                        .methods = {"linear", "uniform"},
                        .inputs = {"gaussian"},
                        .n = {length(size)},
                        .causal = false,
                        .sweep = {{"scale", scales(size)}},
                        .replicates = size == RecipeSize::smoke ? 2 : 6};
  RunRequest over_share = over_scale, on_heads = over_scale;
  over_share.inputs = {"signs"};
  over_share.sweep = {{"positive", shares(size)}};
  on_heads.inputs = inputs_of(telling_heads(size));
  on_heads.sweep = {};
  on_heads.replicates = 1;
  return {pointwise, over_scale, over_share, on_heads};
}

std::vector<Figure> figures(RecipeSize size) {
  const Panel pointwise{.title = "the map itself",
                        .where = {{"experiment", experiment}, {"input", opposite}, {"d", 1}},
                        .x = {"length"},
                        .x_label = "x",
                        .x_scale = "log2",
                        .y = "largest_kernel_difference",
                        .y_label = "1 - (1 + elu(x)) / exp(x)",
                        .y_scale = "log10"};
  const Panel over_share{.title = "attention, entries of scale 1",
                         .where = {{"experiment", experiment}, {"input", "signs"}, {"method", {"linear", "uniform"}}},
                         .x = {"positive"},
                         .x_label = "share of the entries of Q and K above 0",
                         .y = "relative_difference",
                         .y_label = "|A' - A| / |A|, A of exp features"};
  Panel over_scale = over_share;
  over_scale.title = "attention, half of the entries above 0";
  over_scale.where["input"] = "gaussian";
  over_scale.x = {"scale"};
  over_scale.x_label = "standard deviation of the entries of Q and K";
  over_scale.x_scale = over_scale.y_scale = "log2";
  return {figure("elu-against-exp", text, "1 + elu and the exponential",
                 fmt::format("Left: relative difference of the two maps; below 0 there is none. Then that of the "
                             "attention matrices that they make, n = {}, d = 64, with 95 % intervals over inputs; "
                             "uniform is the mean of V, as far from the attention of exponentials as its line says.",
                             length(size)),
                 {pointwise, over_share, over_scale})};
}

Samples difference(const Results& results, const std::string& method, const std::string& input) {
  return results.scalar({{"method", method}, {"input", input}}, "relative_difference");
}

Verdict judge_below_zero(const Results& results) {
  std::vector<Bounded> all;
  for (const auto& [replicate, value] : difference(results, "linear", with_positive("0")))
    all.push_back({fmt::format("|A' - A| / |A|, input {}", replicate), value, 1e-12});
  return all_at_most("Where no entry of Q and K is above 0, linear attention with 1 + elu is that with exponentials",
                     all);
}

Verdict judge_points(const Results& results, RecipeSize size) {
  std::vector<Bounded> all;
  std::vector<std::string> words;
  for (const auto& point : points(size)) {
    const double x = std::stod(point), closed_form = 1 - (1 + x) * std::exp(-x);
    for (const auto& [replicate, value] :
         results.scalar({{"method", "linear"}, {"input", at(point)}}, "largest_kernel_difference")) {
      all.push_back({"off that, at x = " + point, std::abs(value - closed_form), 1e-12});
      words.push_back(fmt::format("{:.1f} % at {}", 100 * value, point));
    }
  }
  Verdict verdict =
      all_at_most("For x > 0, 1 + elu(x) is below exp(x) by the share 1 - (1 + x) exp(-x) of it: 26 % at x = 1", all);
  verdict.numbers += fmt::format("; {}", fmt::join(words, ", "));
  return verdict;
}

Verdict judge_attention(const Results& results, RecipeSize size) {
  std::vector<std::pair<std::string, std::string>> inputs;
  for (const auto& scale : scales(size)) inputs.emplace_back("entries of scale " + scale, normal(scale));
  for (const RealHead& head : telling_heads(size)) inputs.emplace_back(head.name(), head.input());
  std::vector<Region> regions;
  for (const auto& [name, input] : inputs)
    regions.push_back({name,
                       {{"", ratio_of(difference(results, "linear", input), difference(results, "uniform", input),
                                      share_of_error_rate(inputs.size()))}}});
  Verdict verdict = below_where(
      0.5,
      {"Linear attention with 1 + elu is nearer to that with exponentials than half of the way to the mean of V",
       Verdict::Outcome::conditional},
      regions);
  verdict.numbers = "distance over that of the mean of V at " + verdict.numbers;
  return verdict;
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  return {judge_below_zero(results), judge_points(results, size), judge_attention(results, size)};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
