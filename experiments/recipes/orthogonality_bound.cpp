// Performer's Theorem 2: how much less orthogonal vectors err than independent ones with positive features, m <= d. In
// units of exp(q.k)^2, where the theorem's SM - exp(-(|q|^2 + |k|^2)/2) is 1 - exp(-|q+k|^2/2):
//   MSE_iid - MSE_ort  >=  2 (m - 1) / (m (d + 2)) (1 - exp(-|q+k|^2/2))^2
// MSE_ort is known exactly (methods.md B), so that the theorem can be held against numbers instead of samples.
#include <fmt/format.h>

#include <cmath>

#include "harness/runner/recipe.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;

const std::string experiment = "kernel-error:draws=64,pairs=1,precision=0,by_pair=false";  // for the closed forms
const std::string pair = "pair";                                                           // q = k

const Description text{.name = "orthogonality-bound",
                       .summary = "The Performer's bound on what orthogonal vectors gain",
                       .formula =
                           "With positive features and m <= d orthogonal vectors the mean squared error is below that "
                           "of independent ones by at least 2 (m-1) / (m (d+2)) (SM - exp(-(|q|^2+|k|^2)/2))^2.",
                       .reference = "Choromanski et al. 2020, arXiv:2009.14794, Theorem 2"};

std::vector<Index> sizes(RecipeSize size) {
  if (size == RecipeSize::smoke) return {4};
  return {2, 4, 16, 64};
}
// Up to |q + k|^2 = 16: beyond, rounding is no longer small beside the gain.
Specs lengths(RecipeSize size) {
  if (size == RecipeSize::smoke) return {"0.1", "1"};
  Specs all;
  const double step = size == RecipeSize::quick ? 1.5 : 1.1;
  for (double length = 0.05; length < 2; length *= step) all.push_back(fmt::format("{:.4g}", length));
  return all;
}

std::string independent(Index d) { return fmt::format("performer:m={},projection=iid", d); }
std::string orthogonal(Index d) { return fmt::format("performer:m={}", d); }

std::vector<RunRequest> runs(RecipeSize size) {
  std::vector<RunRequest> all;
  for (const Index d : sizes(size))
    all.push_back({.experiment = experiment,
                   .methods = {independent(d), orthogonal(d)},
                   .inputs = {pair},
                   .n = {1},
                   .d = {d},
                   .sweep = {{"length", lengths(size)}}});
  return all;
}

std::vector<Figure> figures(RecipeSize size) {
  std::vector<Panel> panels;
  for (const Index d : sizes(size))
    panels.push_back(
        {.title = fmt::format("d = m = {}", d),
         .where = {{"experiment", experiment}, {"input", pair}, {"method", {independent(d), orthogonal(d)}}, {"d", d}},
         .x = {"length"},
         .x_label = "length |q| = |k|, half of |q + k|",
         .x_scale = "log10",
         .y = "relative_mse_theory",
         .y_label = "MSE over that of independent vectors",
         .series = {"projection"},
         .ratio_to = independent(d)});
  return {figure("orthogonality-bound", text, "What orthogonal vectors gain",
                 "q = k, positive features: closed forms. The verdict says how near the difference comes to the bound.",
                 panels)};
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  std::vector<Bounded> all;
  double least = 1, greatest = 0;  // of the bound over the gain
  for (const Index d : sizes(size))
    for (const auto& length : lengths(size)) {
      const auto error = [&](const std::string& method) {
        return results
            .scalar({{"method", method}, {"input", pair + ":length=" + length}, {"d", d}}, "relative_mse_theory")
            .at(0);
      };
      const double plus2 = 4 * std::stod(length) * std::stod(length), m = static_cast<double>(d);
      const double bound = 2 * (m - 1) / (m * (m + 2)) * std::pow(1 - std::exp(-plus2 / 2), 2),
                   gain = error(independent(d)) - error(orthogonal(d));
      all.push_back({fmt::format("bound and gain at d = {}, length {}", d, length), bound, gain});
      least = std::min(least, bound / gain);
      greatest = std::max(greatest, bound / gain);
    }
  Verdict verdict =
      all_at_most("Orthogonal vectors err less than independent ones by at least what the theorem says", all);
  verdict.numbers += fmt::format("; the bound is {:.3g} to {:.4g} of the gain", least, greatest);
  return {verdict};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
