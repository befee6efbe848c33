// Closed forms of an attention row from sampled keys, for every law of the draws. methods.md S.
#pragma once

#include "harness/core/estimates.hpp"

namespace attnbench {

// Moments of the numerator N^ (dv numbers), the denominator D^ and the row o^ = N^ / D^ over draws, beside the exact
// D = sum_j exp(q.k_j), N = sum_j exp(q.k_j) v_j and o = N / D. All in units of D, so that nothing overflows. Means and
// variances of N^ and D^ are exact. Keys of probability 0 are missing in both, and the means say so.
struct SampledRow {
  double denominator_mean = 0;      // E D^ / D: 1 unless keys have probability 0
  double denominator_variance = 0;  // E |D^ - E D^|^2 / D^2
  std::vector<double> numerator_mean;
  double numerator_variance = 0;  // E |N^ - E N^|^2 / D^2
  std::vector<double> output;     // o
  std::vector<double> row;        // o^ for s to infinity: o unless keys have probability 0
  double row_squared_error = 0;   // E |o^ - o|^2; to first order in 1/s unless row_exact
  bool row_exact = false;         // D^ is the same in every draw: E o^ = row, and row_squared_error is exact
};

// q is 1 x d, K n x d and V n x dv, with the n keys that the row sees and that the law has probabilities for. All
// numbers are 0 for n = 0.
SampledRow sampled_row(Context& context, const SamplingLaw& law, const In<double>& q, const In<double>& K,
                       const In<double>& V);

// E |F^ - E F^|^2 for the estimate F^ = sum over draws of f_j / (s p_j), where f_j is row j of f (n x c):
//   independent  (1/s) sum_j p_j |f_j / p_j - F|^2,  F = sum_j f_j
//   stratified   (1/s^2) sum over strata of the same sum within the stratum
//   distinct     n^2 (1/s - 1/n) sum_j |f_j - F/n|^2 / (n - 1)
double variance_of_estimate(const SamplingLaw& law, const In<double>& f);

}  // namespace attnbench
