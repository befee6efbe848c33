#include "harness/theory/delta_method.hpp"

#include <cassert>

#include "harness/linalg/products.hpp"

namespace attnbench {

RowError delta_method(Context& context, const KernelTheory& theory, const In<double>& q, const In<double>& K,
                      const In<double>& V) {
  assert(theory.correlation);
  const Index n = K.rows(), dv = V.cols();
  Matrix<double> logits(1, n);
  multiply_transposed<double>(context, q, K, logits);
  Matrix<double> a = (logits.array() - logits.maxCoeff()).exp();
  a /= a.sum();
  const Matrix<double> output = a * V;
  // Columns a_j c_j, and a_j for the bias.
  Matrix<double> weighted(n, dv + 1);
  for (Index j = 0; j < n; ++j) weighted.row(j) << a(0, j) * (V.row(j) - output.row(0)), a(0, j);
  constexpr Index keys_at_once = 256;  // g is n x n: 134 MB at n = 4096
  Matrix<double> g(std::min(keys_at_once, n), n), correlated(std::min(keys_at_once, n), dv + 1);
  Matrix<double> bias = Matrix<double>::Zero(1, dv);
  RowError error;
  for (Index j = 0; j < n; j += keys_at_once) {
    const Index count = std::min(keys_at_once, n - j);
    const auto block = corner(g, count, n);
    theory.correlation(context, q, row_block(K, j, count), K, block);
    const auto sums = corner(correlated, count, dv + 1);
    multiply<double>(context, block, weighted, sums);
    const auto own = weighted.middleRows(j, count).leftCols(dv);
    error.squared_error += own.cwiseProduct(sums.leftCols(dv)).sum();
    bias -= sums.col(dv).transpose() * own;
  }
  error.bias.assign(bias.data(), bias.data() + dv);
  return error;
}

}  // namespace attnbench
