// Performer's Fig. 2: which of trigonometric and positive features errs less, over the angle between q and k and their
// length. For independent vectors, |q| = |k| = l and m vectors each (methods.md A1, A2),
//   MSE_trig / MSE_pos = (cosh |q - k|^2 - 1) / (exp |q + k|^2 - 1)
// whatever d: below 1 for acute angles and above 1 for wide ones. A trigonometric vector makes two features, so at
// equal features its error doubles.
#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "harness/runner/recipe.hpp"

namespace attnbench {
namespace {

const std::string positive = "performer:m=16,projection=iid", trig = "performer:features=trig,m=16,projection=iid",
                  trig_features = "performer:features=trig,m=16,projection=iid,count=features";
constexpr Index d = 4;  // the closed forms do not depend on it

const Description text{.name = "performer-fig2",
                       .summary = "Trigonometric against positive features, over angle and length",
                       .formula =
                           "Where the angle between q and k is wide, and their weight small, positive features err by "
                           "orders of magnitude less than trigonometric ones.",
                       .reference = "Choromanski et al. 2020, arXiv:2009.14794, Fig. 2"};

// Midpoints: at angles of 0 and pi one of the errors is zero.
std::vector<std::string> angles(Index count, double from) {
  std::vector<std::string> all;
  for (Index i = 0; i < count; ++i)
    all.push_back(fmt::format(
        "{:.4f}", from + (std::numbers::pi - from) * (static_cast<double>(i) + 0.5) / static_cast<double>(count)));
  return all;
}

std::vector<std::string> lengths(RecipeSize size) {
  const Index count = size == RecipeSize::smoke ? 2 : size == RecipeSize::quick ? 10 : 20;
  std::vector<std::string> all;
  for (Index i = 1; i <= count; ++i)
    all.push_back(fmt::format("{}", 2 * static_cast<double>(i) / static_cast<double>(count)));
  return all;
}

Index map_angles(RecipeSize size) { return size == RecipeSize::smoke ? 4 : size == RecipeSize::quick ? 32 : 64; }
Index slice_angles(RecipeSize size) { return size == RecipeSize::smoke ? 2 : size == RecipeSize::quick ? 12 : 24; }

// For the closed form alone.
const std::string any_draws = "kernel-error:draws=64,pairs=1,by_pair=false";
std::string many_draws(RecipeSize size) {
  return fmt::format("kernel-error:draws={},pairs=1,precision=0,by_pair=false", size == RecipeSize::smoke   ? 64
                                                                                : size == RecipeSize::quick ? 2048
                                                                                                            : 65536);
}

std::vector<RunRequest> runs(RecipeSize size) {
  const RunRequest map{.experiment = any_draws,
                       .methods = {positive, trig, trig_features},
                       .inputs = {"pair"},
                       .n = {1},
                       .d = {d},
                       .sweep = {{"angle", angles(map_angles(size), -std::numbers::pi)}, {"length", lengths(size)}}};
  RunRequest slice{.experiment = many_draws(size),
                   .methods = {positive, trig},
                   .inputs = {"pair"},
                   .n = {1},
                   .d = {d},
                   .sweep = {{"angle", angles(slice_angles(size), 0)}},
                   .replicates = size == RecipeSize::smoke ? 2 : 12};
  return {map, slice};
}

std::vector<Figure> figures(RecipeSize size) {
  const auto map = [](const std::string& title, const std::string& numerator) {
    return Panel{.title = title,
                 .kind = "map",
                 .where = {{"experiment", any_draws}, {"input", "pair"}, {"d", d}},
                 .x = {"angle"},
                 .x_label = "angle between q and k (radians)",
                 .y = "relative_mse_theory",
                 .y_label = "length |q| = |k|",
                 .y_axis = {"length"},
                 .ratio = {numerator, positive},
                 .value_label = "MSE trigonometric / MSE positive"};
  };
  Panel slice{.title = "at length 1",
              .where = {{"experiment", many_draws(size)}, {"input", "pair"}, {"d", d}},
              .x = {"angle"},
              .x_label = "angle between q and k (radians)",
              .y = "relative_mse",
              .y_label = "relative MSE  E (K'/K - 1)^2",
              .y_scale = "log10",
              .theory = "relative_mse_theory"};
  Panel quotient = slice;
  quotient.title = "their ratio at length 1";
  quotient.ratio_to = positive;
  quotient.y_label = "MSE trigonometric / MSE positive";
  return {figure("performer-fig2", text, "Which features err less, by angle and length",
                 "Closed forms, independent vectors. Left: as many vectors each, as published. Right: as many features "
                 "each, where a trigonometric vector makes two: then trigonometric features err less at every angle "
                 "up to a right one.",
                 {map("equal projection vectors", trig), map("equal features", trig_features)}),
          figure("performer-fig2-slice", text, "The slice at length 1, measured",
                 "d = 4, m = 16: measured points on their closed forms. Towards angle 0, |q + k| is large and the "
                 "error of positive features comes from draws too rare to be met; there only the closed form is known.",
                 {slice, quotient})};
}

// Measured errors over their closed forms, wherever every replicate could be estimated.
Verdict on_closed_forms(const Results& results, RecipeSize size) {
  std::vector<std::pair<std::string, Samples>> estimable;
  size_t points = 0;
  for (const auto& angle : angles(slice_angles(size), 0))
    for (const auto& method : {positive, trig}) {
      ++points;
      const nlohmann::json where{
          {"experiment", many_draws(size)}, {"method", method}, {"input", "pair:angle=" + angle}};
      const Samples theory = results.scalar(where, "relative_mse_theory");
      Samples quotient = results.scalar(where, "relative_mse");
      if (quotient.empty()) continue;
      for (auto& [replicate, value] : quotient) value /= theory.at(replicate);
      estimable.emplace_back(fmt::format("{} at angle {}", method, angle), quotient);
    }
  std::vector<Comparison> comparisons;
  for (const auto& [what, quotient] : estimable)
    comparisons.push_back({what, mean(quotient, share_of_error_rate(estimable.size()))});
  return all_contain(1, 0.25,
                     fmt::format("At length 1 the measured errors are the closed forms, at the {} of {} points where "
                                 "they can be estimated",
                                 estimable.size(), points),
                     comparisons);
}

double degrees(const std::string& radians) { return radians.empty() ? 0 : std::stod(radians) * 180 / std::numbers::pi; }

// Where the ratio of the closed forms crosses 1, between two angles of the map.
Verdict who_wins_where(const Results& results, RecipeSize size, const std::string& numerator,
                       const std::string& equal) {
  using Outcome = Verdict::Outcome;
  const Statement statement{
      fmt::format("At equal {} positive features err less than trigonometric ones (closed forms)", equal),
      Outcome::conditional, "Choromanski et al. 2020, arXiv:2009.14794, Fig. 2 and Lemma 2"};
  std::vector<std::string> crossings;
  size_t always = 0, never = 0;  // lengths where trigonometric features win at every angle, and at none
  for (const auto& length : lengths(size)) {
    std::string last, first;  // the last angle where trigonometric features win, the first where positive ones do
    for (const auto& angle : angles(map_angles(size), -std::numbers::pi)) {
      if (angle.starts_with('-')) continue;
      const auto error = [&](const std::string& method) {
        return mean(results.scalar({{"experiment", any_draws},
                                    {"method", method},
                                    {"input", fmt::format("pair:length={},angle={}", length, angle)}},
                                   "relative_mse_theory"),
                    1)
            .value;
      };
      if (error(numerator) < error(positive)) {
        last = angle;
        if (!first.empty())
          return {Outcome::conditional, statement, "the order changes more than once",
                  fmt::format("at length {}: holds at angle {}; fails at {}", length, first, angle)};
      } else if (first.empty()) {
        first = angle;
      }
    }
    always += first.empty();
    never += last.empty();
    crossings.push_back(fmt::format("{:.0f} to {:.0f} degrees at length {}", degrees(last), degrees(first), length));
  }
  const bool nowhere = always == lengths(size).size(), everywhere = never == lengths(size).size();
  return {nowhere      ? Outcome::fail
          : everywhere ? Outcome::pass
                       : Outcome::conditional,
          statement,
          fmt::format("the order changes at {}, {}, {}", crossings.front(), crossings[crossings.size() / 2],
                      crossings.back()),
          nowhere || everywhere ? "" : "holds at wide angles between q and k; fails at small ones"};
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  return {on_closed_forms(results, size), who_wins_where(results, size, trig, "projection vectors"),
          who_wins_where(results, size, trig_features, "features")};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
