// Rows from sampled keys at equal numbers of draws, measured on the closed forms of every law. methods.md S.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/recipes/closed_forms.hpp"
#include "harness/figures/looks.hpp"

namespace attnbench::sampling_laws_recipe {
namespace {

using Specs = std::vector<std::string>;

// A law of the draws, by the parameters of its spec.
struct Law {
  std::string law, replacement = "true", stratified = "false";

  std::string spec() const {
    return fmt::format("sampled:law={},replacement={},stratified={}", law, replacement, stratified);
  }
  Cells of(const Cells& cells) const {
    return cells.where({{"law", law}, {"replacement", replacement}, {"stratified", stratified}});
  }
};
const Law uniform{"uniform"}, strata{"uniform", "true", "true"}, distinct{"uniform", "false"}, norms{"value-norm"},
    oracle{"oracle"}, oracle_strata{"oracle", "true", "true"}, optimal{"optimal"};
const std::vector<Law> varying{uniform, strata, distinct, norms, optimal};  // the denominators of their rows vary
const std::vector<Law> oracles{oracle, oracle_strata};

const std::string real_head = "model:layer=2,head=0";
const std::string santa = "Lee et al. 2026, arXiv:2605.01910, abstract";

Cells of(const std::vector<Law>& laws, const Cells& cells) {
  Cells all;
  for (const Law& law : laws) all = all + law.of(cells);
  return all;
}

// The metric over its closed form, cell by cell.
std::vector<Comparison> over_closed_forms(const Recipe& recipe, const Cells& cells, const std::string& metric,
                                          size_t comparisons) {
  std::vector<Comparison> all;
  for (const Cells& one : cells.one_by_one())
    all.push_back({metric + " of " + name_of(one), mean(quotients(one.scalar(metric), one.scalar(metric + "_theory")),
                                                        recipe.error_rate(comparisons))});
  return all;
}

// The median over inputs of the metric of one law over that of another, for each input and each s.
std::vector<Region> ratios(const Recipe& recipe, const Cells& cells, const Law& law, const Law& over,
                           const std::string& metric) {
  const auto settings = law.of(cells).by({"input", "s"});
  std::vector<Region> regions;
  for (const auto& setting : settings)
    regions.push_back({setting.name,
                       {{fmt::format("{}, {} over {}", setting.name, law.spec(), over.spec()),
                         median_ratio(setting.cells.scalar(metric), over.of(cells).where(setting.shared).scalar(metric),
                                      recipe.error_rate(settings.size()))}}});
  return regions;
}

std::vector<Comparison> comparisons_of(const std::vector<Region>& regions) {
  std::vector<Comparison> all;
  for (const Region& region : regions) all.insert(all.end(), region.comparisons.begin(), region.comparisons.end());
  return all;
}

Panel panel(const std::string& title, const Cells& cells) {
  return {.title = title,
          .cells = cells,
          .x = {"s"},
          .x_label = "draws of a row s",
          .x_scale = "log2",
          .y = "row_mse",
          .y_label = "E |o' - o|^2 / dv",
          .y_scale = "log10",
          .theory = "row_mse_theory"};
}

void write(Recipe& recipe) {
  const auto budgets = recipe.sized<Specs>({"8", "16"}, {"8", "64"}, {"8", "16", "32", "64", "128"});
  const std::string& last = budgets.back();
  RunRequest request{
      .experiment = fmt::format("sampling-error:draws={},rows={}", recipe.sized(32, 128, 512), recipe.sized(1, 1, 2)),
      .inputs = {"gaussian"},
      .n = {256},
      .d = {16},
      .sweep = {{"s", budgets}},
      .replicates = recipe.sized<Index>(2, replicates_for_means, 4 * replicates_for_means)};
  for (const auto& laws : {varying, oracles})
    for (const Law& law : laws) request.methods.push_back(law.spec());
  RunRequest on_head = request;
  on_head.inputs = {real_head};
  on_head.n = on_head.d = {};
  on_head.replicates = recipe.sized<Index>(2, 32);  // texts that the model has heads of
  const Cells synthetic = recipe.run(request), head = recipe.run(on_head), all = synthetic + head;

  recipe.headline(7, "How much does it cost to sample keys?");
  recipe.figure(
      "sampling-laws", "Error of rows from sampled keys",
      "Mean over rows and channels of E |o' - o|^2, o' the row from s sampled keys. Points are measured, with "
      "95 % intervals over inputs; lines are the closed forms, exact for draws from the softmax row (oracle) "
      "and to first order in 1/s for the others: (1/s) sum_j (a_j^2 / p_j) |v_j - o|^2 for independent draws.",
      {panel("normal q and k, logits of standard deviation 1", synthetic),
       panel(printed_spec("inputs", real_head), head)});

  const std::string on_normal = fmt::format("{}, {} inputs of normal q, k and v, n = 256, d = 16; s = {}",
                                            request.experiment, request.replicates, fmt::join(budgets, ", "));
  const std::string measured = fmt::format("{}, and {} texts at layer 2, head 0 of the project's byte-level model",
                                           on_normal, on_head.replicates);
  recipe.judge(
      {.text = "A row from keys that are drawn from the softmax row itself has no bias",
       .source = santa,
       .quotation = "This yields an unbiased estimator of the post-softmax value aggregation [...].",
       .definition = "|E o' - o|^2, less what the number of draws adds to it, over E |o' - o|^2 (row_bias2 over "
                     "row_mse), independent and stratified draws, the mean over inputs; " +
                     on_normal,
       .threshold =
           "0, which every interval must hold, with intervals narrower than +-0.005: rows from uniform draws at "
           "s = 8 have about that share of bias here",
       .because = "the denominator is exact in every draw, so that the row is a mean of drawn values"},
      [=, &recipe] {
        const Cells cells = of(oracles, synthetic);
        std::vector<Comparison> shares;
        for (const Cells& one : cells.one_by_one())
          shares.push_back({name_of(one), mean(quotients(one.scalar("row_bias2"), one.scalar("row_mse")),
                                               recipe.error_rate(cells.size()))});
        return all_contain(0, 0.005, shares);
      });
  recipe.judge(
      {.text = "Stratified draws from the softmax row have a smaller error than independent ones",
       .source = santa,
       .quotation = "We introduce stratified and systematic sampling to design variance-reduced, GPU-friendly "
                    "variants.",
       .definition = "the closed form of E |o' - o|^2 with one draw from each of s parts of equal probability, "
                     "the keys in their order, over that with independent draws (row_mse_theory), the median "
                     "over inputs; " +
                     measured,
       .threshold = "1: equal errors",
       .because = "the variance within strata is the whole variance less that between them"},
      [=, &recipe] {
        return all_below(1, comparisons_of(ratios(recipe, all, oracle_strata, oracle, "row_mse_theory")));
      });
  recipe.judge(
      {.text = "Rows that are drawn from the softmax row have exactly the mean squared error "
               "(1/s) sum_j a_j |v_j - o|^2, or with strata the sum of the strata's variances",
       .definition =
           "E |o' - o|^2 over its closed form (row_mse over row_mse_theory), the mean over inputs; " + on_normal,
       .threshold = "1, which every interval must hold, with intervals narrower than +-0.1",
       .because = "the tests compare the form with sums over all outcomes of the draws"},
      [=, &recipe] {
        const Cells cells = of(oracles, synthetic);
        return all_contain(1, 0.1, over_closed_forms(recipe, cells, "row_mse", cells.size()));
      });
  recipe.judge(
      {.text = "Numerators and denominators of rows from keys drawn uniformly, in strata, without replacement, "
               "by value norms and by a_j |v_j - o| have the variances of their laws",
       .definition = "E |N' - N|^2 and E |D' - D|^2 over their closed forms (numerator_mse, denominator_mse), the "
                     "mean over inputs; " +
                     on_normal,
       .threshold = "1, which every interval must hold, with intervals narrower than +-0.25: without the "
                    "correction for a finite number of keys, draws without replacement lie outside at s = 128",
       .because = "the variances are exact; the weights of this input have no tail that draws miss"},
      [=, &recipe] {
        const Cells cells = of(varying, synthetic);
        auto both = over_closed_forms(recipe, cells, "numerator_mse", 2 * cells.size());
        const auto denominators = over_closed_forms(recipe, cells, "denominator_mse", 2 * cells.size());
        both.insert(both.end(), denominators.begin(), denominators.end());
        return all_contain(1, 0.25, both);
      });
  recipe.judge({.text = "At the largest s the error of a row from any of these laws is (1/s) sum_j (a_j^2 / p_j) "
                        "|v_j - o|^2, or its form for strata and for draws without replacement, within a quarter",
                .definition = "E |o' - o|^2 over the delta method's form (row_mse over row_mse_theory) at s = " + last +
                              ", the median over inputs; " + on_normal,
                .threshold = "0.75 to 1.25: the form is of first order in 1/s, and the next term is some percent here",
                .because = "the row is a quotient of two means of s terms"},
               [=, &recipe] {
                 const Cells cells = of(varying, synthetic).where({{"s", std::stod(last)}});
                 std::vector<Comparison> medians;
                 for (const Cells& one : cells.one_by_one())
                   medians.push_back({name_of(one), median_ratio(one.scalar("row_mse"), one.scalar("row_mse_theory"),
                                                                 recipe.error_rate(cells.size()))});
                 return all_between(0.75, 1.25, medians);
               });
  recipe.judge(
      {.text = "At equal numbers of draws, rows from keys drawn by the norms of their values have a smaller "
               "error than rows from keys drawn uniformly",
       .source = "Zandieh et al. 2023, arXiv:2302.02451",
       .paraphrase = "KDEformer draws keys with probabilities that grow with the norms of their values",
       .definition = "E |o' - o|^2 of value-norm over that of uniform (row_mse), the median over inputs; " + measured,
       .threshold = "1: equal errors; intervals that hold 1 and lie within a factor of 1.05 of it count as equal",
       .expected = Ruling::open,
       .because = "large values make large errors, but a key of much weight and a small value is drawn too "
                  "rarely; normal values of 16 numbers differ little in norm"},
      [=, &recipe] { return below_where(1, ratios(recipe, all, norms, uniform, "row_mse"), {}, 1.05); });
}

const bool registered = add(RecipeEntry{
    .text = {.name = "sampling-laws",
             .summary = "Sampled keys: errors on their laws",
             .formula = "Do rows from sampled keys have the errors of the closed forms, and which law errs least at "
                        "equal numbers of draws?",
             .reference = "Lee et al. 2026, arXiv:2605.01910"},
    .write = write});

}  // namespace
}  // namespace attnbench::sampling_laws_recipe
