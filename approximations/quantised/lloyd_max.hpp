// The scalar quantiser of least mean squared error for N(0, 1). Lloyd 1982, IEEE Trans. Inf. Theory 28:129; Max 1960,
// IRE Trans. Inf. Theory 6:7. methods.md R.
#pragma once

#include <vector>

#include "harness/linalg/matrix.hpp"

namespace attnbench {

constexpr Index most_lloyd_max_bits = 5;

struct LloydMax {
  std::vector<double> levels;  // 2^bits, ascending, symmetric about 0
  double error = 1;            // E (x - level(x))^2 = 1 - E level(x)^2

  // The nearest level; of two, the larger.
  double nearest(double x) const;
};

// bits from 0 (the level 0) to most_lloyd_max_bits. Levels are right to 1e-13.
const LloydMax& lloyd_max(Index bits);

}  // namespace attnbench
