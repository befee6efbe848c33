#include "harness/measures/collapse.hpp"

#include <algorithm>
#include <cmath>

namespace attnbench {

namespace {
double share(double part, double whole) { return whole > 0 ? part / whole : 0; }
}  // namespace

Matrix<double> token_residual(const Matrix<double>& X) { return X.rowwise() - X.colwise().mean(); }

double composite_norm(const Matrix<double>& X) {
  if (X.size() == 0) return 0;
  const auto magnitudes = X.cwiseAbs();
  // Two roots: the product of the sums may overflow where the norm does not.
  return std::sqrt(magnitudes.colwise().sum().maxCoeff()) * std::sqrt(magnitudes.rowwise().sum().maxCoeff());
}

double relative_residual_composite(const Matrix<double>& X) {
  return share(composite_norm(token_residual(X)), composite_norm(X));
}

double relative_residual_frobenius(const Matrix<double>& X) {
  return share(token_residual(X).stableNorm(), X.stableNorm());
}

double dobrushin(const Matrix<double>& A) {
  double largest = 0;
  for (Index i = 0; i < A.rows(); ++i)
    for (Index j = 0; j < i; ++j) largest = std::max(largest, (A.row(i) - A.row(j)).lpNorm<1>());
  return largest / 2;
}

std::vector<double> orders_of_convergence(std::span<const double> r, double floor) {
  std::vector<double> orders;
  for (size_t l = 1; l + 1 < r.size(); ++l) {
    if (!(r[l] < r[l - 1] && r[l + 1] < r[l] && r[l + 1] > floor)) break;
    orders.push_back(std::log(r[l + 1] / r[l]) / std::log(r[l] / r[l - 1]));
  }
  return orders;
}

}  // namespace attnbench
