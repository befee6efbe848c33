// The effect of the missing sign fix of a QR factor on positive features (methods.md B). Householder QR gives a Q whose
// first entries all have the same sign; google-research's JAX code, performer-pytorch and fast-transformers do not
// correct it.
// |q + k| = 0.8 here: |q| = |k| = 0.4 at angle 0, along (1, ..., 1) and along e1.
#include <fmt/format.h>

#include "experiments/recipes/field.hpp"

namespace attnbench::sign_fix_recipe {
namespace {

struct Direction {
  std::string name, input;
};
const std::vector<Direction> directions{{"along (1, ..., 1)", "pair:length=0.4,direction=ones"},
                                        {"along e1", "pair:length=0.4,direction=axis"}};

std::string correct(Index d) { return fmt::format("performer:m={}", d); }
std::string raw(Index d) { return fmt::format("performer:sign_fix=false,m={}", d); }

void write(Recipe& recipe) {
  const auto sizes = recipe.sized<std::vector<Index>>({4, 8}, {4, 8, 16, 32, 64});
  Cells all;
  for (const Index d : sizes) {
    // A larger d averages more within a draw, and a draw takes longer. With 4096 draws at d = 4, one replicate in 64
    // had a draw so large that its mean squared error was not estimable.
    const Index draws = std::max<Index>(64, recipe.sized<Index>(64, d == 4 ? 32768 : 16384, 524288) / d);
    all = all + recipe.run({.experiment = fmt::format("kernel-error:draws={},pairs=1,precision=0,by_pair=false", draws),
                            .methods = {correct(d), raw(d)},
                            .inputs = {directions[0].input, directions[1].input},
                            .n = {1},
                            .d = {d},
                            .replicates = recipe.sized<Index>(2, replicates_for_means)});
  }

  std::vector<Panel> panels;
  for (const auto& [name, input] : directions)
    panels.push_back({.title = "q + k " + name,
                      .cells = all.input(input),
                      .x = {"m"},
                      .x_label = "d = m",
                      .x_scale = "log2",
                      .y = "relative_bias",
                      .y_label = "bias  E K'/K - 1"});
  for (size_t i = 0; i < directions.size(); ++i) {
    panels.push_back(panels[i]);
    panels.back().y = "relative_mse";
    panels.back().y_label = "MSE / MSE of the correct code";
    panels.back().ratio_to = "performer";
  }
  recipe.figure("sign-fix", "Bias and error with and without the sign fix of QR",
                "Positive features, m = d, |q + k| = 0.8; 95 % intervals over replicates. Above: the correct code has "
                "no bias, and the raw factor has a bias that depends on the direction. Below: the raw factor's mean "
                "squared error over that of the correct code. An evaluation by MSE prefers the wrong code where the "
                "ratio is below 1.",
                panels);

  const std::string bias_defined =
      "the mean over draws of the estimate of exp(q.k) over exp(q.k), less 1 (kernel-error, relative_bias), of "
      "positive features with block-orthogonal vectors (rows of Q times norms of chi(d)), at d = m = 4 to 64, each "
      "judged, q = k and |q + k| = 0.8";
  const auto biases = [=, &recipe](std::string (*method)(Index), const Direction& direction, size_t intervals) {
    std::vector<Comparison> comparisons;
    for (const Index d : sizes)
      comparisons.push_back(
          {fmt::format("d = {} {}", d, direction.name),
           mean(all.method(method(d)).input(direction.input).scalar("relative_bias"), recipe.error_rate(intervals))});
    return comparisons;
  };
  recipe.judge(
      {.text = "With the Q of a Householder QR factorisation as it is, positive features are biased downwards for q + "
               "k along (1, ..., 1)",
       .definition = bias_defined + ", along (1, ..., 1), with Q as LAPACK's Householder QR of a Gaussian matrix "
                                    "leaves it, without the signs of R's diagonal divided out",
       .threshold = "0: an unbiased estimator has no sign",
       .because = "Mezzadri (2007) proves that this Q is not Haar distributed; its first entries have one sign"},
      [=] { return all_below(0, biases(raw, directions[0], sizes.size())); });
  recipe.judge({.text = "With the signs of R's diagonal divided out of the QR factor, positive features with "
                        "orthogonal vectors have no bias",
                .source = "Mezzadri 2007, arXiv:math-ph/0609050, section 5; Choromanski et al. 2020, arXiv:2009.14794, "
                          "section 2.4",
                .paraphrase = "QR followed by dividing out the phases of R's diagonal gives Haar-distributed Q, and "
                              "orthogonal features made of isotropic vectors stay unbiased",
                .definition = bias_defined + ", along (1, ..., 1) and along e1",
                .threshold = "0, which every interval must hold, with intervals narrower than +-0.03: a fifth of the "
                             "bias of -0.15 that the factor without sign correction has at d = 4 along (1, ..., 1)",
                .because = "Haar-distributed directions with chi-distributed lengths are N(0, I) one by one"},
               [=] {
                 std::vector<Comparison> both;
                 for (const auto& direction : directions)
                   for (const auto& one : biases(correct, direction, 2 * sizes.size())) both.push_back(one);
                 return all_contain(0, 0.03, both);
               });
  recipe.judge({.text = "Positive features have a lower mean squared error with the Q of Householder QR as it is, "
                        "which biases them, than with its signs corrected",
                .definition = fmt::format(
                    "mean over draws of (K'/exp(q.k) - 1)^2 (kernel-error, relative_mse) with Q as LAPACK leaves it "
                    "over that with the signs of R's diagonal divided out, the same inputs, each over as many draws; "
                    "the median over {} such pairs, as squared errors of few dimensions are too skewed for an interval "
                    "of their mean. d = m = 4 to 64, q = k, |q + k| = 0.8, along (1, ..., 1) and along e1. Below 1 an "
                    "evaluation by the mean squared error prefers the wrong code",
                    replicates_for_means),
                .threshold = equal_errors,
                .expected = Ruling::open,
                .because = "nothing is known beforehand"},
               [=, &recipe] {
                 std::vector<Region> regions;
                 for (const auto& [name, input] : directions)
                   for (const Index d : sizes) {
                     const Cells here = all.input(input);
                     regions.push_back({fmt::format("d = {} {}", d, name),
                                        {{"", median_ratio(here.method(raw(d)).scalar("relative_mse"),
                                                           here.method(correct(d)).scalar("relative_mse"),
                                                           recipe.error_rate(2 * sizes.size()))}}});
                   }
                 return errs_less_where(regions);
               });
}

const bool registered =
    add(RecipeEntry{.text = {.name = "sign-fix",
                             .summary = "QR without the sign fix: a bias that a mean squared error does not show",
                             .formula = "Does a raw Householder QR factor bias positive features, and does a mean "
                                        "squared error show it?",
                             .reference = "Mezzadri 2007, arXiv:math-ph/0609050"},
                    .write = write});

}  // namespace
}  // namespace attnbench::sign_fix_recipe
