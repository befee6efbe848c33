// Closed forms of an attention row from sampled keys, for every law of the draws. methods.md S.
#pragma once

#include "harness/core/estimates.hpp"

namespace attnbench {

// Moments of the numerator N^ (dv numbers), the denominator D^ and the row o^ = N^ / D^ over draws, beside the exact
// D = sum_j exp(q.k_j), N = sum_j exp(q.k_j) v_j and o = N / D. All in units of D, so that nothing overflows. Means and
// variances of N^ and D^ are exact. Keys of probability 0 that are not added exactly are missing in both, and the means
// say so.
struct SampledRow {
  // False for dependent draws: the variances are then those of independent Poisson numbers of draws of each key, which
  // say how many draws show a mean, and row_squared_error is 0.
  bool variances_known = true;
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

// E |F^ - E F^|^2 for the estimate F^ = sum over draws of f_j / (s p_j) and over exact keys of f_j, where f_j is row j
// of of_keys (n x c). f_j counts as 0 for exact keys:
//   independent  (1/s) sum_j p_j |f_j / p_j - F|^2,  F = sum_j f_j
//   stratified   (1/s^2) sum over strata of the same sum within the stratum
//   distinct     m^2 (1/s - 1/m) sum_j |f_j - F/m|^2 / (m - 1), over the m keys with p_j > 0
//   dependent    sum_j |f_j|^2 / (s p_j): as if the numbers of draws of each key were independent and of Poisson's law
double variance_of_estimate(const SamplingLaw& law, const In<double>& of_keys);

}  // namespace attnbench
