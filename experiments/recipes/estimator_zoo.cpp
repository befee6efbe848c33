// All estimators of exp(q.k) here at equal budgets: which has the least error at which length and angle. A budget is a
// number of features (the width of phi, and so the memory and rank of attention) or the floating-point work of one
// attention, with an exponential as one operation; m is the largest that the budget allows. Errors are against
// exp(q.k), so that they include the terms that the truncated series of a tensor sketch leaves out. Fitted maps learn
// from pairs of the same length and angle in random directions.
#include <fmt/format.h>

#include <numbers>

#include "experiments/recipes/closed_forms.hpp"
#include "harness/core/feature_map.hpp"

namespace attnbench::estimator_zoo_recipe {
namespace {

constexpr Index d = 8, positive_features = 32;  // the budget

// Specs without m.
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
// The errors of these two have closed forms at every length and angle.
const Specs known{"performer:features=trig", "performer:features=hyperbolic"};

enum class Equal { features, work };

double cost_of(const Params& method, Equal equal) {
  if (equal == Equal::features) return static_cast<double>(feature_map_entry(method).features(method, d));
  const Work work = find<MethodEntry>("performer").cost(method, {.nq = 1024, .nk = 1024, .d = d, .dv = d});
  return work.flops + work.exps;
}

// The largest m within the budget, which is the cost of positive features with `positive_features` vectors.
std::string within_budget(const std::string& spec, Equal equal) {
  const double limit = cost_of(Params("methods", "performer").with("m", std::to_string(positive_features)), equal);
  const Params method("methods", spec);
  Index m = 1;
  while (cost_of(method.with("m", std::to_string(m + 1)), equal) <= limit) ++m;
  return method.with("m", std::to_string(m)).spec();
}

bool contains_any(const std::string& method, const Specs& parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const std::string& part) { return method.find(part) != std::string::npos; });
}
bool measured(const std::string& method) { return contains_any(method, {"sobol", "=sderf", "=tensor-sketch"}); }
bool learns(const std::string& method) { return contains_any(method, {"oprf", "derf"}); }

Specs angles_of(const Recipe& recipe) {
  const Index count = recipe.sized(2, 4, 15);
  Specs all;  // midpoints: at 0 and pi some errors are zero
  for (Index i = 0; i < count; ++i)
    all.push_back(
        fmt::format("{:.4f}", std::numbers::pi * (static_cast<double>(i) + 0.5) / static_cast<double>(count)));
  return all;
}

Cells run(Recipe& recipe, Equal equal) {
  Specs lengths;
  const double step = recipe.sized(1.0, 0.5, 0.125);
  for (double length = step; length < 2.01; length += step) lengths.push_back(fmt::format("{}", length));
  Cells all;
  for (const auto& estimator : estimators) {
    const std::string method = within_budget(estimator, equal);
    const bool draws = measured(method);
    all = all + recipe.run({.experiment = draws_of_a_pair(draws ? recipe.sized<Index>(64, 256) : 64),
                            .methods = {method},
                            .inputs = {"pair"},
                            .n = {64},
                            .d = {d},
                            .sweep = {{"angle", angles_of(recipe)}, {"length", lengths}},
                            // The others have closed forms, equal in all replicates.
                            .replicates = draws || learns(method) ? recipe.sized(2, 32) : 1});
  }
  return all;
}

struct Budget {
  Equal equal;
  std::string name;
  Cells cells;
};

void draw(Recipe& recipe, const std::vector<Budget>& budgets) {
  std::vector<Panel> maps, curves;
  const Specs angles = angles_of(recipe);
  for (const auto& [equal, name, cells] : budgets) {
    const Panel common{
        .title = "equal " + name,
        .cells = cells,
        .y = "softmax_mse",
        .theory = "softmax_mse_theory",
        .series = {"features", "projection"},
    };
    Panel map = common;
    map.kind = "map";
    map.x = {"angle"};
    map.x_label = "angle between q and k (radians)";
    map.y_axis = {"length"};
    map.y_label = "length |q| = |k|";
    map.winner = true;
    maps.push_back(map);
    for (const auto& angle : {angles[angles.size() / 4], angles[3 * angles.size() / 4]}) {
      Panel curve = common;
      curve.title = fmt::format("equal {}, angle {:.2f}", name, std::stod(angle));
      curve.cells = cells.where({{"angle", std::stod(angle)}});
      curve.x = {"length"};
      curve.x_label = "length |q| = |k|";
      curve.y_label = "relative MSE  E (K'/exp(q.k) - 1)^2";
      curve.y_scale = "log10";
      curves.push_back(curve);
    }
  }
  const std::string note =
      "d = 8; the budget is that of positive features with m = 32. Closed forms; scrambled Sobol points, tensor "
      "sketches and sderf are measured, over 32 replicates, and left out where their error cannot be estimated. Maps "
      "that learn from a head learn from 64 pairs of the same length and angle that point anywhere.";
  recipe.figure("estimator-zoo", "Which estimator errs least",
                note + " A hollow marker: the least two are not told apart.", maps);
  recipe.figure("estimator-zoo-curves", "Error against length", note, curves);
}

Samples error_of(const Cells& one) {
  const Samples closed = one.scalar("softmax_mse_theory");
  return closed.empty() ? one.scalar("softmax_mse") : closed;
}

// One estimator's error over that of a rival with a closed form, wherever the first is known or estimable.
Region beaten(const std::string& name, const Cells& mine, const std::vector<Cells>& rivals, double rate) {
  Region region{.name = name, .comparisons = {}, .rule = Region::Rule::some};
  for (const Cells& one : mine.one_by_one()) {
    const std::string input = one.all().front().asked.input.spec();
    const Samples error = error_of(one);
    if (error.empty()) continue;
    for (const Cells& rival : rivals) {
      const Samples of_rival = error_of(rival.input(input));
      region.comparisons.push_back({rival.all().front().run.method.spec() + " at " + input,
                                    error.size() == 1 ? certain(error.begin()->second / of_rival.begin()->second)
                                                      : median_ratio(error, of_rival, rate)});
    }
  }
  return region;
}

void judge(Recipe& recipe, const Budget& budget) {
  const auto& [equal, name, cells] = budget;
  recipe.judge(
      {.text = fmt::format("At equal {} no compared estimator of exp(q.k) errs least at every length and angle: each "
                           "one errs more than trigonometric or hyperbolic features somewhere",
                           equal == Equal::features ? "numbers of features" : "work"),
       .definition = fmt::format(
           "the mean squared error (K'/exp(q.k) - 1)^2 of an estimate K' over that of trigonometric and over that of "
           "hyperbolic features, both with orthogonal vectors and known exactly. The budget is that of {} positive "
           "features: {}. Twelve estimators: positive features with orthogonal, simplex and scrambled Sobol vectors, "
           "hyperbolic ones, trigonometric ones with orthogonal and with independent vectors, OPRF, SADERF, SDERF, "
           "ADERF, tensor sketches and random Maclaurin features. d = {}, |q| = |k| up to 2, angles between 0 and 180 "
           "degrees. Estimators without a closed form, and those that learn from pairs of the same length and angle, "
           "are compared by the median over their replicates, where their error can be estimated",
           positive_features,
           equal == Equal::features
               ? "as many features, the width of phi"
               : "as many floating-point operations and exponentials of one attention at n = 1024, dv = d",
           d),
       .threshold = "above 1 at one of the settings at least, at the verdict's error rate for all comparisons together",
       .because = "by the closed forms trigonometric features err least at small angles, where theirs vanishes, and "
                  "hyperbolic ones at wide angles, where theirs does"},
      [=, &recipe, equal = equal, cells = cells] {
        std::vector<Region> regions;
        const double rate = recipe.error_rate(2 * cells.size());
        for (const auto& estimator : estimators) {
          const std::string method = within_budget(estimator, equal);
          std::vector<Cells> rivals;
          for (const auto& rival : known)
            if (rival != estimator) rivals.push_back(cells.method(within_budget(rival, equal)));
          Region region = beaten(method, cells.method(method), rivals, rate);
          if (!region.comparisons.empty()) regions.push_back(std::move(region));
        }
        Finding finding = above_where(1, regions);
        finding.numbers += fmt::format("; {} of {} estimators have errors that can be estimated somewhere",
                                       regions.size(), estimators.size());
        return finding;
      });
}

void write(Recipe& recipe) {
  const std::vector<Budget> budgets{{Equal::features, "features", run(recipe, Equal::features)},
                                    {Equal::work, "work", run(recipe, Equal::work)}};
  draw(recipe, budgets);
  for (const Budget& budget : budgets) judge(recipe, budget);
}

const bool registered =
    add(RecipeEntry{.text = {.name = "estimator-zoo",
                             .summary = "All estimators of exp(q.k) at equal budgets",
                             .formula = "Does one estimator of exp(q.k) err least at every length and angle?",
                             .reference = "Likhosherstov et al. 2022, arXiv:2205.15317; 2023, arXiv:2302.00787"},
                    .write = write});

}  // namespace
}  // namespace attnbench::estimator_zoo_recipe
