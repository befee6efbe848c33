// Performer's Fig. 2: which of trigonometric and positive features errs less, over the angle between q and k and their
// length. For independent vectors, |q| = |k| = l and m vectors each (methods.md A1, A2),
//   MSE_trig / MSE_pos = (cosh |q - k|^2 - 1) / (exp |q + k|^2 - 1)
// at every d: below 1 for acute angles and above 1 for wide ones. A trigonometric vector makes two features, so at
// equal numbers of features its error doubles.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numbers>

#include "experiments/recipes/closed_forms.hpp"

namespace attnbench::performer_fig2_recipe {
namespace {

const std::string positive = "performer:m=16,projection=iid", trig = "performer:features=trig,m=16,projection=iid",
                  trig_features = "performer:features=trig,m=16,projection=iid,count=features";
constexpr Index d = 4;  // the closed forms do not depend on it

// Midpoints: at angles of 0 and pi one of the errors is zero.
Specs angles(Index count, double from) {
  Specs all;
  for (Index i = 0; i < count; ++i)
    all.push_back(fmt::format(
        "{:.4f}", from + (std::numbers::pi - from) * (static_cast<double>(i) + 0.5) / static_cast<double>(count)));
  return all;
}

void draw(Recipe& recipe, const Cells& map, const Cells& slice) {
  const auto tiles = [&](const std::string& title, const std::string& numerator) {
    return Panel{.title = title,
                 .kind = "map",
                 .cells = map.methods({numerator, positive}),
                 .x = {"angle"},
                 .x_label = "angle between q and k (radians)",
                 .y = "relative_mse_theory",
                 .y_label = "length |q| = |k|",
                 .y_axis = {"length"},
                 .ratio = {numerator, positive},
                 .value_label = "MSE trigonometric / MSE positive"};
  };
  recipe.figure("performer-fig2", "Which features err less, by angle and length",
                "Closed forms, independent vectors. Left: as many vectors each, as published. Right: as many features "
                "each, where a trigonometric vector makes two: then trigonometric features err less at every angle "
                "up to a right one.",
                {tiles("equal projection vectors", trig), tiles("equal features", trig_features)});
  const Panel errors{.title = "at length 1",
                     .cells = slice,
                     .x = {"angle"},
                     .x_label = "angle between q and k (radians)",
                     .y = "relative_mse",
                     .y_label = "relative MSE  E (K'/K - 1)^2",
                     .y_scale = "log10",
                     .theory = "relative_mse_theory"};
  Panel quotient = errors;
  quotient.title = "their ratio at length 1";
  quotient.ratio_to = positive;
  quotient.y_label = "MSE trigonometric / MSE positive";
  recipe.figure("performer-fig2-slice", "The slice at length 1, measured",
                "d = 4, m = 16: points measured over 32 replicates on their closed forms. Towards angle 0, |q + k| is "
                "large and the error of positive features comes from draws too rare to be met; there only the closed "
                "form is known.",
                {errors, quotient});
}

// At which angles the closed form of positive features lies below the other one, at one length.
Finding by_angle(const Cells& at_length, const std::string& length, const std::string& numerator,
                 const Specs& all_angles) {
  std::vector<Region> regions;
  for (const auto& angle : all_angles) {
    const Cells here = at_length.input(fmt::format("pair:length={},angle={}", length, angle));
    const auto error = [&](const std::string& method) {
      return here.method(method).scalar("relative_mse_theory").at(0);
    };
    const double degrees = std::stod(angle) * 180 / std::numbers::pi;
    regions.push_back({.name = fmt::format("{:.0f} degrees", degrees),
                       .comparisons = {{"", certain(error(numerator) / error(positive))}},
                       .coordinate = std::round(degrees)});
  }
  return above_where(1, regions, "angle (degrees)");
}

void judge_order(Recipe& recipe, const Cells& map, const Specs& lengths, const Specs& all_angles,
                 const std::string& numerator, const std::string& equal) {
  recipe.judge(
      {.text = fmt::format("By closed forms, positive features with independent vectors err less than trigonometric "
                           "ones at equal numbers of {}",
                           equal),
       .source = "Choromanski et al. 2020, arXiv:2009.14794, Fig. 2 and section 2.3",
       .quotation = "We see that for critical regions with phi large enough (small enough softmax-kernel values) our "
                    "method is arbitrarily more accurate than trigonometric random features.",
       .definition =
           fmt::format("the closed form of the mean squared error of trigonometric features over that of positive ones "
                       "at equal numbers of {} (a trigonometric vector makes two features), which depends neither on d "
                       "nor on m; independent vectors, |q| = |k| of {}, {} and {}, by the angle between q and k from 0 "
                       "to 180 degrees. The source claims wide angles alone",
                       equal, lengths.front(), lengths[lengths.size() / 2], lengths.back()),
       .threshold = "1: equal errors",
       .expected = Ruling::depends,
       .because = "by the closed forms the order changes at one angle"},
      [=] {
        std::vector<std::string> where, numbers;
        Finding all;
        for (const auto& length : {lengths.front(), lengths[lengths.size() / 2], lengths.back()}) {
          const Finding one = by_angle(map, length, numerator, all_angles);
          all.ruling = where.empty() || one.ruling == all.ruling ? one.ruling : Ruling::depends;
          where.push_back(
              fmt::format("at length {}: {}", length, one.region.empty() ? to_string(one.ruling) : one.region));
          numbers.push_back(fmt::format("at length {}: {}", length, one.numbers));
          for (Compared compared : one.compared) {
            compared.what = fmt::format("length {}, {}", length, compared.what);
            all.compared.push_back(compared);
          }
        }
        all.region = fmt::format("{}", fmt::join(where, "; "));
        all.numbers = fmt::format("{}", fmt::join(numbers, "; "));
        return all;
      });
}

void write(Recipe& recipe) {
  Specs lengths;
  const Index steps = recipe.sized(2, 10, 20);
  for (Index i = 1; i <= steps; ++i)
    lengths.push_back(fmt::format("{}", 2 * static_cast<double>(i) / static_cast<double>(steps)));
  const Index tiles = recipe.sized(4, 32, 64);
  const Cells map = recipe.run({.experiment = draws_of_a_pair(64),  // only for the closed form
                                .methods = {positive, trig, trig_features},
                                .inputs = {"pair"},
                                .n = {1},
                                .d = {d},
                                .sweep = {{"angle", angles(tiles, -std::numbers::pi)}, {"length", lengths}}});
  const Cells slice = recipe.run({.experiment = draws_of_a_pair(recipe.sized<Index>(64, 512, 12288)),
                                  .methods = {positive, trig},
                                  .inputs = {"pair"},
                                  .n = {1},
                                  .d = {d},
                                  .sweep = {{"angle", angles(recipe.sized(2, 12, 24), 0)}},
                                  .replicates = recipe.sized<Index>(2, replicates_for_means)});
  draw(recipe, map, slice);
  recipe.judge(
      {.text = "Where draws can estimate them, the mean squared errors of positive and trigonometric features at |q| = "
               "|k| = 1 are those of Lemma 2",
       .source = "Choromanski et al. 2020, arXiv:2009.14794, section 3, Lemma 2",
       .paraphrase = "the mean squared errors with m independent vectors: exp(|q + k|^2) (1 - exp(-|q - k|^2))^2 / (2 "
                     "m exp(q.k)^2) of trigonometric features, exp(|q + k|^2) exp(q.k)^2 (1 - exp(-|q + k|^2)) / m of "
                     "positive ones",
       .definition =
           "the mean over draws of (K'/K - 1)^2, K' the estimate of K = exp(q.k) (kernel-error, relative_mse), over "
           "its closed form, the mean over 32 replicates; independent vectors, d = 4, m = 16, |q| = |k| = 1, angles "
           "from 0 to 180 degrees. Settings whose error comes from draws too rare to be met are left out and counted",
       .threshold = "1, which every interval must hold, with intervals narrower than +-0.25: the figure's "
                    "factors between the two maps are orders of magnitude",
       .because = "the lemma is proved"},
      [=, &recipe] { return on_closed_forms(recipe, slice, 0.25); });
  Specs upper;  // the map is symmetric
  for (const auto& angle : angles(tiles, -std::numbers::pi))
    if (!angle.starts_with('-')) upper.push_back(angle);
  judge_order(recipe, map, lengths, upper, trig, "projection vectors");
  judge_order(recipe, map, lengths, upper, trig_features, "features");
}

const bool registered =
    add(RecipeEntry{.text = {.name = "performer-fig2",
                             .summary = "Trigonometric against positive features, over angle and length",
                             .formula = "At which angles between q and k do positive features err less than "
                                        "trigonometric ones?",
                             .reference = "Choromanski et al. 2020, arXiv:2009.14794, Fig. 2"},
                    .write = write});

}  // namespace
}  // namespace attnbench::performer_fig2_recipe
