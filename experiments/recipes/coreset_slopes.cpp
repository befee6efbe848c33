// Thinformer's error against the size of its coreset, beside that of a uniform coreset: order 1 / keep up to logarithms
// and a rank, against keep^(-1/2) (methods.md E8). The uniform coreset is of the same code: of each pair of keys a coin
// keeps one. An exponent is the least-squares slope over all sizes, in logarithms, of one draw. Kernel halving may
// depart from coins only in blocks of more pairs than its failure bound (about 7, in units of the kernel) times the
// rank, so the smallest coreset has 64 keys: its last block has 64 pairs.
#include <fmt/format.h>

#include <map>

#include "harness/runner/recipe.hpp"
#include "harness/statistics/power_law.hpp"

namespace attnbench::coreset_slopes_recipe {
namespace {

const std::vector<std::string> halvings{"kernel", "coin"};

std::string thinformer(Index keep, const std::string& halving) {
  return fmt::format("thinformer:keep={}{}", keep, halving == "coin" ? ",halving=coin" : "");
}

// The exponent of the error in keep, one for each replicate that has all sizes.
std::vector<double> exponents(const Cells& cells, const std::vector<Index>& sizes, const std::string& halving) {
  std::map<Index, std::vector<double>> errors;
  for (const Index keep : sizes)
    for (const auto& [replicate, error] : cells.method(thinformer(keep, halving)).scalar("relative_output_error"))
      errors[replicate].push_back(error);
  const std::vector<double> x(sizes.begin(), sizes.end());
  std::vector<double> all;
  for (const auto& [replicate, y] : errors)
    if (y.size() == x.size()) all.push_back(exponent(x, y));
  return all;
}

void write(Recipe& recipe) {
  const auto sizes = recipe.sized<std::vector<Index>>({4, 8, 16}, {64, 128, 256, 512}, {64, 128, 256, 512, 1024});
  const Index n = recipe.sized<Index>(64, 4096, 8192);
  const std::vector<Index> few{2, 4}, many{16, 64};
  // In few dimensions the errors of two draws differ by a factor of 3, and an exponent of one draw by 0.4.
  const Index replicates = recipe.sized<Index>(2, 32), of_few = recipe.sized<Index>(2, 32, 128);
  RunRequest request{.experiment = "attention-error:matrix=false",
                     .methods = {"uniform"},
                     .inputs = {"gaussian:scale=0.5"},
                     .n = {n},
                     .d = many,
                     .causal = false,
                     .replicates = replicates};
  for (const auto& halving : halvings)
    for (const Index keep : sizes) request.methods.push_back(thinformer(keep, halving));
  RunRequest in_few = request;
  in_few.d = few;
  in_few.replicates = of_few;
  const Cells all = recipe.run(request) + recipe.run(in_few);
  const std::string draws = fmt::format("{} draws in 2 and 4 dimensions and {} in more", of_few, replicates);

  std::vector<Panel> panels;
  for (const Index d : {few[0], few[1], many[0], many[1]})
    panels.push_back({.title = fmt::format("d = {}", d),
                      .cells = all.where({{"d", d}}),
                      .x = {"keep"},
                      .x_label = "keys in the coreset",
                      .x_scale = "log2",
                      .y = "relative_output_error",
                      .y_label = "|A'V - AV| / |AV|  (Frobenius)",
                      .y_scale = "log10",
                      .interval = "median",
                      .references = {"uniform"},
                      .slope = true});
  recipe.figure("coreset-slopes", "Error against the size of the coreset, thinned by a kernel and by coins",
                fmt::format("Normal q and k of standard deviation 1/2, n = {}, bidirectional; medians with 95 % "
                            "intervals over {}. Dotted: the mean of V.",
                            n, draws),
                panels);

  const auto compared = [=, &recipe](const std::string& halving, const std::vector<Index>& dimensions) {
    std::vector<Comparison> comparisons;
    for (const Index d : dimensions)
      comparisons.push_back({fmt::format("d = {}", d), median_of(exponents(all.where({{"d", d}}), sizes, halving),
                                                                 recipe.error_rate(dimensions.size()))});
    return comparisons;
  };
  const std::string definition = fmt::format(
      "the least-squares exponent a of error = c keep^a over keep = {} to {}, of each draw; error is the relative "
      "Frobenius error of the output; normal q and k of standard deviation 1/2, n = {}, bidirectional, medians over {}",
      sizes.front(), sizes.back(), n, draws);
  recipe.judge(
      {.text = "In two and four dimensions the error of attention to a coreset of kernel halving falls faster than "
               "keep^(-3/4)",
       .source = "Carrell et al. 2025, arXiv:2502.12063, abstract",
       .quotation =
           "sub-Gaussian thinning algorithms like Kernel Halving and Compress can match the quality of uniform "
           "subsampling while substantially reducing the number of summary points.",
       .definition = definition + "; d = 2 and 4",
       .threshold = "-3/4: halfway between the -1 of the paper's bound, up to logarithms and a rank, and the -1/2 of "
                    "uniform sampling",
       .because = "the kernel of few dimensions is of low rank, where the bound is near 1 / keep"},
      [=] { return all_below(-0.75, compared("kernel", few)); });
  recipe.judge(
      {.text = "The error of attention to a uniform coreset falls as keep^(-1/2)",
       .definition = definition + "; of each pair of neighbours a coin keeps one; d = 2, 4, 16 and 64",
       .threshold = "between -0.6 and -0.4. Sampling without replacement lowers the last error to at least (7/8)^(1/2) "
                    "of it, which changes an exponent by 0.03",
       .because = "an average over keep independent keys"},
      [=] {
        std::vector<Index> dimensions = few;
        dimensions.insert(dimensions.end(), many.begin(), many.end());
        return all_between(-0.6, -0.4, compared("coin", dimensions));
      });
  recipe.judge(
      {.text = "With what exponent the error of attention to a coreset of kernel halving falls in 16 and 64 dimensions",
       .source = "Carrell et al. 2025, arXiv:2502.12063",
       .paraphrase = "the error of attention to a thinned coreset is at most of order rank / keep, up to logarithms",
       .definition = definition + "; d = 16 and 64",
       .threshold = "none: the bound has a rank, which the paper leaves to the data. -3/4 is there to be read off",
       .expected = Ruling::measured,
       .because = "the source gives no threshold"},
      [=] { return values_of(compared("kernel", many), {-0.75}); });
  recipe.judge(
      {.text = "By what factor a coreset of kernel halving errs less than a uniform one of the same size",
       .source = "Carrell et al. 2025, arXiv:2502.12063, abstract",
       .quotation =
           "sub-Gaussian thinning algorithms like Kernel Halving and Compress can match the quality of uniform "
           "subsampling while substantially reducing the number of summary points.",
       .definition =
           fmt::format("the relative Frobenius error of the output with keep = {}, of kernel halving over that "
                       "of coins, draw by draw, medians over {}; d = 2, 4, 16 and 64, n = {}",
                       sizes.back(), draws, n),
       .threshold = "none: the source gives no factor. 1/2 and 1 are there to be read off",
       .expected = Ruling::measured,
       .because = "the source gives no threshold"},
      [=, &recipe] {
        std::vector<Comparison> ratios;
        for (const auto& part : all.method(thinformer(sizes.back(), "kernel")).by({"d"})) {
          const Cells coins = all.method(thinformer(sizes.back(), "coin")).where(part.shared);
          ratios.push_back({part.name, median_ratio(part.cells.scalar("relative_output_error"),
                                                    coins.scalar("relative_output_error"), recipe.error_rate(4))});
        }
        return values_of(ratios, {0.5, 1});
      });
}

const bool registered =
    add(RecipeEntry{.text = {.name = "coreset-slopes",
                             .summary = "Thinformer and a uniform coreset: errors against the size of the coreset",
                             .formula = "Does the error of Thinformer fall as one over its coreset, a uniform one's as "
                                        "one over the root?",
                             .reference = "Carrell et al. 2025, arXiv:2502.12063"},
                    .write = write});

}  // namespace
}  // namespace attnbench::coreset_slopes_recipe
