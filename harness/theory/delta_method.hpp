// The error of a normalised random-feature output to first order in 1/m. methods.md A4.
#pragma once

#include <vector>

#include "harness/core/theory.hpp"

namespace attnbench {

// For one row, with softmax weights a_j, output o = sum_j a_j v_j and c_j = v_j - o, and m independent vectors:
//   m E |o' - o|^2 -> sum_jl a_j a_l g_jl c_j.c_l,      m E (o' - o) -> - sum_jl a_j a_l g_jl c_j
// with g the theory's correlation. squared_error is the first limit, bias (dv numbers) the second; neither is divided
// by m.
struct RowError {
  double squared_error = 0;
  std::vector<double> bias;
};

// q is 1 x d, K n x d, V n x dv, with the keys that the row sees. The theory must have a correlation.
RowError delta_method(Context& context, const KernelTheory& theory, const In<double>& q, const In<double>& K,
                      const In<double>& V);

}  // namespace attnbench
