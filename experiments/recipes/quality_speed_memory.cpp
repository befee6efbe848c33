// Source 003's closing figure (after Tay et al., arXiv:2011.04006, Fig. 3), from measurements: quality against speed
// with memory as the circle, all methods at equal FLOPs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/recipes/field.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;

const std::string error_of_output = "attention-error:matrix=false";
constexpr Index share = 8;  // budgets: one over this of softmax's FLOPs

std::string speed(RecipeSize size) {
  return size == RecipeSize::smoke   ? "speed:blocks=2,turn=1"
         : size == RecipeSize::quick ? "speed:blocks=19,turn=2"
                                     : "speed:blocks=21,turn=10";
}

// Real heads up to the model's context, and laws of structure beyond.
struct Setting {
  std::string title;
  Specs inputs;
  Index n;
};

std::vector<Setting> settings(RecipeSize size) {
  if (size == RecipeSize::smoke) return {{"real heads", {"model:layer=2,head=1"}, 64}};
  std::vector<Setting> all{{"real heads", {"model:layer=0,head=0", "model:layer=2,head=1"}, 1024}};
  if (size == RecipeSize::quick) return all;
  for (const Index layer : {1, 3}) all[0].inputs.push_back(fmt::format("model:layer={},head=2", layer));
  for (const Index n : {2048, 4096}) {
    all.push_back({"clustered keys", {"clustered"}, n});
    all.push_back({"neighbours alike", {"ar1"}, n});
  }
  return all;
}

const Description text{
    .name = "quality-speed-memory",
    .summary = "Quality against speed, memory as the circle",
    .formula =
        "On real heads some approximation is faster than exact attention and errs less than the mean "
        "of V.",
    .reference = "Hung-yi Lee 2021 (source 003), after Tay et al. 2020, arXiv:2011.04006, Fig. 3"};

std::vector<RunRequest> runs(RecipeSize size) {
  std::vector<RunRequest> all;
  for (const auto& [title, inputs, n] : settings(size)) {
    const Match match{Match::Cost::flops, softmax_flops(n) / static_cast<double>(share)};
    Specs methods = field_methods();
    methods.push_back("uniform");
    all.push_back({.experiment = error_of_output,
                   .methods = methods,
                   .inputs = inputs,
                   .n = {n},
                   .causal = false,
                   .match = match,
                   .replicates = size == RecipeSize::smoke ? 1 : 3});
    methods.push_back("softmax");
    all.push_back({.experiment = speed(size),
                   .methods = methods,
                   .inputs = {inputs.front()},
                   .n = {n},
                   .causal = false,
                   .precision = Precision::f32,
                   .match = match});
  }
  return all;
}

std::vector<Figure> figures(RecipeSize size) {
  std::vector<Panel> panels;
  for (const auto& [title, inputs, n] : settings(size))
    panels.push_back(
        {.title = fmt::format("{}, n = {}", title, n),
         .kind = "trade",
         .where = {{"experiment", Specs{error_of_output, speed(size)}}, {"input", inputs}, {"n", n}, {"causal", 0}},
         .x = budget_names(),
         .x_label = "times faster than exact softmax",
         .x_scale = "log2",
         .y = "relative_output_error",
         .y_label = "error of the output, better above",
         .y_scale = "log10",
         .references = {"uniform"},
         .x_metric = "speedup",
         .area = "peak_bytes",
         .area_label = "peak memory of a call beyond inputs and output",
         .upside_down = true,
         .y_most = 2});
  return {
      figure("quality-speed-memory", text, "Quality against speed, memory as the circle",
             fmt::format("Every method at 1/{} of softmax's FLOPs, or where it stands when it has no budget; d = dv = "
                         "64. Errors in double over heads and draws, times in float on one thread of one head, "
                         "paired with exact softmax. Dotted line: the mean of V. Exact softmax is at 1, without "
                         "error. Mixers have weights that were drawn, not trained.",
                         share),
             panels)};
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  const Statement statement{"Some approximation is faster than exact attention and errs less than the mean of V",
                            Verdict::Outcome::ambiguous};
  std::vector<Region> regions;
  Specs words;
  for (const Setting& setting : settings(size)) {
    const Index n = setting.n;
    const std::string& input = setting.inputs.front();
    const auto spec = [n](const std::string& method) {
      return matched(Params("methods", method), {.nq = n, .nk = n, .d = 64, .dv = 64},
                     {Match::Cost::flops, softmax_flops(n) / static_cast<double>(share)})
          .spec();
    };
    const double rate = share_of_error_rate(2 * field_methods().size() * settings(size).size());
    const auto error = [&](const std::string& method) {
      return results.scalar({{"method", method}, {"experiment", error_of_output}, {"input", input}, {"n", n}},
                            "relative_output_error");
    };
    Comparison best;  // of those that are faster, the one that is surest to err less
    for (const auto& method : field_methods()) {
      const Estimate speedup = median_of(
          results.array({{"method", spec(method)}, {"experiment", speed(size)}, {"n", n}, {"input", input}}, "speedup"),
          rate);
      if (!speedup.above(1)) continue;
      const Estimate found = ratio(error(spec(method)), error("uniform"), rate);
      if (best.what.empty() || found.interval.high < best.estimate.interval.high)
        best = {fmt::format("{} ({} times faster)", spec(method), speedup.text()), found};
    }
    regions.push_back({fmt::format("{}, n = {}", setting.title, n), {}});
    if (best.what.empty()) continue;
    regions.back().comparisons.push_back(best);
    words.push_back(fmt::format("{}, n = {}: {} by {}", setting.title, n, best.estimate.text(), best.what));
  }
  std::erase_if(regions, [](const Region& region) { return region.comparisons.empty(); });
  if (regions.empty())
    return {{Verdict::Outcome::ambiguous, statement, "no method was surely faster than exact attention"}};
  Verdict verdict = below_where(1, statement, regions);
  verdict.numbers = fmt::format("least ratios to the mean of V: {}", fmt::join(words, "; "));
  return {verdict};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
