// Estimates of exp(q.k) from trigonometric features can be negative, and their relative variance explodes where
// exp(q.k) is small. methods.md A2: MSE = e^s (1 - e^-|q-k|^2)^2 / 2m with s = |q|^2 + |k|^2, so the error relative to
// exp(q.k) vanishes with |q - k| and grows as e^(|q-k|^2); that of positive features is e^(|q+k|^2) - 1. For a pair
// with d = 4, |q+k|^2 = 0.545 and |q-k|^2 = 0.393, at 8 features: 0.0906 against 0.0195.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/recipes/closed_forms.hpp"

namespace attnbench::trig_sign_recipe {
namespace {

const std::string positive8 = "performer:m=8,projection=iid",
                  trig8 = "performer:features=trig,m=8,projection=iid,count=features";
// Each has eight features.
const Specs of_a_pair{positive8,
                      "performer:m=8",
                      "performer:m=8,projection=simplex",
                      "performer:features=hyperbolic,m=8,projection=iid,count=features",
                      "performer:features=hyperbolic,m=8,count=features",
                      trig8,
                      "performer:features=trig,m=8,count=features"};
const std::string length = "0.4843", angle = "1.4087";  // of that pair
const std::vector<double> scales{0.25, 0.5, 0.7, 1, 1.5};
const std::string trig = "performer:features=trig";

std::string law(double scale) { return fmt::format("gaussian:scale={:g}", scale); }
std::string pair(const std::string& at) { return fmt::format("pair:length={},angle={}", length, at); }

void draw(Recipe& recipe, const Cells& matrices, const Cells& pairs, Index n) {
  const Panel negative{.title = "weights below zero",
                       .cells = matrices,
                       .x = {"scale"},
                       .x_label = "standard deviation of the entries of Q and K",
                       .y = "fraction_negative",
                       .y_label = "share of the entries of A'"};
  Panel rows = negative;
  rows.title = "rows whose weights sum to less than zero";
  rows.y = "fraction_nonpositive_normalisers";
  rows.y_label = "share of the rows";
  const Panel error{.title = fmt::format("8 features, d = 4, |q| = |k| = {}", length),
                    .cells = pairs,
                    .x = {"angle"},
                    .x_label = "angle between q and k (radians)",
                    .y = "relative_mse",
                    .y_label = "relative MSE  E (K'/exp(q.k) - 1)^2",
                    .y_scale = "log10",
                    .theory = "relative_mse_theory"};
  recipe.figure("trig-sign", "Where trigonometric features go below zero, and where they err least",
                fmt::format("Left: d = 64, m = 256, n = {}, bidirectional; 95 % intervals over 32 inputs and draws. "
                            "Right: measured errors on their closed forms (lines), as many features each.",
                            n),
                {negative, rows, error});
}

void judge_signs(Recipe& recipe, const Cells& matrices, Index n) {
  const auto by_scale = [=, &recipe](const std::string& metric) {
    std::vector<Region> regions;
    for (const double scale : scales)
      regions.push_back({.name = fmt::format("scale {:g}", scale),
                         .comparisons = {{"", median_of(matrices.method(trig).input(law(scale)).scalar(metric),
                                                        recipe.error_rate(scales.size()))}},
                         .coordinate = scale});
    return regions;
  };
  const std::string inputs = fmt::format(
      "d = 64, m = 256 orthogonal vectors (sine and cosine of each), n = {}, no mask, the median over 32 inputs and "
      "draws, by scale: the standard deviation of the entries of Gaussian Q and K before the factor d^-1/2 of the "
      "logits",
      n);
  recipe.judge(
      {.text = "At Gaussian queries and keys of large scale, trigonometric features give some rows of attention a "
               "normaliser that is not positive",
       .source = "Choromanski et al. 2020, arXiv:2009.14794, section 2.3",
       .quotation = "This results in abnormal behaviours, e.g. negative-diagonal-values renormalizers D^-1, "
                    "and consequently either completely prevents training or leads to sub-optimal models.",
       .definition = "the share of rows whose kernel estimates sum to 0 or less (attention-error, "
                     "fraction_nonpositive_normalisers), " +
                     inputs,
       .threshold = fmt::format("half a row of {}: above it, one row at least", n),
       .expected = Ruling::depends,
       .because = "the variance grows as exp(|q - k|^2) and the row's sum does not"},
      [=] { return above_where(0.5 / static_cast<double>(n), by_scale("fraction_nonpositive_normalisers"), "scale"); });
  recipe.judge({.text = "How large a share of attention weights trigonometric features estimate below zero, at "
                        "Gaussian queries and keys",
                .definition = "the share of entries of the attention matrix below zero (attention-error, "
                              "fraction_negative), scales 0.25 to 1.5, " +
                              inputs,
                .threshold = "the source gives no share: the values, and how many of the scales lie below 0.001, 0.01 "
                             "and 0.1",
                .expected = Ruling::measured,
                .because = "no number is claimed; one half is the limit of noise alone"},
               [=] {
                 std::vector<Comparison> shares;
                 for (const Region& region : by_scale("fraction_negative"))
                   shares.push_back({region.name, region.comparisons[0].estimate});
                 return values_of(shares, {0.001, 0.01, 0.1});
               });
}

void judge_pair(Recipe& recipe, const Cells& pairs, const Specs& angles) {
  recipe.judge(
      {.text = fmt::format(
           "With 8 features each, d = 4 and |q| = |k| = {}, positive features err less than trigonometric ones",
           length),
       .source = "Choromanski et al. 2020, arXiv:2009.14794, section 2.3",
       .quotation =
           "We demonstrate empirically that this is what happens for SM^trig_m and provide detailed theoretical "
           "explanations showing that the variance of SM^trig_m is large as approximated values tend to 0 "
           "(see: Section 3).",
       .definition = fmt::format(
           "mean over draws of (K'/exp(q.k) - 1)^2 (kernel-error, relative_mse), K' the estimate, of 8 trigonometric "
           "features (four vectors, sine and cosine of each) over that of 8 positive ones (eight vectors), independent "
           "vectors, over {} replicates of draws, by the angle between q and k in radians. The source claims a large "
           "variance of trigonometric features where exp(q.k) is small, that is at large angles",
           replicates_for_means),
       .threshold = "1: equal errors",
       .expected = Ruling::depends,
       .because = "by the closed forms the order changes at one angle"},
      [=, &recipe] {
        std::vector<Region> regions;
        for (const auto& at : angles) {
          const Cells here = pairs.input(pair(at));
          regions.push_back({.name = "angle " + at,
                             .comparisons = {{"", mean_ratio(here.method(trig8).scalar("relative_mse"),
                                                             here.method(positive8).scalar("relative_mse"),
                                                             recipe.error_rate(angles.size()))}},
                             .coordinate = std::stod(at)});
        }
        return above_where(1, regions, "angle");
      });
  recipe.judge(
      {.text = "At |q + k|^2 = 0.545, |q - k|^2 = 0.393 and 8 features, the errors of random-feature estimators that "
               "draws can estimate agree with their closed forms",
       .source = "Choromanski et al. 2020, arXiv:2009.14794, section 3, Lemma 2, for independent vectors; the others "
                 "are our own",
       .paraphrase =
           "the mean squared errors of trigonometric, positive and hyperbolic features with independent vectors",
       .definition =
           fmt::format("the mean over draws of (K'/K - 1)^2 (kernel-error, relative_mse), K' the estimate of K = "
                       "exp(q.k), over its closed form, the mean over {} replicates, d = 4. Seven estimators: positive "
                       "and hyperbolic features with independent and with orthogonal vectors, trigonometric ones with "
                       "both, and positive ones with simplex vectors. Judged are those in which no replicate owes a "
                       "tenth of its squared error to one draw: of the others draws do not estimate the error. Closed "
                       "forms with orthogonal and simplex vectors are derived by this project",
                       replicates_for_means),
       .threshold = "1, which every interval must hold, with intervals narrower than +-0.25: the seven values lie "
                    "between 0.0089 and 0.0905",
       .because = "the closed forms are proved or derived"},
      [=, &recipe] {
        const Cells here = pairs.input(pair(angle));
        std::vector<std::string> words;
        for (const auto& method : of_a_pair)
          words.push_back(fmt::format("{:.4f} of {}", here.method(method).scalar("relative_mse_theory").at(0), method));
        Finding finding = on_closed_forms(recipe, here, 0.25);
        finding.numbers += fmt::format("; closed forms: {}", fmt::join(words, ", "));
        return finding;
      });
}

void write(Recipe& recipe) {
  const Index n = recipe.sized<Index>(64, 128, 512);
  Specs inputs;
  for (const double scale : scales) inputs.push_back(law(scale));
  const auto angles = recipe.sized<Specs>({angle, "2.8"}, {angle, "1.8", "2.2", "2.8"},
                                          {"0.3", "0.7", "1.1", angle, "1.8", "2.2", "2.8"});
  const Cells matrices = recipe.run({.experiment = "attention-error:by_row=false",
                                     .methods = {"performer", trig},
                                     .inputs = inputs,
                                     .n = {n},
                                     .causal = false,
                                     .replicates = recipe.sized(2, 32)});
  const Cells pairs = recipe.run({.experiment = draws_of_a_pair(recipe.sized<Index>(64, 1024, 12288)),
                                  .methods = of_a_pair,
                                  .inputs = {"pair:length=" + length},
                                  .n = {1},
                                  .d = {4},
                                  .sweep = {{"angle", angles}},
                                  .replicates = recipe.sized<Index>(2, replicates_for_means)});
  draw(recipe, matrices, pairs, n);
  judge_signs(recipe, matrices, n);
  judge_pair(recipe, pairs, angles);
}

const bool registered =
    add(RecipeEntry{.text = {.name = "trig-sign",
                             .summary = "Negative weights and the variance of trigonometric features",
                             .formula = "Where do trigonometric features estimate weights and normalisers below zero, "
                                        "and where do they err more than positive ones?",
                             .reference = "Choromanski et al. 2020, arXiv:2009.14794, section 2.3"},
                    .write = write});

}  // namespace
}  // namespace attnbench::trig_sign_recipe
