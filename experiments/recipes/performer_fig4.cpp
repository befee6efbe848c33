// Performer's Fig. 4: the error of the attention output against m, at its sizes. The paper does not state the scale of
// the inputs, although every ordering in the figure depends on it; here the scale is an axis. Lines are the delta
// method's predictions, to first order in 1/m (methods.md A4).
#include <fmt/format.h>

#include <cmath>

#include "experiments/recipes/closed_forms.hpp"

namespace attnbench::performer_fig4_recipe {
namespace {

struct Map {
  std::string name, orthogonal, independent;
};
const std::vector<Map> maps{{"positive", "performer", "performer:projection=iid"},
                            {"trigonometric", "performer:features=trig", "performer:features=trig,projection=iid"}};
const Specs methods{"uniform", maps[0].orthogonal, maps[0].independent, maps[1].orthogonal, maps[1].independent};
const std::vector<double> scales{0.25, 0.5, 1, 1.5}, near_scales{0.25, 0.35};
const std::string paper = "Choromanski et al. 2020, arXiv:2009.14794, section 4.2, Fig. 4";

std::string input(double scale) { return fmt::format("gaussian:scale={:g}", scale); }
Specs inputs(const std::vector<double>& of) {
  Specs all;
  for (const double scale : of) all.push_back(input(scale));
  return all;
}
std::string with_m(const std::string& method, const std::string& m) {
  return fmt::format("{}{}m={}", method, method.find(':') == std::string::npos ? ":" : ",", m);
}

Samples errors(const Cells& cells, const std::string& method, double scale, const std::string& m) {
  return cells.input(input(scale)).method(with_m(method, m)).scalar("output_mse");
}

// error / other, the geometric mean over all m, for each replicate.
Samples over_m(const Cells& cells, const Specs& budgets, double scale, const std::string& error,
               const std::string& other) {
  Samples ratios;
  for (const auto& m : budgets)
    for (const auto& [replicate, ratio] : quotients(errors(cells, error, scale, m), errors(cells, other, scale, m)))
      ratios.try_emplace(replicate, 1).first->second *= std::pow(ratio, 1 / static_cast<double>(budgets.size()));
  return ratios;
}

void draw(Recipe& recipe, const Cells& cells, Index n) {
  std::vector<Panel> panels;
  for (const double scale : scales)
    panels.push_back({.title = fmt::format("scale {:g}", scale),
                      .cells = cells.input(input(scale)),
                      .x = {"m"},
                      .x_label = "projection vectors m",
                      .x_scale = "log2",
                      .y = "output_mse",
                      .y_label = "mean squared error of the output",
                      .y_scale = "log10",
                      .interval = "median",  // normalisers of trigonometric features near 0 make a mean meaningless
                      .theory = "output_mse_theory",
                      .references = {"uniform"}});
  recipe.figure("performer-fig4", "Error of the attention output against m",
                fmt::format("n = {}, d = 16, bidirectional; entries of Q and K of standard deviation 0.25 to 1.5; "
                            "medians over 32 inputs and draws. The dotted line of uniform is the mean of V: attention "
                            "that attends to nothing. Lines of independent vectors are no closed forms: they are the "
                            "delta method's prediction, to first order in 1/m. Where logits are large they lie far "
                            "above the points, and say that these m are too small for it.",
                            n),
                panels);
}

const std::string defined =
    "the mean squared error of the entries of the output (output_mse of attention-error), no mask, Gaussian Q, K and "
    "V, d = 16, ";

void judge_maps(Recipe& recipe, const Cells& cells, const Specs& budgets, Index n) {
  const std::string sizes = fmt::format("n = {}, m = {} to {}", n, budgets.front(), budgets.back());
  recipe.judge(
      {.text = "On Gaussian inputs of d = 16 the attention output errs less with positive than with trigonometric "
               "features of as many orthogonal vectors",
       .source = paper,
       .quotation = "We demonstrate that 1. Orthogonal features produce lower error than unstructured (IID) "
                    "features, 2. Positive features produce lower error than trigonometric sin/cos features.",
       .definition = defined + sizes +
                     ", orthogonal vectors: positive over trigonometric, the geometric mean over m, the median over 32 "
                     "inputs and draws, by the scale (standard deviation of the entries of Q and K, with V of 1), "
                     "which the source does not state",
       .threshold = "1: equal errors",
       .expected = Ruling::depends,
       .because = "the closed forms of the kernel estimates cross as |q - k| grows; the figure's inputs are "
                  "not small"},
      [=, &recipe] {
        std::vector<Region> regions;
        for (const double scale : scales)
          regions.push_back(
              {.name = fmt::format("scale {:g}", scale),
               .comparisons = {{"", median_of(over_m(cells, budgets, scale, maps[0].orthogonal, maps[1].orthogonal),
                                              recipe.error_rate(scales.size()))}},
               .coordinate = scale});
        return below_where(1, regions, "scale");
      });
  recipe.judge(
      {.text = fmt::format("Random features err less than the mean of V with every number of vectors from {} to {}",
                           budgets.front(), budgets.back()),
       .definition =
           defined + sizes +
           ": with positive and with trigonometric features of m orthogonal vectors, over that of the mean of V on the "
           "same input, the median over 32 inputs and draws. A setting, one kind of features at one scale (standard "
           "deviation of the entries of Q and K), holds where the ratio is below 1 at each m",
       .threshold = "1: the error of attention that attends to nothing",
       .expected = Ruling::depends,
       .because =
           "errors of random features grow as exp(|q + k|^2) or exp(|q - k|^2), that of the mean of V is bounded"},
      [=, &recipe] {
        std::vector<Region> regions;
        const double rate = recipe.error_rate(maps.size() * scales.size() * budgets.size());
        for (const Map& map : maps)
          for (const double scale : scales) {
            regions.push_back({fmt::format("{} at scale {:g}", map.name, scale), {}});
            const Samples uniform = cells.input(input(scale)).method("uniform").scalar("output_mse");
            for (const auto& m : budgets)
              regions.back().comparisons.push_back(
                  {"m = " + m, median_ratio(errors(cells, map.orthogonal, scale, m), uniform, rate)});
          }
        return below_where(1, regions);
      });
}

void judge_projections(Recipe& recipe, const Cells& near, const Specs& budgets, Index n, const Cells& far) {
  recipe.judge(
      {.text = "On Gaussian inputs of small scale, 0.25 and 0.35, the attention output errs less with orthogonal than "
               "with independent vectors, for positive and for trigonometric features",
       .source = paper,
       .quotation = "We demonstrate that 1. Orthogonal features produce lower error than unstructured (IID) features, "
                    "2. Positive features produce lower error than trigonometric sin/cos features.",
       .definition =
           defined +
           fmt::format("n = {}, m = 16 and 64, scale (standard deviation of the entries of Q and K) 0.25 and 0.35: "
                       "orthogonal over independent vectors, the geometric mean over m, the median over {} inputs and "
                       "draws; all four must lie below 1. The source does not state its scale",
                       n, recipe.sized(2, 144, 192)),
       .threshold = "1: equal errors",
       .because = "the closed forms of the kernel estimates are below those of independent vectors at these lengths"},
      [=, &recipe] {
        std::vector<Comparison> comparisons;
        for (const Map& map : maps)
          for (const double scale : near_scales)
            comparisons.push_back({fmt::format("{} at scale {:g}", map.name, scale),
                                   median_of(over_m(near, budgets, scale, map.orthogonal, map.independent),
                                             recipe.error_rate(maps.size() * near_scales.size()))});
        return all_below(1, comparisons);
      });
  recipe.judge(
      {.text = "At logits as large as those of Gaussian q and k of scale 1.5 and 2, orthogonal vectors change the mean "
               "squared error of a kernel estimate by at most one per cent",
       .definition = "1 less the mean squared error of the estimate of exp(q.k) with orthogonal vectors over that with "
                     "independent ones, positive and trigonometric features, m = d = 16, closed forms for a pair of "
                     "the typical geometry of Gaussian q and k: orthogonal to each other, |q| = |k| = 2 s after the "
                     "scaling by d^-1/4, for entries of standard deviation (scale) s = 1.5 and 2",
       .threshold = "0.01 either way: sampling cannot see less with a thousand inputs",
       .because = "the covariance of two rows falls as exp(-|q + k|^2 / 2) against the variance"},
      [=] {
        std::vector<Comparison> gains;
        for (const Map& map : maps)
          for (const Cells& pair : far.method(with_m(map.orthogonal, "16")).one_by_one()) {
            const std::string input = pair.all().front().asked.input.spec();
            const double independent =
                far.method(with_m(map.independent, "16")).input(input).scalar("relative_mse_theory").at(0);
            gains.push_back({name_of(pair), certain(1 - pair.scalar("relative_mse_theory").at(0) / independent)});
          }
        return all_between(-0.01, 0.01, gains);
      });
}

void write(Recipe& recipe) {
  const Index n = recipe.sized<Index>(64, 128, 4096), near_n = recipe.sized<Index>(64, 256, 512);
  const auto budgets = recipe.sized<Specs>({"8", "16"}, {"16", "64", "192"}, {"16", "64", "128", "192"});
  const Specs near_budgets{"16", "64"};
  const Cells cells = recipe.run({.experiment = "attention-error:matrix=false",
                                  .methods = methods,
                                  .inputs = inputs(scales),
                                  .n = {n},
                                  .d = {16},
                                  .causal = false,
                                  .sweep = {{"m", budgets}},
                                  .replicates = recipe.sized(2, 32)});
  const Cells near = recipe.run({.experiment = "attention-error:matrix=false",
                                 .methods = {methods.begin() + 1, methods.end()},
                                 .inputs = inputs(near_scales),
                                 .n = {near_n},
                                 .d = {16},
                                 .causal = false,
                                 .sweep = {{"m", near_budgets}},
                                 .replicates = recipe.sized(2, 144, 192)});
  const Cells far =
      recipe.run({.experiment = draws_of_a_pair(64),  // for the closed forms
                  .methods = {methods.begin() + 1, methods.end()},
                  .inputs = {"pair:length=3,angle=1.5707963267948966", "pair:length=4,angle=1.5707963267948966"},
                  .n = {1},
                  .d = {16},
                  .sweep = {{"m", {"16"}}}});
  draw(recipe, cells, n);
  judge_maps(recipe, cells, budgets, n);
  judge_projections(recipe, near, near_budgets, near_n, far);
}

const bool registered =
    add(RecipeEntry{.text = {.name = "performer-fig4",
                             .summary = "Performer's Fig. 4: output error against m, by the scale of the inputs",
                             .formula = "Do positive features approximate the output better than trigonometric ones, "
                                        "and orthogonal projections better than independent ones?",
                             .reference = "Choromanski et al. 2020, arXiv:2009.14794, Fig. 4"},
                    .write = write});

}  // namespace
}  // namespace attnbench::performer_fig4_recipe
