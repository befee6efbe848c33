// attend is the path that is timed; kernel(), rows() and factored() are other paths to the same matrix. For one draw,
//   attend = rownorm(K under the mask) V = A V = L (R^T V),    transposed_times = A^T G of the same rows,
// and a kernel's own diagonal() equals the diagonal of kernel(). mixing() gives the slope of attend in V.
#include <algorithm>
#include <cmath>

#include "harness/claims/structural.hpp"

namespace attnbench {

namespace {

constexpr const char* claim = "second-paths";
// Rounding gives at most 1e-12 times the row's condition (tests/approximations/methods_test.cpp).
constexpr double tolerance = 1e-10;

Matrix<double> normalised(const ScaledKernel& K, Mask mask) {
  Matrix<double> A = Matrix<double>::Zero(K.block.rows(), K.block.cols());
  for (Index i = 0; i < A.rows(); ++i) {
    const Eigen::RowVectorXd row = K.row(i, mask);
    if (row.isZero(0)) continue;  // no key with weight: the row stays 0
    A.row(i).head(row.size()) = row / row.sum();
  }
  return A;
}

// Uses ragged blocks, so that `first` matters.
Matrix<double> all_rows(const Rows<double>& rows_of, const Probe& one) {
  constexpr Index block = 37;
  Matrix<double> A(one.shape.nq, one.shape.nk);
  Context context;
  for (Index first = 0; first < A.rows(); first += block)
    rows_of.attention_rows(one.head.view(), one.shape.mask, first, context,
                           row_block(A, first, std::min(block, A.rows() - first)));
  return A;
}

// Statistics of the kernel use its diagonal, which may be computed differently from the rest.
Result compare_diagonal(const Kernel<double>& kernel, const ScaledKernel& K, const Probe& one) {
  const auto n = static_cast<size_t>(one.shape.nq);
  std::vector<double> values(n), log_scale(n);
  Context context;
  kernel.diagonal(one.head.view(), context, values, log_scale);
  double worst = 0;
  for (size_t i = 0; i < n; ++i) {
    const auto place = static_cast<Index>(i);
    const double want = K.block(place, place);
    const double got = values[i] * std::exp(log_scale[i] - K.log_rows[i] - K.log_columns[i]);
    // Signed features add terms of the size of the two scales, and their sum may be far smaller.
    worst = worse(worst, std::abs(got - want) / std::max(1.0, std::abs(want)));
  }
  return compared(claim, "diagonal against kernel, " + one.name(), worst, tolerance);
}

// Compares central differences of attend in one channel of V, token by token, with the token Jacobian. Their errors are
// the third derivative over 6 times the step squared, about 1e-8 here, and rounding over the step, 1e-12.
Result compare_mixing(const Approximation<double>& method, const TokenMixing<double>& mixing, const Probe& one) {
  constexpr double step = 1e-4, slope_tolerance = 1e-6;
  const Index column = one.shape.dv / 2;
  Matrix<double> M(one.shape.nq, one.shape.nk);
  Context context;
  mixing.token_jacobian(one.head.view(), one.shape.mask, column, context, M);
  const auto moved = [&](Index token, double by) {
    HeadData<double> head = one.head;
    head.V(token, column) += by;
    return attended(method, head, one.shape.mask);
  };
  double worst = 0;
  for (Index j = 0; j < one.shape.nk; j += 7) {
    const Matrix<double> slope = (moved(j, step) - moved(j, -step)).col(column) / (2 * step);
    worst = worse(worst, (slope - M.col(j)).cwiseAbs().maxCoeff());
  }
  return compared(claim, "differences of attend against the token Jacobian, " + one.name(),
                  worst / std::max(1.0, M.cwiseAbs().maxCoeff()), slope_tolerance);
}

}  // namespace

ClaimResults test_second_paths(const Subject& subject, std::uint64_t seed) {
  ClaimResults results;
  for (const Probe& one : probes(subject, seed)) {
    const auto method = Drawing(subject, subject.params, one.shape, seed).draw<double>(0);
    const auto* kernel = method->kernel();
    const auto* rows_of = method->rows();
    const auto* factored = one.shape.mask.causal ? nullptr : method->factored();
    if (const auto* mixing = method->mixing()) results.push_back(compare_mixing(*method, *mixing, one));
    if (!kernel && !rows_of && !factored) continue;
    const Matrix<double> out = attended(*method, one.head, one.shape.mask);
    const auto condition = row_conditions(*method, one, subject.claims(subject.params, one.shape).non_negative, seed);
    const double size = std::max(1.0, one.head.V.cwiseAbs().maxCoeff());
    const auto compare = [&](const char* path, const Matrix<double>& other) {
      results.push_back(compare_rows(claim, "attend against " + (path + (", " + one.name())), out, other, condition,
                                     size, tolerance));
    };
    if (kernel) {
      const ScaledKernel K(*kernel, one);
      compare("kernel", normalised(K, one.shape.mask) * one.head.V);
      if (one.shape.nq == one.shape.nk && !one.shape.mask.causal) results.push_back(compare_diagonal(*kernel, K, one));
    }
    if (rows_of) {
      const Matrix<double> A = all_rows(*rows_of, one);
      compare("rows", A * one.head.V);
      // Any G will do, and `out` is available. Both sides are sums of the same entries.
      Matrix<double> turned(one.shape.nk, out.cols());
      Context context;
      rows_of->transposed_times(one.head.view(), one.shape.mask, out, context, turned);
      const double terms = (A.cwiseAbs().transpose() * out.cwiseAbs()).maxCoeff();
      results.push_back(compared(claim, "A^T G against rows, " + one.name(),
                                 (turned - A.transpose() * out).cwiseAbs().maxCoeff() / std::max(1.0, terms),
                                 tolerance));
    }
    if (factored) {
      Matrix<double> L, R;
      Context context;
      factored->factors(one.head.view(), one.shape.mask, context, L, R);
      compare("factors", L * (R.transpose() * one.head.V));
    }
  }
  if (results.empty()) return {skipped(claim, "it offers no kernel, rows, factors or token Jacobian")};
  return results;
}

}  // namespace attnbench
