// Whether the softmax weight that a selection of keys drops predicts the error that it makes, as papers assume that
// rank selections by the weight they keep: o - o_S = (1 - p_S) (o_rest - o_S), and nothing says that the distance is
// the same.
#include <fmt/format.h>

#include "experiments/recipes/field.hpp"
#include "experiments/recipes/real_heads.hpp"
#include "harness/statistics/rank_correlation.hpp"

namespace attnbench::dropped_mass_predicts_error_recipe {
namespace {

const std::string weight = "dropped_mass", error = "dropped_error", by_row = "mass_correlation";

// Selections that have a bidirectional and a causal form.
std::vector<std::string> selections(Index keys) {
  return {fmt::format("top-k:k={}", keys),
          fmt::format("local:window={}", keys / 2),
          fmt::format("sink-window:sinks=4,window={}", keys / 2 - 2),
          fmt::format("quest:page=8,keep={}", keys / 8),
          fmt::format("moba:block=8,keep={}", keys / 8),
          fmt::format("loki:r=8,k={}", keys),
          fmt::format("evict:keep={}", keys),
          fmt::format("evict:score=random,keep={}", keys)};
}

// For each replicate, the rank correlation over selections of the weight that they drop and their errors.
Samples over_selections(const Cells& head, const std::vector<std::string>& methods) {
  std::map<Index, std::vector<double>> weights, errors;
  for (const auto& method : methods) {
    const Samples dropped = head.method(method).scalar(weight);
    for (const auto& [replicate, value] : head.method(method).scalar(error))
      if (const auto found = dropped.find(replicate); found != dropped.end()) {
        errors[replicate].push_back(value);
        weights[replicate].push_back(found->second);
      }
  }
  Samples all;
  for (const auto& [replicate, values] : errors)
    if (const double found = rank_correlation(weights[replicate], values); std::isfinite(found)) all[replicate] = found;
  return all;
}

void write(Recipe& recipe) {
  const Index n = recipe.sized<Index>(64, 512, 1024), keys = n / 8;
  const auto heads = telling_heads_of_models(recipe);
  const auto methods = selections(keys);
  Cells cells;
  for (const auto& of_model : by_model(heads))
    cells = cells + run_on(recipe,
                           {.experiment = "dropped-keys",
                            .methods = methods,
                            .n = {n},
                            .replicates = recipe.sized<Index>(2, 24, texts)},
                           of_model);
  std::vector<Panel> panels;
  for (const auto& of_model : by_model(heads)) {
    Cells here;
    for (const auto& input : inputs_of(of_model)) here = here + cells.input(input);
    panels.push_back({.title = of_model.front().part(),
                      .kind = "trade",
                      .cells = here,
                      .x = budget_names(),
                      .x_label = "softmax weight that is dropped",
                      .x_scale = "log10",
                      .y = error,
                      .y_label = "error of the output",
                      .y_scale = "log10",
                      .x_metric = weight});
  }
  recipe.figure("dropped-mass-predicts-error", "Error against the softmax weight that is dropped",
                fmt::format("Selections of about {} keys a row; geometric means over heads and texts. {}.", keys,
                            heads_in_words(heads, n)),
                panels);
  recipe.judge(
      {.text = "A selection of keys that drops less of the softmax weight than another has the smaller error, on "
               "heads of " +
               three_models,
       .definition = fmt::format("the rank correlation over {} selections of about {} keys, of the weight that "
                                 "they drop (mean over rows) and the relative Frobenius error of the output, "
                                 "text by text; a region for each model. {}",
                                 methods.size(), keys, heads_in_words(heads, n)),
       .threshold = "0.9, our own: of eight selections the order of one or two neighbours differs",
       .expected = Ruling::open,
       .because = "the error is the dropped weight times a distance of values, which selections share in part"},
      [=, &recipe] {
        std::vector<Region> regions;
        for (const RealHead& head : heads)
          region(regions, head.part())
              .comparisons.push_back({head.name(), median_of(over_selections(cells.input(head.input()), methods),
                                                             recipe.error_rate(heads.size()))});
        return above_where(0.9, regions);
      });
  recipe.judge(
      {.text = "How well the softmax weight that a selection drops in a row predicts the error of that row, on "
               "heads of " +
               three_models,
       .definition = fmt::format("the rank correlation over rows of 1 - p_S and |o - o_S|, the median over texts, "
                                 "for each of {} selections. {}",
                                 methods.size(), heads_in_words(heads, n)),
       .threshold = "none: the values. 0.5 and 0.9 are there to be read off",
       .expected = Ruling::measured,
       .because = "the distance of the dropped values from the kept ones differs from row to row"},
      [=, &recipe] {
        std::vector<Comparison> found;
        const double rate = recipe.error_rate(heads.size() * methods.size());
        for (const auto& method : methods)
          for (const RealHead& head : heads)
            found.push_back({fmt::format("{}, {}", method, head.name()),
                             median_of(cells.input(head.input()).method(method).scalar(by_row), rate)});
        return values_of(found, {0.5, 0.9});
      });
}

const bool registered =
    add(RecipeEntry{.text = {.name = "dropped-mass-predicts-error",
                             .summary = "The softmax weight that a selection drops, and the error that it makes",
                             .formula = "Does a selection of keys that keeps more weight have the smaller error?",
                             .reference = "none: a finding of this project"},
                    .write = write});

}  // namespace
}  // namespace attnbench::dropped_mass_predicts_error_recipe
