// The pairs (q, k) on which kernel estimates are tested. They are chosen to reveal mistakes that show only along some
// directions: Householder QR without its sign fix shows along 1 and e1, norms taken from the rows that Q was made of
// along e1 alone.
#pragma once

#include <string>
#include <vector>

#include "harness/core/theory.hpp"

namespace attnbench {

struct Pairs {
  Matrix<double> Q, K;  // one pair per row
  std::vector<std::string> names;

  Index size() const { return Q.rows(); }
  Pair operator[](Index p) const;
  void append(const Pairs& more);
};

// q + k of squared length 1 along 1, e1 and two random directions, with both signs, and |q - k|^2 = 0.1 along other
// directions. Then the same with q + k and q - k exchanged, which trigonometric features depend on. 16 pairs. The
// squared length is 1 because norms of sqrt(d) instead of chi_d put the mean 3.4 % off at 1 but only 1 % at 0.5
// (methods.md B, d = 4).
Pairs mean_pairs(Index d, std::uint64_t seed);

// q + k of squared length 2.5 along 1 and -1 with q - k of squared length 0.1, and exchanged: mistakes that grow with
// the distance from the origin. The variance grows as exp(|q + k|^2), so that fewer directions and larger effects are
// asked. At squared length 4 one outlier in 36000 draws widened the interval until a bias of 10 % passed.
Pairs far_pairs(Index d, std::uint64_t seed);

// Along 1, e1 and six random directions: |q + k|^2 = |q - k|^2 = 0.1, and then |q - k|^2 = 1 with |q + k|^2 = 0.1.
// Squared errors of positive features have tails that allow no larger q + k (methods.md J). 8 pairs of each kind.
Pairs variance_pairs(Index d, std::uint64_t seed);

// k = -q and k = q with |q| from 0.1 to 2.5, where positive and trigonometric features, respectively, are exact.
Pairs opposite_and_equal_pairs(Index d, std::uint64_t seed);

}  // namespace attnbench
