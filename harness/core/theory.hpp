// Closed forms for a kernel estimate, and the pair of vectors that they apply to.
#pragma once

#include <cmath>
#include <functional>
#include <span>
#include <string>

#include "harness/linalg/context.hpp"

namespace attnbench {

// A pair (q, k), scaled, as the closed forms use it.
struct Pair {
  Index d = 0;
  double q2 = 0, k2 = 0, qk = 0;                      // |q|^2, |k|^2, q.k
  std::span<const double> q = {}, k = {};             // the vectors; empty if only lengths and angle are known
  double plus2() const { return q2 + k2 + 2 * qk; }   // |q + k|^2
  double minus2() const { return q2 + k2 - 2 * qk; }  // |q - k|^2
  double softmax() const { return std::exp(qk); }
};

// The pair of two vectors of the same length, which must outlive it.
inline Pair pair_of(std::span<const double> q, std::span<const double> k) {
  Pair pair{.d = static_cast<Index>(q.size()), .q = q, .k = k};
  for (size_t l = 0; l < q.size(); ++l) {
    pair.q2 += q[l] * q[l];
    pair.k2 += k[l] * k[l];
    pair.qk += q[l] * k[l];
  }
  return pair;
}

// Theory of a method's kernel estimate for one pair: its target, the mean over draws, and the mean squared error about
// that mean.
struct KernelTheory {
  std::string target;                                // "exp(q.k)", ...
  std::function<double(const Pair&)> mean;           // of the estimate
  std::function<double(const Pair&)> variance = {};  // empty: no closed form is known
  bool exact = true;                                 // false: the mean is an approximation, and is not claimed
  // If the estimate is the mean of independent summands X (one per projection vector): their number, and E X_j X_l / (E
  // X_j E X_l) for a query q (1 x d), keys j in J (b x d) and keys l in K (n x d), as block (b x n). Empty: not known.
  Index summands = 0;
  std::function<void(Context&, const In<double>& q, const In<double>& J, const In<double>& K, Out<double> block)>
      correlation = {};
};

}  // namespace attnbench
