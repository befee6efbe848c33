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
  // Two square roots, because the product of the sums may overflow when the norm does not.
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

std::optional<double> order_of_convergence(std::span<const double> r, double floor) {
  const auto reached = std::find_if(r.begin(), r.end(), [&](double x) { return x <= floor; });
  const auto above = static_cast<size_t>(reached - r.begin());
  if (above < 3) return std::nullopt;
  const size_t end = above - 1, half = end / 2;
  const double late = std::log(r[end] / r[end - half]), early = std::log(r[end - half] / r[end - 2 * half]);
  if (!(late < 0 && early < 0)) return std::nullopt;
  return std::pow(late / early, 1 / static_cast<double>(half));
}

}  // namespace attnbench
