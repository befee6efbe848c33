// The gain of orthogonal projections over independent ones, against length, with m = d (methods.md B).
//   MSE_ort / MSE_iid = 1 + (m - 1) C / Var X,  C the covariance of two rows of a block
// Positive features: below 1 at every |q + k| and every d. Trigonometric ones: above 1 from some |q - k| on.
#include <fmt/format.h>

#include <numbers>

#include "experiments/recipes/closed_forms.hpp"
#include "harness/core/approximation.hpp"

namespace attnbench::orthogonal_gain_recipe {
namespace {

// One of the two feature maps, at the angle where its error is greatest at a given length.
struct Map {
  std::string name, features, angle, norm;  // norm: |q + k| or |q - k|, twice the length
  Specs projections;                        // compared with independent vectors
};
const Map positive{"positive", "", "0", "|q + k|", {"orthogonal", "simplex"}};
const Map trig{"trigonometric", "features=trig,", fmt::format("{}", std::numbers::pi), "|q - k|", {"orthogonal"}};
const std::vector<Index> sizes{4, 8, 16};
// At d = 4 closed forms put orthogonal below independent at |q - k|^2 = 4 and 1.2 % above at 14.
struct Bracket {
  double minus2;
  std::string length;
};
const std::vector<Bracket> brackets{{4, "1"}, {14, "1.8708286933869707"}};

std::string spec(const Map& map, const std::string& projection, Index d) {
  return fmt::format("performer:{}m={}{}", map.features, d,
                     projection == "orthogonal" ? "" : ",projection=" + projection);
}
std::string input(const Map& map, const std::string& length) {
  return fmt::format("pair:length={},angle={}", length, map.angle);
}

// The closed form's ratio to the error of independent vectors.
double closed_form(const Map& map, const std::string& projection, Index d, double length) {
  const Shape shape{.nq = 1, .nk = 1, .d = d, .dv = d};
  const double square = length * length;
  const Pair pair{.d = d, .q2 = square, .k2 = square, .qk = map.features.empty() ? square : -square};
  const auto variance = [&](const std::string& of) {
    return find<MethodEntry>("performer").theory(Params("methods", spec(map, of, d)), shape, nullptr)->variance(pair);
  };
  return variance(projection) / variance("iid");
}

// The least |q - k|^2 from which orthogonal vectors are worse.
double trig_crossing(Index d) {
  double low = 1, high = 2;  // lengths; at |q - k|^2 = 4 orthogonal is better and at 16 worse, at each of these d
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (closed_form(trig, "orthogonal", d, middle) < 1 ? low : high) = middle;
  }
  return 4 * low * low;
}

// The least and the greatest ratio over lengths up to 3, |q - k|^2 = 36.
std::string trig_by_closed_forms() {
  std::string words;
  for (const Index d : sizes) {
    double least = 1, greatest = 0;
    for (double length = 0.05; length <= 3; length += 0.05) {
      const double ratio = closed_form(trig, "orthogonal", d, length);
      least = std::min(least, ratio);
      greatest = std::max(greatest, ratio);
    }
    words += fmt::format(
        "; by the closed form at d = {}: {:.3f} to {:.4f} of the error of independent vectors, above "
        "1 from |q - k|^2 = {:.3f} on",
        d, least, greatest, trig_crossing(d));
  }
  return words;
}

Specs lengths_of(const Recipe& recipe) {
  if (recipe.size() != RecipeSize::full)
    return recipe.sized<Specs>({"0.5", "2"}, {"0.25", "0.5", "0.8", "1.2", "1.6", "2", "2.5"});
  Specs all;
  for (Index i = 1; i <= 25; ++i) all.push_back(fmt::format("{:.1f}", 0.1 * static_cast<double>(i)));
  return all;
}

Cells run_curves(Recipe& recipe, const Map& map) {
  Cells all;
  for (const Index d : sizes)
    for (const auto& length : lengths_of(recipe)) {
      // For long vectors the error of positive features cannot be estimated, and only the closed form is needed.
      const bool hopeless = map.features.empty() && std::stod(length) > 0.81;
      RunRequest point{.experiment = draws_of_a_pair(hopeless ? 64 : recipe.sized<Index>(64, 256, 6144)),
                       .methods = {spec(map, "iid", d)},
                       .inputs = {input(map, length)},
                       .n = {1},
                       .d = {d},
                       .replicates = recipe.sized<Index>(2, replicates_for_means)};
      for (const auto& projection : map.projections) point.methods.push_back(spec(map, projection, d));
      all = all + recipe.run(point);
    }
  return all;
}

void draw(Recipe& recipe, const Map& map, const Cells& cells, const std::string& name, const std::string& title,
          const std::string& caption) {
  std::vector<Panel> panels;
  for (const Index d : sizes)
    panels.push_back({.title = fmt::format("{}, d = m = {}", map.name, d),
                      .cells = cells.where({{"d", d}}),
                      .x = {"length"},
                      .x_label = fmt::format("length |q| = |k|, half of {}", map.norm),
                      .y = "relative_mse",
                      .y_label = "MSE / MSE of independent vectors",
                      .theory = "relative_mse_theory",
                      .series = {"projection"},
                      .ratio_to = spec(map, "iid", d)});
  recipe.figure(name, title, caption, panels);
}

void judge_positive(Recipe& recipe, const Cells& curves) {
  recipe.judge(
      {.text = "Where draws can estimate them, the mean squared errors of random features with independent, orthogonal "
               "and simplex vectors are their closed forms",
       .definition =
           "the mean over draws of (K'/K - 1)^2, K' the estimate of K = exp(q.k) (kernel-error, relative_mse), over "
           "its closed form, the mean over 32 replicates; m = d = 4, 8, 16, |q| = |k| up to 2.5, q = k for positive "
           "features (all three kinds of vectors), q = -k for trigonometric ones (independent and orthogonal). "
           "Settings whose error comes from draws too rare to be met are left out and counted",
       .threshold = "1, which every interval must hold, with intervals narrower than +-0.5: a wrong sign of the "
                    "covariance of two rows lies outside where the gain is large, and typical intervals are +-0.03",
       .because = "the closed forms are derived; those of simplex projections by Reid et al. 2023"},
      [=, &recipe] { return on_closed_forms(recipe, curves, 0.5); });
  std::vector<Comparison> gains;
  double greatest = 0;
  for (const Index d : sizes)
    for (const auto& length : lengths_of(recipe))
      for (const auto& projection : positive.projections) {
        const double gain = 1 - closed_form(positive, projection, d, std::stod(length));
        gains.push_back(
            {fmt::format("{}, d = {}, |q + k| = {:g}", projection, d, 2 * std::stod(length)), certain(gain)});
        greatest = std::max(greatest, gain);
      }
  recipe.judge(
      {.text = "By closed forms, at q = k orthogonal and simplex vectors reduce the mean squared error of positive "
               "features at every length up to |q + k| = 5",
       .source = "Choromanski et al. 2020, arXiv:2009.14794 (v4), section 3, Theorem 2; Reid et al. 2023, "
                 "arXiv:2301.13856, for simplex projections",
       .quotation = "Our next result shows that orthogonality provably reduces mean squared error of the estimation "
                    "with positive random features for any dimensionality d > 0 and we explicitly provide the gap.",
       .definition = fmt::format("1 less the mean squared error over that of independent vectors, by closed forms, q = "
                                 "k, m = d = 4, 8 and 16, at {} lengths |q + k| from {:g} to 5; every one must lie "
                                 "above 0",
                                 lengths_of(recipe).size(), 2 * std::stod(lengths_of(recipe).front())),
       .threshold = "0: equal errors",
       .because = "the theorem is proved"},
      [=] {
        Finding finding = all_above(0, gains);
        finding.numbers += fmt::format("; the greatest gain is {:.3f}", greatest);
        return finding;
      });
}

void judge_trig(Recipe& recipe, const Cells& bracketed) {
  recipe.judge(
      {.text = "At m = d = 4, orthogonal vectors reduce the mean squared error of trigonometric features both at |q - "
               "k|^2 = 4 and at |q - k|^2 = 14",
       .source = "Choromanski et al. 2020, arXiv:2009.14794, section 2.4",
       .quotation = "This leads to first theoretical results showing that ORFs can be applied to reduce the variance "
                    "of softmax/Gaussian kernel estimators for any dimensionality d rather than just asymptotically "
                    "for large enough d (as is the case for previous methods, see: next section) [...] Positivity of "
                    "random features plays a key role in these bounds.",
       .definition =
           "the mean squared error of the estimate of exp(q.k) with orthogonal vectors over that with independent ones "
           "(kernel-error), measured at q = -k, on both sides of the distance at which the closed forms cross. The "
           "source proves the gain for positive features, and says that for others it was known for large d",
       .threshold = "1: equal errors",
       .expected = Ruling::depends,
       .because = "the closed form of the covariance of two rows changes its sign"},
      [=, &recipe] {
        std::vector<Region> regions;
        for (const auto& [minus2, length] : brackets) {
          const auto error = [&, &at = length](const std::string& projection) {
            return bracketed.where({{"input", input(trig, at)}, {"method", spec(trig, projection, 4)}})
                .scalar("relative_mse");
          };
          regions.push_back(
              {fmt::format("|q - k|^2 = {:g}", minus2),
               {{"", mean_ratio(error("orthogonal"), error("iid"), recipe.error_rate(brackets.size()))}}});
        }
        Finding finding = below_where(1, regions);
        finding.numbers += trig_by_closed_forms();
        return finding;
      });
}

void write(Recipe& recipe) {
  const Cells of_positive = run_curves(recipe, positive), of_trig = run_curves(recipe, trig);
  Cells bracketed;
  for (const auto& [minus2, length] : brackets)  // at the second the errors differ by only 1 %
    bracketed =
        bracketed + recipe.run({.experiment = draws_of_a_pair(minus2 < 10 ? recipe.sized<Index>(64, 2048, 16384)
                                                                          : recipe.sized<Index>(64, 16384, 262144)),
                                .methods = {spec(trig, "iid", 4), spec(trig, "orthogonal", 4)},
                                .inputs = {input(trig, length)},
                                .n = {1},
                                .d = {4},
                                .replicates = recipe.sized<Index>(2, replicates_for_means)});
  draw(recipe, positive, of_positive, "orthogonal-gain-positive",
       "Positive features: the gain over independent vectors",
       "q = k (angle 0); 95 % intervals over 32 replicates, lines are closed forms. Below 1 the projection is better. "
       "Simplex projections lie below orthogonal ones, and all approach 1 for very short and for very long vectors. "
       "Points end where the error comes from draws too rare to be met.");
  draw(recipe, trig, of_trig, "orthogonal-gain-trig", "Trigonometric features: a large gain, except far away",
       "q = -k (angle pi); 95 % intervals over 32 replicates, lines are closed forms. Near pairs gain far more than "
       "with positive features, up to 86 % at d = 16; for very distant ones orthogonal vectors are worse than "
       "independent ones, by 1.5 % at most (d = 4).");
  judge_positive(recipe, of_positive + of_trig);
  judge_trig(recipe, bracketed);
}

const bool registered =
    add(RecipeEntry{.text = {.name = "orthogonal-gain",
                             .summary = "The gain of orthogonal projections, against length",
                             .formula = "Do orthogonal projections lower the error of random features, for any "
                                        "dimension and any q and k?",
                             .reference = "Choromanski et al. 2020, arXiv:2009.14794, Theorem 2; Reid et al. 2023, "
                                          "arXiv:2301.13856, for simplex projections"},
                    .write = write});

}  // namespace
}  // namespace attnbench::orthogonal_gain_recipe
