// Codes of a width. Source 001 makes attention to a codebook from a mixture of Gaussians whose width goes to zero. The
// limit is not needed: the width multiplies each row by exp(width^2 |q|^2 / 2), which cancels (methods.md D4). Sampled
// Gaussians show it: what differs is noise, and falls as the square root of their number for every width.
#include <fmt/format.h>

#include "harness/runner/recipe.hpp"

namespace attnbench {
namespace {

const Description text{.name = "code-width",
                       .summary = "Attention to codes that are Gaussians of a width",
                       .formula =
                           "Gaussians around the codes in place of the codes give the same attention, whatever their "
                           "width: no limit is needed.",
                       .reference = "Su 2023, kexue.fm/archives/9862"};

const std::vector<std::string> widths{"0.125", "0.25", "0.5"};

std::vector<Index> samples(RecipeSize size) {
  if (size == RecipeSize::smoke) return {16, 64};
  if (size == RecipeSize::quick) return {256, 1024, 4096, 16384};
  return {256, 1024, 4096, 16384, 65536};
}

std::string experiment(const std::string& width, Index count) {
  return fmt::format("wide-codes:width={},samples={}", width, count);
}

std::vector<std::string> experiments(RecipeSize size) {
  std::vector<std::string> all;
  for (const auto& width : widths)
    for (const Index count : samples(size)) all.push_back(experiment(width, count));
  return all;
}

std::vector<RunRequest> runs(RecipeSize size) {
  std::vector<RunRequest> all;
  for (const auto& spec : experiments(size))
    all.push_back({.experiment = spec,
                   .methods = {"softmax"},
                   .inputs = {"gaussian"},
                   .n = {32},
                   .d = {8},
                   .causal = false,
                   .replicates = size == RecipeSize::smoke ? 2 : 12});
  return all;
}

std::vector<Figure> figures(RecipeSize size) {
  return {figure("code-width", text, "Gaussians around the codes in place of the codes",
                 "Distance of the attention matrices, n = 32, d = 8, with 95 % intervals over inputs; each key has its "
                 "own samples. A width that mattered would be a distance that no number of samples takes away.",
                 {{.title = "gaussian",
                   .where = {{"experiment", experiments(size)}, {"input", "gaussian"}, {"d", 8}},
                   .x = {"samples"},
                   .x_label = "samples of each Gaussian",
                   .x_scale = "log2",
                   .y = "distance",
                   .y_label = "|A' - A| / |A|",
                   .y_scale = "log10",
                   .series = {"width"},
                   .slope = true}})};
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  const Index fewest = samples(size).front(), most = samples(size).back();
  const auto at = [&](const std::string& width, Index count) {
    return results.scalar({{"experiment", experiment(width, count)}}, "distance");
  };
  std::vector<Comparison> comparisons;
  for (const auto& width : widths)
    comparisons.push_back(
        {"width " + width, ratio(at(width, most), at(width, fewest), share_of_error_rate(widths.size()))});
  const double noise = std::sqrt(static_cast<double>(fewest) / static_cast<double>(most));
  return {all_below(1.5 * noise,
                    fmt::format("Gaussians around the codes give the attention to the codes, whatever their width: the "
                                "distance falls as the noise of samples does, from {} to {} of them (below 1.5 times "
                                "{:.3g})",
                                fewest, most, noise),
                    comparisons)};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
