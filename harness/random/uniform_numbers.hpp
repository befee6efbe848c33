// Uniform random numbers that are neither 0 nor 1, so that a quantile of one is finite and a key of probability 0 is
// never drawn.
#pragma once

#include "harness/linalg/matrix.hpp"
#include "harness/random/streams.hpp"

namespace attnbench {

// In (0, 1): one of 2^52 equally distant numbers.
inline double uniform_number(Generator& generator) { return (static_cast<double>(generator() >> 12) + 0.5) * 0x1p-52; }

inline Matrix<double> uniform_numbers(Generator& generator, Index rows, Index columns) {
  Matrix<double> u(rows, columns);
  for (Index i = 0; i < u.size(); ++i) u.data()[i] = uniform_number(generator);
  return u;
}

}  // namespace attnbench
