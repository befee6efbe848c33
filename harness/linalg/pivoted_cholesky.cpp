#include "harness/linalg/pivoted_cholesky.hpp"

#include <algorithm>
#include <cmath>

#include "harness/linalg/products.hpp"

namespace attnbench {

namespace {

using Row = Eigen::Array<double, 1, Eigen::Dynamic>;

// The next pivot, or -1 when no row may become one. Weights are relative to the largest |x_j|^2 of the rows that are
// left, so that they do not vanish all at once.
Index next_pivot(const Row& residual, const Row& squares, double uniform) {
  double largest = -INFINITY;
  Index last = -1;
  for (Index j = 0; j < residual.size(); ++j)
    if (residual[j] > smallest_pivot) {
      largest = std::max(largest, squares[j]);
      last = j;
    }
  if (last < 0) return -1;
  const Row weights = (residual > smallest_pivot).select(residual * (squares - largest).min(0).exp(), 0);
  const double wanted = uniform * weights.sum();
  double sum = 0;
  for (Index j = 0; j < last; ++j)
    if ((sum += weights[j]) > wanted) return j;
  return last;
}

}  // namespace

PivotedCholesky pivoted_cholesky(Context& context, const Matrix<double>& X, std::span<const double> uniforms) {
  const Index n = X.rows(), d = X.cols(), most = std::min(n, static_cast<Index>(uniforms.size()));
  const Matrix<double> transposed = X.transpose();
  Matrix<double> F(most, n), known(1, n), of_pivot(1, std::max(d, most));
  Row residual = Row::Ones(n), squares(n);
  for (Index j = 0; j < n; ++j) squares[j] = X.row(j).squaredNorm();
  PivotedCholesky found;
  for (Index t = 0; t < most; ++t) {
    const Index pivot = next_pivot(residual, squares, uniforms[static_cast<size_t>(t)]);
    if (pivot < 0) break;
    // Row `pivot` of G, less the part that earlier pivots explain.
    Out<double> row = row_block(F, t, 1);
    multiply<double>(context, row_block(X, pivot, 1), transposed, row);
    row.array() = (row.array() - (squares + squares[pivot]) / 2).min(0).exp();
    context.work.exps += 2 * static_cast<double>(n);  // those of next_pivot as well
    if (t > 0) {
      of_pivot.leftCols(t) = F.col(pivot).head(t).transpose();
      multiply<double>(context, corner(of_pivot, 1, t), row_block(F, 0, t), known);
      row -= known;
    }
    row /= std::sqrt(residual[pivot]);
    for (const Index earlier : found.pivots) row(0, earlier) = 0;
    residual = (residual - row.array().square()).max(0);
    residual[pivot] = 0;
    found.pivots.push_back(pivot);
  }
  found.factor = F.topRows(std::ssize(found.pivots));
  found.residual.assign(residual.begin(), residual.end());
  found.squares.assign(squares.begin(), squares.end());
  return found;
}

}  // namespace attnbench
