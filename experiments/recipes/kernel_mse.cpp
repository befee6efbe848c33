// The error of random-feature kernel estimates against m, with the closed forms through the points: orthogonal below
// independent, trigonometric against positive. Relative to the kernel, trigonometric features win on independent q and
// k at every scale (|q - k| and |q + k| have the same distribution, and the factor is 1/2). In the normalised output,
// where small weights matter little, they lose as the scale grows: recipe output-error.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/recipes/closed_forms.hpp"
#include "harness/figures/looks.hpp"

namespace attnbench::kernel_mse_recipe {
namespace {

// With independent vectors every closed form is elementary.
const Specs independent{"performer:projection=iid", "performer:features=trig,projection=iid",
                        "performer:features=hyperbolic,projection=iid"};
const Specs orthogonal{"performer", "performer:features=trig"};
// Standard deviations of the entries, d = 16. At the first, a thousand draws estimate the second moments of positive
// features; at the second, some thousands of draws estimate most of them; at 0.5 they cannot be estimated (methods.md,
// hygiene).
const Specs inputs{"gaussian:scale=0.25", "gaussian:scale=0.35"};
const std::string real_head = "model:layer=2,head=0";

Panel panel(const std::string& title, const Cells& cells) {
  return {.title = title,
          .cells = cells,
          .x = {"m"},
          .x_label = "projection vectors m",
          .x_scale = "log2",
          .y = "relative_mse",
          .y_label = "relative MSE  E (K'/K - 1)^2",
          .y_scale = "log10",
          .theory = "relative_mse_theory"};
}

void write(Recipe& recipe) {
  const auto budgets = recipe.sized<Specs>({"8", "16"}, {"8", "16", "32"}, {"8", "16", "32", "64", "128", "256"});
  const RunRequest independent_pairs{
      .experiment = fmt::format("kernel-error:draws={},pairs={},precision=0,by_pair=false", recipe.sized(64, 768, 2048),
                                recipe.sized(4, 4, 8)),
      .methods = independent,
      .inputs = inputs,
      .n = {64},
      .d = {16},
      .sweep = {{"m", budgets}},
      .replicates = recipe.sized<Index>(2, replicates_for_means)};
  RunRequest orthogonal_pairs = independent_pairs, on_head = independent_pairs;
  orthogonal_pairs.methods = orthogonal;
  on_head.experiment = fmt::format("kernel-error:draws={},pairs=16,by_pair=false", recipe.sized(64, 256));
  on_head.methods.insert(on_head.methods.end(), orthogonal.begin(), orthogonal.end());
  on_head.inputs = {real_head};
  on_head.n = on_head.d = {};
  on_head.sweep = {{"m", recipe.sized<Specs>({"8", "16"}, {"16", "64"}, {"16", "64", "256"})}};
  on_head.replicates = recipe.sized(2, 2, 4);
  const Cells judged = recipe.run(independent_pairs), all = judged + recipe.run(orthogonal_pairs);
  const Cells head = recipe.run(on_head);

  std::vector<Panel> panels;
  for (const auto& input : inputs)
    panels.push_back(panel(printed_spec("inputs", input) + ", d = 16", all.input(input)));
  recipe.headline(3, "How noisy are random features?");
  recipe.figure("kernel-mse", "Error of the kernel estimate",
                "Mean over pairs of E (K'/K - 1)^2 for K = exp(q.k), d = 16. Points are measured, with 95 % intervals "
                "over inputs; lines are the closed forms. Orthogonal lies below independent, the more the smaller "
                "|q + k|. Where single draws decide the error, it cannot be estimated and only the closed form is "
                "drawn.",
                panels);
  recipe.figure("kernel-mse-real", "Error of the kernel estimate on a head of a trained model",
                "Layer 2, head 0 of the project's byte-level model, d = 64; each replicate is another text. The error "
                "of positive features comes from draws too rare to be met: no number of draws at hand estimates it, "
                "and their closed forms lie far above the axes (the CSV has them).",
                {panel("layer 2, head 0", head)});

  recipe.judge(
      {.text = "With independent projection vectors the mean squared error of positive, trigonometric and hyperbolic "
               "features is the one that Lemma 2 gives, at every m where draws can estimate it",
       .source = "Choromanski et al. 2020, arXiv:2009.14794, section 3, Lemma 2, eq. 8",
       .quotation = "MSE(SM^trig_m(x,y)) = 1/(2m) exp(|x+y|^2) SM^-2(x,y) (1 - exp(-|x-y|^2))^2, MSE(SM^+_m(x,y)) = "
                    "1/m exp(|x+y|^2) SM^2(x,y) (1 - exp(-|x+y|^2)), MSE(SM^hyp+_m(x,y)) = 1/2 (1 - exp(-|x+y|^2)) "
                    "MSE(SM^+_m(x,y)) [...] for independent random samples omega_i and where MSE stands for the mean "
                    "squared error.",
       .definition = fmt::format(
           "the mean over draws of the vectors and over pairs of q and k of (K'/K - 1)^2 (kernel-error, "
           "relative_mse), K' the estimate of K = exp(q.k), over its closed form, which is the lemma's "
           "over K^2; the mean over {} inputs. Normal q and k of d = 16, entries of standard deviation "
           "0.25 and 0.35 before the scaling by d^-1/4, m = {}. Settings where in some input one draw "
           "holds more than a tenth of the squared error cannot be estimated; they are left out and counted",
           judged.all().front().replicates, fmt::join(budgets, ", ")),
       .threshold =
           "1, which every interval must hold, with intervals narrower than +-0.25: a formula that is wrong by "
           "the factor 2 between vectors and features, or by a power of m, lies outside",
       .because = "the lemma is proved"},
      [=, &recipe] { return on_closed_forms(recipe, judged, 0.25); });
}

const bool registered = add(
    RecipeEntry{.text = {.name = "kernel-mse",
                         .summary = "Kernel estimates: error against the number of features",
                         .formula = "Is the mean squared error of random features the one of the closed forms, and do "
                                    "orthogonal projections lie below independent ones?",
                         .reference = "Choromanski et al. 2020, arXiv:2009.14794, Lemma 2 and Theorem 2"},
                .write = write});

}  // namespace
}  // namespace attnbench::kernel_mse_recipe
