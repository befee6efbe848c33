// The second plug point: ensembles of projection vectors omega (the rows of W) for random feature maps.
#pragma once

#include <memory>

#include "harness/core/approximation.hpp"

namespace attnbench {

// What the closed forms need to know of an ensemble. t may be negative: exp(omega.z) with |z|^2 = t < 0 stands for the
// mean of cos(omega.y) with |y|^2 = -t, by analytic continuation.
class EnsembleLaw {
 public:
  virtual ~EnsembleLaw() = default;
  virtual double moment(double t) const = 0;                 // E exp(omega.z), |z|^2 = t
  virtual double pair_moment(double t, int sign) const = 0;  // E exp((omega_1 + sign omega_2).z), same block
  virtual double dependent_pairs(Index m) const = 0;         // ordered pairs of distinct rows in one block, among m
};
using SharedLaw = std::shared_ptr<const EnsembleLaw>;  // null: no closed form is known

struct ProjectionEntry {
  static constexpr const char* kind = "projection";
  static constexpr const char* plural = "projections";

  Description text;
  std::vector<Parameter> parameters;
  // m x d rows, in double. The rows for a smaller m are the first rows for a larger one (paired comparisons).
  std::function<Matrix<double>(const Draw&, Index m, Index d)> draw;
  std::function<SharedLaw(const Params&, Index d)> law;
};

// The rows that the spec's `projection` and `m` parameters ask for, m x d: the injected state tensor "projection" when
// there is one, drawn otherwise. Specs that share an ensemble share its rows.
Matrix<double> draw_projection(const Draw& draw);

}  // namespace attnbench
