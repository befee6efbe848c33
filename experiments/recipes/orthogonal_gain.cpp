// What orthogonal projections gain over independent ones, against length, with m = d (methods.md B).
//   MSE_ort / MSE_iid = 1 + (m - 1) C / Var X,  C the covariance of two rows of a block
// Positive features: below 1 at every |q + k| and every d. Trigonometric ones: above 1 from some |q - k| on.
#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "harness/core/approximation.hpp"
#include "harness/runner/recipe.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;

// One of the two feature maps, at the angle where its error is greatest: the other vector alone decides it.
struct Map {
  std::string features, angle, norm;  // norm: |q + k| or |q - k|, twice the length
  Specs projections;                  // compared with independent vectors
};
const Map positive{"", "0", "|q + k|", {"orthogonal", "simplex"}};
const Map trig{"features=trig,", fmt::format("{}", std::numbers::pi), "|q - k|", {"orthogonal"}};
const std::vector<Index> sizes{4, 8, 16};
// At d = 4 closed forms put orthogonal below independent at 1 and 1.2 % above at this one, |q - k|^2 = 14.
const Specs bracket{"1", "1.8708286933869707"};

std::string spec(const Map& map, const std::string& projection, Index d) {
  return fmt::format("performer:{}m={}{}", map.features, d,
                     projection == "orthogonal" ? "" : ",projection=" + projection);
}

Specs lengths(RecipeSize size) {
  if (size == RecipeSize::smoke) return {"0.5", "2"};
  if (size == RecipeSize::quick) return {"0.25", "0.5", "0.8", "1.2", "1.6", "2", "2.5"};
  Specs all;
  for (Index i = 1; i <= 25; ++i) all.push_back(fmt::format("{}", 0.1 * static_cast<double>(i)));
  return all;
}

std::string draws(RecipeSize size, Index quick, Index full) {
  const Index count = size == RecipeSize::smoke ? 64 : size == RecipeSize::quick ? quick : full;
  return fmt::format("kernel-error:draws={},pairs=1,precision=0,by_pair=false", count);
}
// Of long vectors the error of positive features cannot be estimated: the closed form alone is wanted.
std::string curve_experiment(const Map& map, const std::string& length, RecipeSize size) {
  if (!map.features.empty()) return draws(size, 1024, 32768);
  return std::stod(length) > 0.81 ? draws(size, 64, 64) : draws(size, 2048, 32768);
}
// The second differs by a hundredth.
std::string bracket_draws(const std::string& length, RecipeSize size) {
  return length == bracket[0] ? draws(size, 4096, 65536) : draws(size, 65536, 1048576);
}
Index replicates(RecipeSize size) { return size == RecipeSize::smoke ? 2 : 12; }
std::string input(const Map& map, const std::string& length) {
  return fmt::format("pair:length={},angle={}", length, map.angle);
}

const Description text{.name = "orthogonal-gain",
                       .summary = "What orthogonal projections gain, against length",
                       .formula =
                           "Orthogonal projections lower the error of random features, for any dimension and any q "
                           "and k.",
                       .reference =
                           "Choromanski et al. 2020, arXiv:2009.14794, Theorem 2; Reid et al. 2023, "
                           "arXiv:2301.13856, for simplex projections"};

std::vector<RunRequest> runs(RecipeSize size) {
  std::vector<RunRequest> all;
  for (const Map& map : {positive, trig})
    for (const Index d : sizes)
      for (const auto& length : lengths(size)) {
        RunRequest point{.experiment = curve_experiment(map, length, size),
                         .methods = {spec(map, "iid", d)},
                         .inputs = {input(map, length)},
                         .n = {1},
                         .d = {d},
                         .replicates = replicates(size)};
        for (const auto& projection : map.projections) point.methods.push_back(spec(map, projection, d));
        all.push_back(point);
      }
  for (const auto& length : bracket)
    all.push_back({.experiment = bracket_draws(length, size),
                   .methods = {spec(trig, "iid", 4), spec(trig, "orthogonal", 4)},
                   .inputs = {input(trig, length)},
                   .n = {1},
                   .d = {4},
                   .replicates = size == RecipeSize::smoke ? 2 : 16});
  return all;
}

Panel panel(const Map& map, Index d, RecipeSize size) {
  auto experiments = nlohmann::json::array();
  for (const auto& length : lengths(size)) experiments.push_back(curve_experiment(map, length, size));
  return {.title = fmt::format("{}, d = m = {}", map.features.empty() ? "positive" : "trigonometric", d),
          .where = {{"experiment", experiments}, {"input", "pair:angle=" + map.angle}, {"d", d}, {"m", d}},
          .x = {"length"},
          .x_label = fmt::format("length |q| = |k|, half of {}", map.norm),
          .y = "relative_mse",
          .y_label = "MSE / MSE of independent vectors",
          .theory = "relative_mse_theory",
          .series = {"projection"},
          .ratio_to = spec(map, "iid", d)};
}

std::vector<Figure> figures(RecipeSize size) {
  const auto panels = [&](const Map& map) {
    std::vector<Panel> all;
    for (const Index d : sizes) all.push_back(panel(map, d, size));
    return all;
  };
  return {
      figure("orthogonal-gain-positive", text, "Positive features: the gain over independent vectors",
             "q = k (angle 0). Below 1 the projection is better. Simplex projections lie below orthogonal ones, and "
             "all approach 1 for very short and for very long vectors. Points end where the error comes from draws "
             "too rare to be met.",
             panels(positive)),
      figure("orthogonal-gain-trig", text, "Trigonometric features: orthogonal can be worse",
             "q = -k (angle pi). Above 1 orthogonal vectors are worse than independent ones.", panels(trig))};
}

// The closed form's ratio at a length.
double closed_form(const Map& map, const std::string& projection, Index d, double length) {
  const Shape shape{.nq = 1, .nk = 1, .d = d, .dv = d};
  const double square = length * length;
  const Pair pair{.d = d, .q2 = square, .k2 = square, .qk = map.features.empty() ? square : -square};
  const auto variance = [&](const std::string& of) {
    return find<MethodEntry>("performer").theory(Params("methods", spec(map, of, d)), shape, nullptr)->variance(pair);
  };
  return variance(projection) / variance("iid");
}

// The measured ratio over the closed form's, wherever all replicates of both could be estimated.
Verdict on_closed_forms(const Results& results, RecipeSize size) {
  std::vector<std::pair<std::string, Samples>> quotients;
  for (const Map& map : {positive, trig})
    for (const Index d : sizes)
      for (const auto& length : lengths(size))
        for (const auto& projection : map.projections) {
          const auto error = [&](const std::string& of) {
            return results.scalar({{"experiment", curve_experiment(map, length, size)},
                                   {"method", spec(map, of, d)},
                                   {"input", input(map, length)},
                                   {"d", d}},
                                  "relative_mse");
          };
          Samples quotient = error(projection);
          const Samples independent = error("iid");
          if (quotient.empty() || independent.empty()) continue;
          const double expected = closed_form(map, projection, d, std::stod(length));
          for (auto& [replicate, value] : quotient) value /= independent.at(replicate) * expected;
          quotients.emplace_back(fmt::format("{} at length {}", spec(map, projection, d), length), quotient);
        }
  std::vector<Comparison> comparisons;
  for (const auto& [what, quotient] : quotients)
    comparisons.push_back({what, mean(quotient, share_of_error_rate(quotients.size()))});
  return all_contain(
      1, 0.5,
      "The gain of orthogonal and simplex projections over independent ones is that of the closed forms, "
      "wherever it can be estimated",
      comparisons);
}

Verdict positive_always_gains(RecipeSize size) {
  double least = 1, greatest = 0;
  for (const Index d : sizes)
    for (const auto& length : lengths(size))
      for (const auto& projection : positive.projections) {
        const double gain = closed_form(positive, projection, d, std::stod(length));
        least = std::min(least, gain);
        greatest = std::max(greatest, gain);
      }
  return {greatest < 1 ? Verdict::Outcome::pass : Verdict::Outcome::fail,
          "Orthogonal and simplex projections lower the error of positive features at every length",
          fmt::format("closed forms at d = m = 4, 8, 16: from {:.4f} to 1 - {:.2g} of the error of independent ones",
                      least, 1 - greatest)};
}

// The least |q - k|^2 from which orthogonal vectors are worse.
double crossing(Index d) {
  double low = 1, high = 2;  // lengths; at |q - k|^2 = 4 orthogonal is better and at 16 worse, at each of these d
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (closed_form(trig, "orthogonal", d, middle) < 1 ? low : high) = middle;
  }
  return 4 * low * low;
}

Verdict trig_gains_up_to_a_distance(const Results& results, RecipeSize size) {
  std::vector<Region> regions;
  for (const auto& length : bracket) {
    const auto error = [&](const std::string& projection) {
      return results.scalar({{"experiment", bracket_draws(length, size)},
                             {"method", spec(trig, projection, 4)},
                             {"input", input(trig, length)},
                             {"d", 4}},
                            "relative_mse");
    };
    regions.push_back({fmt::format("|q - k|^2 = {:.3g}", 4 * std::stod(length) * std::stod(length)),
                       {{"", ratio(error("orthogonal"), error("iid"), share_of_error_rate(bracket.size()))}}});
  }
  Verdict verdict =
      below_where(1,
                  {"Orthogonal projections lower the error of trigonometric features (measured at d = 4)",
                   Verdict::Outcome::conditional, "source 002: orthogonal features minimise the variance"},
                  regions);
  verdict.numbers += fmt::format(
      "; by the closed forms they are worse beyond |q - k|^2 = {:.3f}, {:.3f} and {:.3f} at d "
      "= 4, 8 and 16",
      crossing(4), crossing(8), crossing(16));
  return verdict;
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  return {on_closed_forms(results, size), positive_always_gains(size), trig_gains_up_to_a_distance(results, size)};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
