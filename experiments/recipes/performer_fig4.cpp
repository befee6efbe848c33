// Performer's Fig. 4: the error of the attention output against m, at its sizes. The figure does not state the scale of
// its inputs, on which every ordering in it depends; here the scale is an axis. Lines are the delta method's
// predictions, to first order in 1/m (methods.md A4).
#include <fmt/format.h>

#include <cmath>

#include "harness/runner/recipe.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;

const Specs maps{"performer", "performer:features=trig"};
const std::string words_of_maps[] = {"positive", "trigonometric"};
const Specs scales{"0.5", "1", "1.5"};

std::string with(const std::string& method, const std::string& arguments) {
  return method + (method.find(':') == std::string::npos ? ":" : ",") + arguments;
}

Specs methods() {
  Specs all{"uniform"};
  for (const auto& map : maps) all.insert(all.end(), {map, with(map, "projection=iid")});
  return all;
}

Specs budgets(RecipeSize size) {
  if (size == RecipeSize::smoke) return {"8", "16"};
  if (size == RecipeSize::quick) return {"16", "48", "96", "192"};
  Specs all;
  for (Index m = 16; m <= 192; m += 16) all.push_back(std::to_string(m));
  return all;
}

std::string input(const std::string& scale) { return scale == "1" ? "gaussian" : "gaussian:scale=" + scale; }

const Description text{.name = "performer-fig4",
                       .summary = "Performer's Fig. 4: output error against m, at three input scales",
                       .formula =
                           "Positive features approximate the output better than trigonometric ones, and orthogonal "
                           "projections better than independent ones.",
                       .reference = "Choromanski et al. 2020, arXiv:2009.14794, Fig. 4"};

std::vector<RunRequest> runs(RecipeSize size) {
  RunRequest request{.experiment = "attention-error:matrix=false",
                     .methods = methods(),
                     .inputs = {},
                     .n = {size == RecipeSize::smoke   ? 64
                           : size == RecipeSize::quick ? 512
                                                       : 4096},
                     .d = {16},
                     .causal = false,
                     .sweep = {{"m", budgets(size)}},
                     .replicates = size == RecipeSize::smoke   ? 2
                                   : size == RecipeSize::quick ? 12
                                                               : 15};
  for (const auto& scale : scales) request.inputs.push_back(input(scale));
  return {request};
}

std::vector<Figure> figures(RecipeSize size) {
  std::vector<Panel> panels;
  for (const auto& scale : scales)
    panels.push_back({.title = "scale " + scale,
                      .where = {{"experiment", "attention-error:matrix=false"},
                                {"input", input(scale)},
                                {"causal", 0},
                                {"d", 16},
                                {"method", methods()}},
                      .x = {"m"},
                      .x_label = "projection vectors m",
                      .x_scale = size == RecipeSize::full ? "linear" : "log2",
                      .y = "output_mse",
                      .y_label = "mean squared error of the output",
                      .y_scale = "log10",
                      .interval = "median",  // near-zero normalisers of trigonometric features leave no mean
                      .theory = "output_mse_theory",
                      .references = {"uniform"}});
  return {figure("performer-fig4", text, "Error of the attention output against m",
                 fmt::format("n = {}, d = 16, entries of Q and K of standard deviation 0.5, 1 and 1.5; medians over "
                             "inputs and draws. The line of uniform is the mean of V: what attends to nothing. "
                             "Lines of independent vectors are the delta method's, to first order in 1/m: where logits "
                             "are large they lie far above the axes, and say that these m are too small for it.",
                             runs(size)[0].n[0]),
                 panels)};
}

Samples errors(const Results& results, const std::string& method, const std::string& scale, const std::string& m) {
  return results.scalar({{"method", method == "uniform" ? method : with(method, "m=" + m)}, {"input", input(scale)}},
                        "output_mse");
}

// error / other, their geometric mean over all m, replicate by replicate.
Samples over_m(const Results& results, RecipeSize size, const std::string& scale, const std::string& error,
               const std::string& other) {
  Samples logs, ratios;
  std::map<Index, size_t> counts;
  const Specs all_m = budgets(size);
  for (const auto& m : all_m) {
    const Samples above = errors(results, error, scale, m), below = errors(results, other, scale, m);
    for (const auto& [replicate, value] : above)
      if (below.contains(replicate)) {
        logs[replicate] += std::log(value / below.at(replicate));
        ++counts[replicate];
      }
  }
  for (const auto& [replicate, sum] : logs)
    if (counts[replicate] == all_m.size()) ratios[replicate] = std::exp(sum / static_cast<double>(all_m.size()));
  return ratios;
}

Region region(const std::string& name, const Samples& ratios, size_t regions) {
  Samples ones = ratios;
  for (auto& [replicate, one] : ones) one = 1;
  return {name, {{"", ratio(ratios, ones, share_of_error_rate(regions))}}};
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  std::vector<Region> positive_wins, orthogonal_wins, beats_uniform;
  const Specs all_m = budgets(size);
  for (const auto& scale : scales) {
    positive_wins.push_back(region("scale " + scale, over_m(results, size, scale, maps[0], maps[1]), scales.size()));
    for (size_t i = 0; i < maps.size(); ++i) {
      const std::string name = words_of_maps[i] + " at scale " + scale;
      const size_t regions = scales.size() * maps.size();
      orthogonal_wins.push_back(
          region(name, over_m(results, size, scale, maps[i], with(maps[i], "projection=iid")), regions));
      beats_uniform.push_back({name, {}});
      for (const auto& m : all_m)
        beats_uniform.back().comparisons.push_back(
            {"m = " + m, ratio(errors(results, maps[i], scale, m), errors(results, "uniform", scale, m),
                               share_of_error_rate(regions * all_m.size()))});
    }
  }
  return {
      below_where(1,
                  {"The output errs less with positive features than with trigonometric ones (orthogonal, geometric "
                   "mean over m)",
                   Verdict::Outcome::conditional},
                  positive_wins),
      below_where(
          1, {"The output errs less with orthogonal projections than with independent ones (geometric mean over m)"},
          orthogonal_wins),
      below_where(1, {"Random features err less than the mean of V at every m", Verdict::Outcome::conditional},
                  beats_uniform)};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
