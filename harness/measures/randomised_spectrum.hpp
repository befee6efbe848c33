// Estimates functions of the singular values of A from products with A and A^T, each with an estimate of its error. n
// is the number of A's columns. A may be any rectangle, and nothing larger than blocks of vectors is formed.
#pragma once

#include "harness/measures/top_singular_values.hpp"
#include "harness/statistics/intervals.hpp"

namespace attnbench {

// A number and an interval that covers the true value, except with the stated error rate.
struct Bracketed {
  double value = 0;
  Interval interval = {};
};

struct SpectrumEstimate {
  Bracketed trace_norm;              // sum sigma
  Bracketed participation_ratio;     // (sum sigma^2)^2 / sum sigma^4
  Bracketed effective_rank;          // exp H(sigma / sum sigma)
  Bracketed effective_rank_squared;  // exp H(sigma^2 / sum sigma^2)
  Index steps = 0;                   // steps of the recurrences, each a product with A
};

// Traces of functions of A^T A by stochastic Lanczos quadrature (Ubaru, Chen and Saad 2017, SIAM J. Matrix Anal.
// 38:1075). The top vectors are projected out of the probes z (columns of `probes`, n x at least 2; independent, mean 0
// and covariance I) and counted separately. This leaves no bias, whether they have converged or not:
//   tr f = sum_i v_i^T f v_i + E z^T P f P z,   P = I - V V^T
// Each z^T f z lies between a Gauss and a Gauss-Radau quadrature (a node at 0) of its Lanczos recurrence, because each
// derivative of sqrt(x), sqrt(x) log x and x log x from the second on has one sign on (0, 1] (Golub and Meurant 2010,
// ch. 6); x = (sigma / sigma_1)^2. Recurrences continue until these brackets are narrow compared with the spread of the
// probes. The intervals are those of the mean over probes, widened by the brackets and limited to the range that |A|_F
// allows.
SpectrumEstimate estimate_spectrum(const LinearMap& A, const TopSingularValues& top, const Matrix<double>& probes,
                                   double error_rate, Context& context);

// n x count independent signs.
Matrix<double> random_signs(Generator& generator, Index n, Index count);

}  // namespace attnbench
