// Codes with a Gaussian width. Su (kexue.fm/archives/9862) derives attention to a codebook from a mixture of Gaussians
// whose width goes to zero. The limit is not needed: the width multiplies each row by exp(width^2 |q|^2 / 2), which
// cancels (methods.md D4). Sampled Gaussians show this: at every width the difference is noise, which falls as one over
// the square root of their number.
#include <fmt/format.h>

#include <cmath>

#include "harness/runner/recipe.hpp"

namespace attnbench::code_width_recipe {
namespace {

const std::vector<std::string> widths{"0.125", "0.25", "0.5"};

void write(Recipe& recipe) {
  const auto samples =
      recipe.sized<std::vector<Index>>({16, 64}, {256, 1024, 4096, 16384}, {256, 1024, 4096, 16384, 65536});
  Cells all;
  for (const auto& width : widths)
    for (const Index count : samples)
      all = all + recipe.run({.experiment = fmt::format("wide-codes:width={},samples={}", width, count),
                              .methods = {"softmax"},
                              .inputs = {"gaussian"},
                              .n = {32},
                              .d = {8},
                              .causal = false,
                              .replicates = recipe.sized<Index>(2, 32)});
  recipe.figure("code-width", "Gaussians around the codes in place of the codes",
                "Distance of the attention matrices, n = 32, d = 8: medians with 95 % intervals over inputs; each key "
                "has its own samples. A width that changed the attention would leave a distance that no number of "
                "samples takes away.",
                {{.title = "gaussian",
                  .cells = all,
                  .x = {"samples"},
                  .x_label = "samples of each Gaussian",
                  .x_scale = "log2",
                  .y = "distance",
                  .y_label = "|A' - A| / |A|",
                  .y_scale = "log10",
                  .interval = "median",
                  .series = {"width"},
                  .slope = true}});

  const Index fewest = samples.front(), most = samples.back();
  const double noise = std::sqrt(static_cast<double>(fewest) / static_cast<double>(most));
  recipe.judge(
      {.text = "Gaussians of width 1/8, 1/4 or 1/2 around the codes, in place of the codes, leave softmax attention as "
               "it is but for sampling noise",
       .definition = fmt::format(
           "A is softmax attention to n = 32 keys, which stand for the codes of vector quantisation. A' has the mean "
           "of exp(q.w) over samples w of N(k, width^2 I), drawn for each key, in place of exp(q.k); rows are "
           "normalised. |A' - A| / |A| (Frobenius) with {} samples of each Gaussian over the same with {}; normal q "
           "and k, d = 8, times d^-1/4, bidirectional, medians over {} inputs. The cited derivation of Transformer-VQ "
           "takes the limit of width 0 (kexue.fm/archives/9862)",
           most, fewest, all.all().front().replicates),
       .threshold = fmt::format("between {0:.3g} / 1.5 and 1.5 x {0:.3g}: the noise of samples alone falls by this "
                                "factor. A bias that makes three quarters of the distance with the most samples, added "
                                "to the noise in squares, reaches the upper bound",
                                noise),
       .because = "the width multiplies each row by exp(width^2 |q|^2 / 2), which the normalisation cancels"},
      [=, &recipe] {
        std::vector<Comparison> comparisons;
        for (const auto& width : widths) {
          const Cells here = all.where({{"width", std::stod(width)}});
          comparisons.push_back({"width " + width, median_ratio(here.where({{"samples", most}}).scalar("distance"),
                                                                here.where({{"samples", fewest}}).scalar("distance"),
                                                                recipe.error_rate(widths.size()))});
        }
        return all_between(noise / 1.5, 1.5 * noise, comparisons);
      });
}

const bool registered =
    add(RecipeEntry{.text = {.name = "code-width",
                             .summary = "Attention to codes that are Gaussians of a width",
                             .formula = "Does attention to a codebook change when the codes are Gaussians of a width?",
                             .reference = "Su 2023, kexue.fm/archives/9862"},
                    .write = write});

}  // namespace
}  // namespace attnbench::code_width_recipe
