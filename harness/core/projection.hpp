// The second plug point: ensembles of projection vectors omega (the rows of W) for random feature maps.
#pragma once

#include <span>

#include "harness/core/approximation.hpp"

namespace attnbench {

// Closed forms known for an ensemble. t may be negative: exp(omega.z) with |z|^2 = t < 0 denotes the mean of
// cos(omega.y) with |y|^2 = -t, by analytic continuation. alpha < 1/2 tilts by exp(alpha |omega|^2) (methods.md A5).
struct EnsembleLaw {
  // E exp(alpha |omega|^2 + omega.z), |z|^2 = t, of an isotropic ensemble.
  std::function<double(double t, double alpha)> moment = {};
  // The same for an ensemble that prefers directions: z in place of t, and sign = -1 for the cosine of omega.z. If an
  // ensemble states neither, nothing is known of it: bias is then measured against normal rows and is not claimed.
  std::function<double(std::span<const double> z, int sign, double alpha)> directed_moment = {};
  bool exact = true;     // false: the moment is an approximation
  bool gaussian = true;  // each row is marginally N(0, I_d)
  // Ordered pairs of distinct dependent rows among the first m. Empty: the dependence of rows is unknown.
  std::function<double(Index m)> dependent_pairs = {};
  // E exp(alpha (|omega_1|^2 + |omega_2|^2) + (omega_1 + sign omega_2).z) for such a pair.
  std::function<double(double t, int sign, double alpha)> pair_moment = {};
  // Geometry: within blocks of `block` rows, the cosine between any two rows, and the norm of each row.
  Index block = 0;
  std::optional<double> cosine = {}, norm = {};
  bool nested = true;  // the vectors for a smaller m are the first of those for a larger m
  Index least_m = 1;   // the law holds from this m on

  bool known() const { return moment || directed_moment; }
  // E exp(alpha |omega|^2 + omega.z) and E cos(omega.z) at z = a q + b k. The law must be known.
  double mean_exponential(const Pair& pair, double a, double b, double alpha = 0) const;
  double mean_cosine(const Pair& pair, double a, double b) const;
  bool independent(Index m) const { return dependent_pairs && dependent_pairs(m) == 0; }
};

struct ProjectionEntry {
  static constexpr const char* kind = "projection";
  static constexpr const char* plural = "projections";

  Description text;
  std::vector<Parameter> parameters;
  // m x d rows, in double. Unless the law says otherwise, the rows for a smaller m are the first rows for a larger m
  // (paired comparisons).
  std::function<Matrix<double>(const Draw&, Index m, Index d)> draw;
  std::function<EnsembleLaw(const Params&, Index d)> law;
  // Warnings for a user who takes m of its rows in d dimensions.
  std::function<std::vector<std::string>(const Params&, Index m, Index d)> caveats = [](const Params&, Index, Index) {
    return std::vector<std::string>();
  };
};

extern template class Registry<ProjectionEntry>;

// The draw that all users of a shared ensemble have in common. The spec's `share` parameter is head (not shared), layer
// (shared by all heads) or step (shared by all heads and replicates).
Draw shared_draw(const Draw& draw);

// m rows of the ensemble that the spec's `projection` parameter names, m x d. Uses the injected state tensor
// "projection" if there is one, otherwise draws. Specs that share an ensemble share its rows.
Matrix<double> draw_projection(const Draw& draw, Index m);

}  // namespace attnbench
