// Every estimator of exp(q.k) that there is, at equal budgets: which errs least at which length and angle. Budgets are
// features (the width of phi, and so the memory and rank of attention) or the floating-point work of one attention,
// exponentials counted as one operation; m is what an entry's own cost allows.
// Errors are against exp(q.k), so that the truncated series of a tensor sketch pays for what it leaves out. Maps that
// learn from a head learn from pairs of the same length and angle that point anywhere.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <numbers>

#include "harness/core/feature_map.hpp"
#include "harness/runner/recipe.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;

constexpr Index d = 8, budget = 32;  // budget: features

// Without m.
const Specs estimators{"performer",
                       "performer:projection=simplex",
                       "performer:features=hyperbolic",
                       "performer:features=trig",
                       "performer:features=trig,projection=iid",
                       "performer:features=oprf",
                       "performer:features=saderf",
                       "performer:features=sderf",
                       "performer:features=aderf",
                       "performer:features=tensor-sketch",
                       "performer:features=maclaurin",
                       "performer:projection=sobol"};

enum class Equal { features, work };

double cost_of(const Params& method, Equal equal) {
  if (equal == Equal::features) return static_cast<double>(feature_map_entry(method).features(method, d));
  const Work work = find<MethodEntry>("performer").cost(method, {.nq = 1024, .nk = 1024, .d = d, .dv = d});
  return work.flops + work.exps;
}

// The largest m within the budget, which is what positive features with `budget` vectors take.
std::string within_budget(const std::string& spec, Equal equal) {
  const double limit = cost_of(Params("methods", "performer").with("m", std::to_string(budget)), equal);
  const Params method("methods", spec);
  Index m = 1;
  while (cost_of(method.with("m", std::to_string(m + 1)), equal) <= limit) ++m;
  return method.with("m", std::to_string(m)).spec();
}

Specs within_budget(Equal equal) {
  Specs all;
  for (const auto& spec : estimators) all.push_back(within_budget(spec, equal));
  return all;
}

Specs lengths(RecipeSize size) {
  if (size == RecipeSize::smoke) return {"0.5", "1.5"};
  Specs all;
  const double step = size == RecipeSize::quick ? 0.25 : 0.125;
  for (double length = step; length < 2.01; length += step) all.push_back(fmt::format("{}", length));
  return all;
}

Specs angles(RecipeSize size) {
  const Index count = size == RecipeSize::smoke ? 2 : size == RecipeSize::quick ? 7 : 15;
  Specs all;  // midpoints: at 0 and pi some errors are zero
  for (Index i = 0; i < count; ++i)
    all.push_back(
        fmt::format("{:.4f}", std::numbers::pi * (static_cast<double>(i) + 0.5) / static_cast<double>(count)));
  return all;
}

const Description text{.name = "estimator-zoo",
                       .summary = "All estimators of exp(q.k) at equal budgets",
                       .formula =
                           "No estimator errs least everywhere: trigonometric features win at small angles, bounded "
                           "positive features at wide ones.",
                       .reference = "Likhosherstov et al. 2022, arXiv:2205.15317; 2023, arXiv:2302.00787"};

// What has no closed form: many draws.
bool measured(const std::string& method) {
  for (const char* part : {"sobol", "=sderf", "=tensor-sketch"})
    if (method.find(part) != std::string::npos) return true;
  return false;
}
std::string experiment(RecipeSize size, bool many) {
  const Index draws = !many || size == RecipeSize::smoke ? 64 : size == RecipeSize::quick ? 256 : 2048;
  return fmt::format("kernel-error:draws={},pairs=1,precision=0,by_pair=false", draws);
}

std::vector<RunRequest> runs(RecipeSize size) {
  std::vector<RunRequest> all;
  for (const Equal equal : {Equal::features, Equal::work})
    for (const auto& method : within_budget(equal))
      all.push_back({.experiment = experiment(size, measured(method)),
                     .methods = {method},
                     .inputs = {"pair"},
                     .n = {64},
                     .d = {d},
                     .sweep = {{"angle", angles(size)}, {"length", lengths(size)}},
                     .replicates = size == RecipeSize::full ? 4 : 2});
  return all;
}

Panel common(const std::string& title, const Specs& methods, RecipeSize size) {
  return {.title = title,
          .where = {{"experiment", {experiment(size, false), experiment(size, true)}}, {"d", d}, {"method", methods}},
          .y = "softmax_mse",
          .theory = "softmax_mse_theory",
          .series = {"features", "projection"}};
}

std::vector<Figure> figures(RecipeSize size) {
  std::vector<Panel> maps, curves;
  for (const Equal equal : {Equal::features, Equal::work}) {
    const std::string title = equal == Equal::features ? "equal features" : "equal work";
    Panel map = common(title, within_budget(equal), size);
    map.kind = "map";
    map.where["input"] = "pair";
    map.x = {"angle"};
    map.x_label = "angle between q and k (radians)";
    map.y_axis = {"length"};
    map.y_label = "length |q| = |k|";
    map.winner = true;
    maps.push_back(map);
    const Specs all_angles = angles(size);
    for (const auto& angle : {all_angles[all_angles.size() / 4], all_angles[3 * all_angles.size() / 4]}) {
      Panel curve = common(fmt::format("{}, angle {:.2f}", title, std::stod(angle)), within_budget(equal), size);
      curve.where["angle"] = std::stod(angle);
      curve.x = {"length"};
      curve.x_label = "length |q| = |k|";
      curve.y_label = "relative MSE  E (K'/exp(q.k) - 1)^2";
      curve.y_scale = "log10";
      curves.push_back(curve);
    }
  }
  const std::string note =
      "d = 8; the budget is that of positive features with m = 32. Closed forms; scrambled Sobol points, tensor "
      "sketches and sderf are measured, and left out where their error cannot be estimated. Maps that learn from a "
      "head "
      "learn from 64 pairs of the same length and angle that point anywhere.";
  return {figure("estimator-zoo", text, "Which estimator errs least", note, maps),
          figure("estimator-zoo-curves", text, "Error against length", note, curves)};
}

// How often each wins, of the settings; and the statement holds when more than one does.
Verdict winners(const Results& results, RecipeSize size, Equal equal) {
  std::map<std::string, size_t> wins;
  std::map<std::string, double> narrowest, widest;
  const Specs methods = within_budget(equal);
  for (const auto& length : lengths(size))
    for (const auto& angle : angles(size)) {
      std::string best;
      double least = std::numeric_limits<double>::infinity();
      for (const auto& method : methods) {
        const nlohmann::json where{{"method", method},
                                   {"input", fmt::format("pair:length={},angle={}", length, angle)}};
        const Samples closed = results.scalar(where, "softmax_mse_theory");
        const Samples error = closed.empty() ? results.scalar(where, "softmax_mse") : closed;
        if (error.empty()) continue;  // could not be estimated
        const double value = mean(error, 1).value;
        if (value < least) {
          least = value;
          best = method;
        }
      }
      const double at = std::stod(angle);
      if (wins[best]++ == 0) narrowest[best] = widest[best] = at;
      narrowest[best] = std::min(narrowest[best], at);
      widest[best] = std::max(widest[best], at);
    }
  std::vector<std::string> words;
  for (const auto& [method, count] : wins)
    words.push_back(
        fmt::format("{} at {} (angles {:.2f} to {:.2f})", method, count, narrowest[method], widest[method]));
  return {wins.size() > 1 ? Verdict::Outcome::pass : Verdict::Outcome::fail,
          fmt::format("At equal {} no estimator of exp(q.k) errs least at every length and angle",
                      equal == Equal::features ? "features" : "work"),
          fmt::format("of {} settings: {}", lengths(size).size() * angles(size).size(), fmt::join(words, ", "))};
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  return {winners(results, size, Equal::features), winners(results, size, Equal::work)};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
