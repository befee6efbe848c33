// The spectrum of A = L R^T from its factors, at any n.   sigma(A) = sigma(R1 R2^T),  L = Q1 R1, R = Q2 R2 (thin QR)
// methods.md I. O((nq + nk) F^2 + F^3) time and O(F^2) memory beyond the factors.
#pragma once

#include <vector>

#include "harness/linalg/context.hpp"

namespace attnbench {

struct FactoredSpectrum {
  std::vector<double> sigma;  // min(F, nq, nk), largest first; all others are 0
  // sum_f |l_f| |r_f|, at least sigma_1. A is the sum of l_f r_f^T over columns of L and R. Each term has an error of
  // epsilon times its own norm, so sigma has an error of epsilon times this sum. The sum is far above sigma_1 if the
  // terms cancel.
  double terms = 0;
};

// L is nq x F, R is nk x F. With two threads, the factors are decomposed in parallel.
FactoredSpectrum factored_spectrum(const In<double>& L, const In<double>& R, Context& context);

}  // namespace attnbench
