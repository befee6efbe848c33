// Trigonometric features estimate exp(q.k) with either sign, and with a variance that explodes where it is small:
// source 002, after the Performer. methods.md A2: MSE = e^s (1 - e^-|q-k|^2)^2 / 2m with s = |q|^2 + |k|^2, so that the
// error relative to exp(q.k) vanishes with |q - k| and grows as e^(|q-k|^2); that of positive features is
// e^(|q+k|^2) - 1. A pair of d = 4 with |q+k|^2 = 0.545 and |q-k|^2 = 0.393, at 8 features: 0.0906 against 0.0195.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/parameters.hpp"
#include "harness/runner/recipe.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;
using Outcome = Verdict::Outcome;

const std::string positive = "performer", trig = "performer:features=trig";
const std::string positive8 = "performer:m=8,projection=iid",
                  trig8 = "performer:features=trig,m=8,projection=iid,count=features";
// Eight features each.
const Specs of_a_pair{positive8,
                      "performer:m=8",
                      "performer:m=8,projection=simplex",
                      "performer:features=hyperbolic,m=8,projection=iid,count=features",
                      "performer:features=hyperbolic,m=8,count=features",
                      trig8,
                      "performer:features=trig,m=8,count=features"};
const std::string length = "0.4843", angle = "1.4087";  // of that pair

const Description text{.name = "trig-sign",
                       .summary = "Negative weights and the variance of trigonometric features",
                       .formula =
                           "Trigonometric features estimate attention weights with a high variance, and some of them "
                           "below zero; positive features do not.",
                       .reference = "Choromanski et al. 2020, arXiv:2009.14794, section 2.3"};

Specs scales(RecipeSize size) {
  if (size == RecipeSize::smoke) return {"0.25", "1.5"};
  return {"0.25", "0.5", "0.7", "1", "1.5"};
}
Specs angles(RecipeSize size) {
  if (size == RecipeSize::smoke) return {angle, "2.8"};
  if (size == RecipeSize::quick) return {"0.7", angle, "1.8", "2.2", "2.8"};
  return {"0.3", "0.7", "1.1", angle, "1.8", "2.2", "2.8"};
}
Index tokens(RecipeSize size) { return size == RecipeSize::smoke ? 64 : size == RecipeSize::quick ? 128 : 1024; }
std::string draws(RecipeSize size) {
  const Index count = size == RecipeSize::smoke ? 64 : size == RecipeSize::quick ? 4096 : 65536;
  return fmt::format("kernel-error:draws={},pairs=1,precision=0,by_pair=false", count);
}
std::string law(const std::string& scale) { return "gaussian:scale=" + scale; }
std::string pair(const std::string& at) { return fmt::format("pair:length={},angle={}", length, at); }

std::vector<RunRequest> runs(RecipeSize size) {
  const RunRequest matrices{.experiment = "attention-error",
                            .methods = {positive, trig},
                            .inputs = {"gaussian"},
                            .n = {tokens(size)},
                            .causal = false,
                            .sweep = {{"scale", scales(size)}},
                            .replicates = size == RecipeSize::smoke ? 2 : 8};
  const RunRequest pairs{.experiment = draws(size),
                         .methods = of_a_pair,
                         .inputs = {"pair:length=" + length},
                         .n = {1},
                         .d = {4},
                         .sweep = {{"angle", angles(size)}},
                         .replicates = size == RecipeSize::smoke ? 2 : 12};
  return {matrices, pairs};
}

std::vector<Figure> figures(RecipeSize size) {
  Panel negative{.title = "weights below zero",
                 .where = {{"experiment", "attention-error"},
                           {"matrix", true},
                           {"input", "gaussian"},
                           {"n", tokens(size)},
                           {"method", {positive, trig}}},
                 .x = {"scale"},
                 .x_label = "standard deviation of the entries of Q and K",
                 .y = "fraction_negative",
                 .y_label = "share of the entries of A'"};
  Panel rows = negative;
  rows.title = "rows whose weights sum to less than zero";
  rows.y = "fraction_nonpositive_normalisers";
  rows.y_label = "share of the rows";
  const Panel error{.title = fmt::format("8 features, d = 4, |q| = |k| = {}", length),
                    .where = {{"experiment", draws(size)}, {"method", of_a_pair}, {"d", 4}},
                    .x = {"angle"},
                    .x_label = "angle between q and k (radians)",
                    .y = "relative_mse",
                    .y_label = "relative MSE  E (K'/exp(q.k) - 1)^2",
                    .y_scale = "log10",
                    .theory = "relative_mse_theory"};
  return {figure("trig-sign", text, "Where trigonometric features go below zero, and where they err least",
                 fmt::format("Left: d = 64, m = 256, n = {}; 95 % intervals over inputs and draws. Right: measured "
                             "errors on their closed forms (lines), as many features each.",
                             tokens(size)),
                 {negative, rows, error})};
}

Samples negative(const Results& results, const std::string& method, const std::string& scale) {
  return results.scalar({{"experiment", "attention-error"}, {"method", method}, {"input", law(scale)}},
                        "fraction_negative");
}

Verdict judge_signs(const Results& results, RecipeSize size) {
  std::vector<Region> regions;
  for (const auto& scale : scales(size))
    regions.push_back({"entries of scale " + scale,
                       {{"", mean(negative(results, trig, scale), share_of_error_rate(scales(size).size()))}}});
  Verdict verdict =
      below_where(0.01,
                  {"With 256 trigonometric vectors, less than one attention weight in a hundred is below zero",
                   Outcome::conditional},
                  regions);
  verdict.numbers = "share below zero at " + verdict.numbers;
  return verdict;
}

Verdict judge_positive(const Results& results, RecipeSize size) {
  std::vector<Bounded> all;
  for (const auto& scale : scales(size))
    for (const auto& [replicate, share] : negative(results, positive, scale))
      all.push_back({"share below zero at scale " + scale, share, 0});
  return all_at_most("Positive features give no attention weight below zero", all);
}

Samples error(const Results& results, const std::string& method, const std::string& at) {
  return results.scalar({{"method", method}, {"input", pair(at)}}, "relative_mse");
}

Verdict judge_trade(const Results& results, RecipeSize size) {
  std::vector<Region> regions;
  for (const auto& at : angles(size))
    regions.push_back({"angle " + at,
                       {{"", ratio(error(results, trig8, at), error(results, positive8, at),
                                   share_of_error_rate(angles(size).size()))}}});
  Verdict verdict = below_where(
      1,
      {fmt::format("Of 8 features each, trigonometric ones err less than positive ones (d = 4, |q| = |k| = {})",
                   length),
       Outcome::conditional},
      regions);
  verdict.numbers = "MSE over that of positive features at " + verdict.numbers;
  return verdict;
}

// Every estimator of the pair on its closed form.
Verdict judge_closed_forms(const Results& results, RecipeSize) {
  std::vector<Comparison> comparisons;
  std::vector<std::string> words;
  for (const auto& method : of_a_pair) {
    Samples quotient = error(results, method, angle);
    const Samples theory = results.scalar({{"method", method}, {"input", pair(angle)}}, "relative_mse_theory");
    for (auto& [replicate, value] : quotient) value /= theory.at(replicate);
    if (!quotient.empty()) comparisons.push_back({method, mean(quotient, share_of_error_rate(of_a_pair.size()))});
    words.push_back(fmt::format("{:.4f} of {}", theory.at(0), method));
  }
  Verdict verdict = all_contain(1, 0.25,
                                "At |q + k|^2 = 0.545, |q - k|^2 = 0.393 and 8 features, the errors of estimators are "
                                "their closed forms, where draws estimate them",
                                comparisons);
  verdict.numbers += fmt::format("; {} of {} could be estimated; closed forms: {}", comparisons.size(),
                                 of_a_pair.size(), fmt::join(words, ", "));
  return verdict;
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  return {judge_signs(results, size), judge_positive(results, size), judge_trade(results, size),
          judge_closed_forms(results, size)};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
