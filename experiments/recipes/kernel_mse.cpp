// The error of random-feature kernel estimates against m, with the closed forms through the points: orthogonal below
// independent, trigonometric against positive. Relative to the kernel, trigonometric features win on independent q and
// k at every scale (|q - k| and |q + k| have one law, and the factor is 1/2); where small weights matter little, as in
// the normalised output, they lose as the scale grows: recipe output-error.
#include <fmt/format.h>

#include "harness/runner/recipe.hpp"

namespace attnbench {
namespace {

// Of independent vectors every closed form is elementary.
const std::vector<std::string> independent{"performer:projection=iid", "performer:features=trig,projection=iid",
                                           "performer:features=hyperbolic,projection=iid"};
const std::vector<std::string> orthogonal{"performer", "performer:features=trig"};
// Standard deviations of the entries, d = 16. At the first the second moments of positive features can be estimated
// from a thousand draws, at the second most of them from some thousands (methods.md, hygiene); at 0.5 no longer.
const std::vector<double> scales{0.25, 0.35};

std::vector<std::string> methods() {
  auto all = independent;
  all.insert(all.end(), orthogonal.begin(), orthogonal.end());
  return all;
}

std::string law(double scale) { return "gaussian:scale=" + nlohmann::json(scale).dump(); }

const Description text{.name = "kernel-mse",
                       .summary = "Kernel estimates: error against the number of features",
                       .formula =
                           "The MSE of random features falls as 1/m, orthogonal projections lie below independent "
                           "ones, and the closed forms pass through the measurements.",
                       .reference = "Choromanski et al. 2020, arXiv:2009.14794, Lemma 2, Theorem 2 and Fig. 4"};

// All draws, whatever they give: to stop when their error looks small would favour small errors.
std::string drawn(RecipeSize size) {
  const auto [draws, pairs] = size == RecipeSize::smoke   ? std::pair{64, 4}
                              : size == RecipeSize::quick ? std::pair{2048, 16}
                                                          : std::pair{16384, 32};
  return fmt::format("kernel-error:draws={},pairs={},precision=0,by_pair=false", draws, pairs);
}

std::vector<std::string> budgets(RecipeSize size) {
  if (size == RecipeSize::smoke) return {"8", "16"};
  if (size == RecipeSize::quick) return {"8", "16", "32"};
  return {"8", "16", "32", "64", "128", "256"};
}

std::vector<RunRequest> runs(RecipeSize size) {
  const bool smoke = size == RecipeSize::smoke;
  RunRequest request{.experiment = drawn(size),
                     .methods = methods(),
                     .inputs = {},
                     .n = {64},
                     .d = {16},
                     .sweep = {{"m", budgets(size)}},
                     .replicates = smoke ? 2 : 12};
  for (const double scale : scales) request.inputs.push_back(law(scale));
  RunRequest real{
      .experiment = smoke ? drawn(size) : "kernel-error:draws=256,pairs=16,by_pair=false",
      .methods = methods(),
      .inputs = {"model"},
      .causal = false,
      .sweep = {{"m", smoke ? std::vector<std::string>{"8", "16"} : std::vector<std::string>{"16", "64", "256"}}},
      .replicates = smoke                       ? 2
                    : size == RecipeSize::quick ? 2
                                                : 4};
  return {request, real};
}

Panel panel(const std::string& input, const std::string& title) {
  return {.title = title,
          .where = {{"experiment", "kernel-error"}, {"input", input}, {"causal", 0}, {"method", methods()}},
          .x = {"m"},
          .x_label = "projection vectors m",
          .x_scale = "log2",
          .y = "relative_mse",
          .y_label = "relative MSE  E (K'/K - 1)^2",
          .y_scale = "log10",
          .theory = "relative_mse_theory"};
}

std::vector<Figure> figures(RecipeSize) {
  std::vector<Panel> panels;
  for (const double scale : scales) panels.push_back(panel(law(scale), law(scale) + ", d = 16"));
  return {
      figure("kernel-mse", text, "Error of the kernel estimate",
             "Mean over pairs of E (K'/K - 1)^2 for K = exp(q.k). Points are measured, with 95 % intervals over "
             "inputs; lines are the closed forms. Orthogonal lies below independent, the more the smaller |q + k|. "
             "Where single draws decide the error, it cannot be estimated and only the closed form is drawn.",
             panels),
      figure(
          "kernel-mse-real", text, "Error of the kernel estimate on a real head",
          "Layer 2, head 1 of the byte-level transformer, d = 64. The error of positive features comes from draws too "
          "rare to be met: no number of draws at hand estimates it, and their closed forms lie far above the axes "
          "(the CSV has them).",
          {panel("model", "real head")})};
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  std::vector<std::pair<std::string, Samples>> estimable;
  size_t points = 0;
  for (const double scale : scales)
    for (const auto& method : independent)
      for (const auto& m : budgets(size)) {
        ++points;
        const nlohmann::json where{{"method", method + ",m=" + m}, {"input", law(scale)}, {"d", 16}};
        const Samples theory = results.scalar(where, "relative_mse_theory");
        Samples quotient = results.scalar(where, "relative_mse");
        if (quotient.empty()) continue;
        for (auto& [replicate, value] : quotient) value /= theory.at(replicate);
        estimable.emplace_back(fmt::format("{},m={} on {}", method, m, law(scale)), quotient);
      }
  std::vector<Comparison> comparisons;
  for (const auto& [what, quotient] : estimable)
    comparisons.push_back({what, mean(quotient, share_of_error_rate(estimable.size()))});
  Verdict verdict = all_contain(1, 0.25,
                                {"The mean squared error of positive, trigonometric and hyperbolic features of "
                                 "independent vectors is that of the closed forms, and falls as 1/m",
                                 Verdict::Outcome::pass, "Choromanski et al. 2020, arXiv:2009.14794, Lemma 2"},
                                comparisons);
  verdict.numbers = fmt::format("measured over closed form, at the {} of {} settings where it can be estimated: {}",
                                estimable.size(), points, verdict.numbers);
  return {verdict};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
