// Projection ensembles that match moments or take the nodes of a quadrature rule, beside independent and orthogonal
// vectors at equal m, on their closed forms. methods.md B9 to B11. Errors are against exp(q.k), so that they include
// the biases of moment matching and of the rule.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/recipes/closed_forms.hpp"
#include "harness/figures/looks.hpp"

namespace attnbench::quadrature_and_moments_recipe {
namespace {

// Standard deviations of the entries, d = 16: at larger ones a thousand draws do not estimate the errors.
const Specs inputs{"gaussian:scale=0.15", "gaussian:scale=0.25"};
const std::string real_head = "model:layer=2,head=0";
const std::string spectraformer = "Nguyen et al. 2024, arXiv:2405.15310";

Specs methods_of(const Specs& projections) {
  Specs all;
  for (const auto& projection : projections) all.push_back("performer:projection=" + projection);
  return all;
}

Cells with(const std::string& projection, const Cells& cells) { return cells.where({{"projection", projection}}); }

// The median over inputs of one ensemble's metric over another's, for each input law and each m. Settings where one of
// the two cannot be estimated in some input are left out.
std::vector<Region> ratios(const Recipe& recipe, const Cells& cells, const std::string& projection,
                           const std::string& over, const std::string& metric) {
  const auto settings = with(projection, cells).by({"input", "m"});
  std::vector<Region> regions;
  for (const auto& setting : settings) {
    const Samples mine = setting.cells.scalar(metric), others = with(over, cells).where(setting.shared).scalar(metric);
    if (mine.empty() || mine.size() != others.size()) continue;
    regions.push_back({setting.name, {{setting.name, median_ratio(mine, others, recipe.error_rate(settings.size()))}}});
  }
  return regions;
}

Panel panel(const std::string& title, const Cells& cells) {
  return {.title = title,
          .cells = cells,
          .x = {"m"},
          .x_label = "projection vectors m",
          .x_scale = "log2",
          .y = "softmax_mse",
          .y_label = "relative MSE  E (K'/exp(q.k) - 1)^2",
          .y_scale = "log10",
          .theory = "softmax_mse_theory"};
}

void write(Recipe& recipe) {
  const auto budgets = recipe.sized<Specs>({"32"}, {"32"}, {"32", "64", "128", "256"});
  const RunRequest request{.experiment = fmt::format("kernel-error:draws={},pairs={},precision=0,by_pair=false",
                                                     recipe.sized(64, 1024, 4096), recipe.sized(4, 4, 8)),
                           .methods = methods_of({"iid", "orthogonal", "moment-matched", "gauss-hermite", "fastfood"}),
                           .inputs = inputs,
                           .n = {64},
                           .d = {16},
                           .sweep = {{"m", budgets}},
                           .replicates = recipe.sized<Index>(2, replicates_for_means)};
  RunRequest on_head = request;  // for the kernels' closed forms: no number of draws estimates the errors
  on_head.experiment = "kernel-error:draws=64,pairs=16,by_pair=false";
  on_head.methods = methods_of({"moment-matched", "gauss-hermite"});
  on_head.inputs = {real_head};
  on_head.n = on_head.d = {};
  on_head.sweep = {{"m", recipe.sized<Specs>({"128"}, {"128"}, {"128", "256"})}};
  on_head.replicates = recipe.sized<Index>(2, 32);  // texts that the model has heads of
  const Cells normal = recipe.run(request), head = recipe.run(on_head);

  std::vector<Panel> panels;
  for (const auto& input : inputs)
    panels.push_back(panel(printed_spec("inputs", input) + ", d = 16", normal.input(input)));
  recipe.headline(10, "Do matched moments or quadrature nodes beat random vectors?");
  recipe.figure("quadrature-and-moments", "Error of the kernel estimate by ensemble",
                "Positive features. Mean over pairs of E (K'/exp(q.k) - 1)^2, biases included. Points are measured, "
                "with 95 % intervals over inputs; lines are the closed forms, of which Fastfood has none.",
                panels);

  const std::string on_normal = fmt::format(
      "positive features; normal q and k of d = 16, entries of standard deviation 0.15 and 0.25 before the scaling by "
      "d^-1/4, {} inputs, m = {}",
      request.replicates, fmt::join(budgets, ", "));
  recipe.judge(
      {.text = "The kernel estimate from moment-matched vectors has no bias",
       .source = spectraformer,
       .paraphrase = "moment matching is one of the weight matrices that approximate the softmax kernel",
       .definition =
           "the mean over pairs of E K'/exp(q.k) - 1 (kernel-error, softmax_bias), the mean over inputs; " + on_normal,
       .threshold = "0, which every interval must hold, with intervals narrower than +-0.002",
       .expected = Ruling::refuted,
       .because = "a row is the first d coordinates of a uniform vector in m - 1 dimensions, whose kernel is below "
                  "exp(q.k) by a share of |q + k|^4 / (4 (m - 1))"},
      [=, &recipe] {
        const Cells cells = with("moment-matched", normal);
        std::vector<Comparison> biases;
        for (const Cells& one : cells.one_by_one())
          biases.push_back({name_of(one), mean(one.scalar("softmax_bias"), recipe.error_rate(cells.size()))});
        return all_contain(0, 0.002, biases);
      });
  recipe.judge({.text = "Where draws can estimate them, the errors of moment-matched and of Gauss-Hermite vectors are "
                        "their closed forms",
                .definition = "the mean over draws and pairs of (K'/K - 1)^2 about the mean K of the ensemble "
                              "(kernel-error, relative_mse) over its closed form, the mean over inputs; " +
                              on_normal,
                .threshold = "1, which every interval must hold, with intervals narrower than +-0.25",
                .because = "both laws of the vectors are known exactly: frames of more dimensions, and a finite grid"},
               [=, &recipe] {
                 return on_closed_forms(recipe, with("moment-matched", normal) + with("gauss-hermite", normal), 0.25);
               });
  const auto closed = [&](const std::string& text, const std::string& projection, const std::string& over,
                          Ruling expected, const std::string& because) {
    recipe.judge({.text = text,
                  .definition = fmt::format("the closed form of the mean over pairs of E (K'/exp(q.k) - 1)^2, bias "
                                            "included (kernel-error, softmax_mse_theory), of {} over that of {} "
                                            "vectors, the median over inputs; {}",
                                            projection, over, on_normal),
                  .threshold = "1: equal errors; intervals that hold 1 and lie within a factor of 1.05 of it count as "
                               "equal",
                  .expected = expected,
                  .because = because},
                 [=, &recipe] {
                   return below_where(1, ratios(recipe, normal, projection, over, "softmax_mse_theory"), {}, 1.05);
                 });
  };
  closed("At equal m moment-matched vectors err less than orthogonal ones", "moment-matched", "orthogonal",
         Ruling::open,
         "all rows of a draw repel one another, where orthogonal ones do within a block; but they are "
         "biased");
  closed("At equal m draws of Gauss-Hermite nodes err less than independent normal vectors", "gauss-hermite", "iid",
         Ruling::open, "nodes have no tail, which lowers the variance; the rule is biased by its first missed power");
  recipe.judge(
      {.text = "Fastfood's error is at most that of independent vectors",
       .source = "Le, Sarlos and Smola 2013, arXiv:1408.3060",
       .paraphrase = "Fastfood's variance is close to that of independent Gaussian vectors",
       .definition = "E (K'/exp(q.k) - 1)^2 of fastfood over that of iid vectors (kernel-error, softmax_mse), the "
                     "median over inputs; settings where draws do not estimate both are left out; " +
                     on_normal,
       .threshold = "1: equal errors; intervals that hold 1 and lie within a factor of 1.05 of it count as equal",
       .expected = Ruling::open,
       .because = "rows of a block are orthogonal in the mean only"},
      [=, &recipe] { return below_where(1, ratios(recipe, normal, "fastfood", "iid", "softmax_mse"), {}, 1.05); });
  recipe.judge(
      {.text =
           "How far below exp(q.k) the kernels of moment-matched and of Gauss-Hermite vectors lie on a trained head",
       .definition = fmt::format("the mean over 16 pairs of the ensemble's kernel over exp(q.k), less 1 (kernel-error, "
                                 "target_bias), the median over {} texts at layer 2, head 0 of the project's "
                                 "byte-level model, d = 64",
                                 on_head.replicates),
       .threshold = "no source gives a share: the values, and how many lie below -0.5 and -0.1",
       .expected = Ruling::measured,
       .because = "|q + k|^2 is far beyond the range where the expansions in 1/m and in powers of q + k hold"},
      [=, &recipe] {
        const Cells cells = with("moment-matched", head) + with("gauss-hermite", head);
        std::vector<Comparison> biases;
        for (const Cells& one : cells.one_by_one())
          biases.push_back({name_of(one), median_of(one.scalar("target_bias"), recipe.error_rate(cells.size()))});
        return values_of(biases, {-0.5, -0.1});
      });
}

const bool registered = add(
    RecipeEntry{.text = {.name = "quadrature-and-moments",
                         .summary = "Matched moments and quadrature nodes: errors of the kernel estimate",
                         .formula = "Do moment-matched, Gauss-Hermite or Fastfood vectors err less than independent "
                                    "and orthogonal ones at equal m, and which of them is biased?",
                         .reference = spectraformer},
                .write = write});

}  // namespace
}  // namespace attnbench::quadrature_and_moments_recipe
