// The matrices of the discrete Fourier transform's real and imaginary part.
#pragma once

#include <cmath>
#include <numbers>

#include "harness/linalg/matrix.hpp"

namespace attnbench {

// cos or sin of 2 pi jk / n.
template <class Wave>
Matrix<double> waves(Index n, const Wave& wave) {
  Matrix<double> F(n, n);
  for (Index j = 0; j < n; ++j)
    for (Index k = 0; k < n; ++k)
      F(j, k) = wave(2 * std::numbers::pi * static_cast<double>(j * k % n) / static_cast<double>(n));
  return F;
}
inline Matrix<double> cosines(Index n) {
  return waves(n, [](double x) { return std::cos(x); });
}
inline Matrix<double> sines(Index n) {
  return waves(n, [](double x) { return std::sin(x); });
}

}  // namespace attnbench
