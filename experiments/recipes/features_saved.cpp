// How many features orthogonal projections, and positive features, save at equal error of the output. If errors fall as
// F^b with the number F of features, a method whose error is r times as large needs r^(1/-b) times as many features.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "harness/runner/recipe.hpp"
#include "harness/statistics/power_law.hpp"

namespace attnbench::features_saved_recipe {
namespace {

const std::string positive = "performer:projection=orthogonal", positive_iid = "performer:projection=iid",
                  trig = "performer:features=trig,count=features",
                  trig_iid = "performer:features=trig,projection=iid,count=features";
const std::vector<double> scales{0.25, 0.5, 1};
const std::vector<std::string> budgets{"32", "64", "128"};
constexpr double infinity = std::numeric_limits<double>::infinity();

std::string input(double scale) { return fmt::format("gaussian:scale={:g}", scale); }

// The errors of a method at each budget, by replicate.
std::map<Index, std::vector<double>> curves(const Cells& cells, const std::string& method) {
  std::map<Index, std::vector<double>> all;
  for (const auto& m : budgets)
    for (const auto& [replicate, error] : cells.method(method + ",m=" + m).scalar("output_mse"))
      all[replicate].push_back(error);
  return all;
}

// Features of one method over those of another at equal error, for each replicate; infinite or 0 if more features do
// not lower the errors.
Samples features_ratio(const Cells& cells, const std::string& method, const std::string& other) {
  std::vector<double> features;
  for (const auto& m : budgets) features.push_back(std::stod(m));
  const auto ours = curves(cells, method), theirs = curves(cells, other);
  Samples all;
  for (const auto& [replicate, errors] : ours) {
    const auto& others = theirs.at(replicate);
    double log_ratio = 0;
    for (size_t i = 0; i < errors.size(); ++i)
      log_ratio += std::log(errors[i] / others[i]) / static_cast<double>(errors.size());
    const double fall = -(exponent(features, errors) + exponent(features, others)) / 2;
    all[replicate] = fall > 0.1 ? std::exp(log_ratio / fall) : log_ratio > 0 ? infinity : 0;
  }
  return all;
}

void write(Recipe& recipe) {
  const Index n = recipe.sized<Index>(64, 128, 512);
  std::vector<std::string> inputs;
  for (const double scale : scales) inputs.push_back(input(scale));
  const Cells all = recipe.run({.experiment = "attention-error:matrix=false",
                                .methods = {"uniform", positive, positive_iid, trig, trig_iid},
                                .inputs = inputs,
                                .n = {n},
                                .d = {16},
                                .causal = false,
                                .sweep = {{"m", budgets}},
                                .replicates = recipe.sized(2, 128)});
  std::vector<Panel> panels;
  for (const double scale : scales)
    panels.push_back({.title = fmt::format("scale {:g}", scale),
                      .cells = all.input(input(scale)),
                      .x = {"m"},
                      .x_label = "features",
                      .x_scale = "log2",
                      .y = "output_mse",
                      .y_label = "mean squared error of the output",
                      .y_scale = "log10",
                      .interval = "median",
                      .references = {"uniform"}});
  recipe.figure("features-saved", "Error of the output at equal numbers of features",
                fmt::format("n = {}, d = 16, bidirectional, Gaussian Q, K and V, entries of Q and K of standard "
                            "deviation 0.25, 0.5 and 1; medians over inputs and draws. A trigonometric vector makes "
                            "two features. uniform is the mean of V.",
                            n),
                panels);

  const std::string claim =
      "We show in Section 4 that PRFs+ORFs drastically improve accuracy of the approximation of the attention matrix "
      "and enable us to reduce r which results in an accurate as well as space and time efficient mechanism which we "
      "call FAVOR+.";
  const std::string defined = fmt::format(
      "from the mean squared error of the output (output_mse) at 32, 64 and 128 features, n = {}, d = 16, "
      "bidirectional, normal Q, K and V: the mean logarithm of the ratio of errors at equal numbers of features, over "
      "the exponent with which errors fall with that number (the mean of both kinds' fitted exponents), is the "
      "logarithm of the ratio of numbers at equal error; "
      "the median over {} inputs and draws of the vectors. Far from 1 the ratio is extrapolated, and says no more than "
      "on "
      "which side of 1 it lies. ",
      n, all.all().front().replicates);
  recipe.judge(
      {.text = "For the same error of the output Performer needs fewer features with orthogonal than with independent "
               "vectors, at normal inputs with small logits",
       .source = "Choromanski et al. 2020, arXiv:2009.14794, section 2.4",
       .quotation = claim,
       .definition = defined +
                     "Features that orthogonal vectors take over those that independent ones take, for positive and "
                     "for trigonometric features (two for each vector), entries of Q and K of standard deviation 0.25 "
                     "and 0.5. The source speaks of the error of the attention matrix",
       .threshold = "1: as many features; the source gives no number, and the values are how many it takes",
       .because = "the closed forms of the kernel estimates fall by 15 to 21 % for positive and by 72 to 86 % "
                  "for trigonometric features at these lengths"},
      [=, &recipe] {
        std::vector<Region> regions;
        for (const auto& [name, with, without] :
             {std::tuple{"positive", positive, positive_iid}, {"trigonometric", trig, trig_iid}})
          for (const double scale : {scales[0], scales[1]})
            regions.push_back(
                {fmt::format("{} features, standard deviation {:g}", name, scale),
                 {{"", median_of(features_ratio(all.input(input(scale)), with, without), recipe.error_rate(4))}}});
        return below_where(1, regions);
      });
  recipe.judge(
      {.text =
           "For the same error of the output on normal inputs, fewer positive than trigonometric features are needed",
       .source = "Choromanski et al. 2020, arXiv:2009.14794, section 2.4",
       .quotation = claim,
       .definition = defined + "Positive features over trigonometric ones (two for each vector), orthogonal vectors, "
                               "by the standard deviation of the entries of Q and K, which the source does not state. "
                               "The source speaks of the error of the attention matrix",
       .threshold = "1: as many features",
       .expected = Ruling::depends,
       .because = "trigonometric errors vanish with |q - k| and grow as exp(|q - k|^2)"},
      [=, &recipe] {
        std::vector<Region> regions;
        for (const double scale : scales)
          regions.push_back({.name = fmt::format("standard deviation {:g}", scale),
                             .comparisons = {{"", median_of(features_ratio(all.input(input(scale)), positive, trig),
                                                            recipe.error_rate(scales.size()))}},
                             .coordinate = scale});
        return below_where(1, regions, "standard deviation");
      });
}

const bool registered =
    add(RecipeEntry{.text = {.name = "features-saved",
                             .summary = "Features saved at equal error",
                             .formula = "How many features do orthogonal projections and positive features save at "
                                        "equal error of the output?",
                             .reference = "Choromanski et al. 2020, arXiv:2009.14794, section 2.4"},
                    .write = write});

}  // namespace
}  // namespace attnbench::features_saved_recipe
