// The error of random-feature kernel estimates against m, with the closed forms through the points: orthogonal below
// independent, trigonometric against positive. Relative to the kernel, trigonometric features win on independent q and
// k at every scale (|q - k| and |q + k| have one law, and the factor is 1/2); where small weights matter little, as in
// the normalised output, they lose as the scale grows: recipe output-error.
#include "harness/runner/recipe.hpp"

namespace attnbench {
namespace {

const std::vector<std::string> methods{"performer:projection=iid", "performer",
                                       "performer:features=trig,projection=iid", "performer:features=trig"};
// Standard deviations of the entries, d = 16. At the first the second moments of positive features can be estimated
// from a thousand draws, at the second most of them from some thousands (methods.md, hygiene); at 0.5 no longer.
const std::vector<double> scales{0.25, 0.35};

std::string law(double scale) { return "gaussian:scale=" + nlohmann::json(scale).dump(); }

const Description text{.name = "kernel-mse",
                       .summary = "Kernel estimates: error against the number of features",
                       .formula =
                           "The MSE of random features falls as 1/m, orthogonal projections lie below independent "
                           "ones, and the closed forms pass through the measurements.",
                       .reference = "Choromanski et al. 2020, arXiv:2009.14794, Lemma 2, Theorem 2 and Fig. 4"};

std::vector<RunRequest> runs(RecipeSize size) {
  const bool smoke = size == RecipeSize::smoke;
  RunRequest request{.experiment = smoke                       ? "kernel-error:draws=64,pairs=4"
                                   : size == RecipeSize::quick ? "kernel-error:draws=4096,pairs=64"
                                                               : "kernel-error:draws=65536,pairs=64",
                     .methods = methods,
                     .inputs = {},
                     .n = {64},
                     .d = {16},
                     .sweep = {{"m", smoke ? std::vector<std::string>{"8", "16"}
                                           : std::vector<std::string>{"8", "16", "32", "64", "128", "256"}}},
                     .replicates = smoke ? 2 : 8};
  for (const double scale : scales) request.inputs.push_back(law(scale));
  RunRequest real{
      .experiment = smoke ? "kernel-error:draws=64,pairs=4" : "kernel-error:draws=256,pairs=64",
      .methods = methods,
      .inputs = {"model"},
      .causal = false,
      .sweep = {{"m", smoke ? std::vector<std::string>{"8", "16"} : std::vector<std::string>{"16", "64", "256"}}},
      .replicates = smoke ? 2 : 4};
  return {request, real};
}

Panel panel(const std::string& input, const std::string& title) {
  return {.title = title,
          .where = {{"experiment", "kernel-error"}, {"input", input}, {"causal", 0}, {"method", methods}},
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
             "Mean over 64 pairs of E (K'/K - 1)^2 for K = exp(q.k). Points are measured, with 95 % intervals over "
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

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures});

}  // namespace
}  // namespace attnbench
