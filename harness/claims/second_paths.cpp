// attend is the path that is timed; kernel(), rows() and factored() are other paths to the same matrix. For one draw,
//   attend = rownorm(K under the mask) V = A V = L (R^T V),    transposed_times = A^T G of the same rows,
// and a kernel's own diagonal() equals the diagonal of kernel(). mixing() gives the slope of attend in V.
#include <algorithm>
#include <cmath>

#include "harness/claims/structural.hpp"
#include "harness/measures/attention_matrix.hpp"

namespace attnbench {

namespace {

constexpr const char* claim = "second-paths";

Matrix<double> applied(const ScaledKernel& K, const Probe& one, Normaliser normaliser) {
  Matrix<double> out = Matrix<double>::Zero(one.shape.nq, one.shape.dv);
  for (Index i = 0; i < out.rows(); ++i) {
    const Eigen::RowVectorXd row = K.row(i, one.shape.mask);
    if (row.isZero(0)) continue;  // no key with weight: the row stays 0
    out.row(i) = row * one.head.V.topRows(row.size());
    if (normaliser == Normaliser::row_sums) out.row(i) /= row.sum();
    if (normaliser == Normaliser::none) out.row(i) *= std::exp(K.log_scale_of_row(i, one.shape.mask));
    if (normaliser == Normaliser::l2) out.row(i).normalize();
  }
  return out;
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
  return compared(claim, "diagonal against kernel, " + one.name(), worst, double_tolerance);
}

// Corrections of a kernel use its normalisers, which may be computed without the matrix.
Result compare_normalisers(const Kernel<double>& kernel, const ScaledKernel& K, const Probe& one,
                           const std::vector<double>& condition) {
  const auto n = static_cast<size_t>(one.shape.nq);
  std::vector<double> values(n), log_scale(n);
  Context context;
  kernel.normalisers(one.head.view(), one.shape.mask, context, values, log_scale);
  double worst = 0;
  for (size_t i = 0; i < n; ++i) {
    const auto row = static_cast<Index>(i);
    double sum = 0, magnitude = 0;
    for (Index j = 0; j < one.shape.mask.visible(row, one.shape.nk); ++j) {
      const double weight =
          K.block(row, j) * std::exp(K.log_rows[i] + K.log_columns[static_cast<size_t>(j)] - log_scale[i]);
      sum += weight;
      magnitude += std::abs(weight);
    }
    const double size = std::max(magnitude, std::abs(values[i]));
    if (size > 0) worst = worse(worst, std::abs(values[i] - sum) / (size * condition[i]));
  }
  // Both scales are exponents of a hundred and more, whose rounding the exponential multiplies.
  return compared(claim, "normalisers against kernel, " + one.name(), worst, 100 * double_tolerance);
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

ClaimResults test_second_paths(const Subject& subject, const Probes& probes, std::uint64_t seed) {
  ClaimResults results;
  for (const Probe& one : probes) {
    const auto method = Drawing(subject, subject.params, one.shape, seed).draw<double>(0);
    const auto* kernel = method->kernel();
    const auto* rows_of = method->rows();
    const auto* factored = one.shape.mask.causal ? nullptr : method->factored();
    if (const auto* mixing = method->mixing()) results.push_back(compare_mixing(*method, *mixing, one));
    if (!kernel && !rows_of && !factored) continue;
    const Matrix<double> out = attended(*method, one.head, one.shape.mask);
    const Claims claims = subject.claims(subject.params, one.shape);
    const auto condition = row_conditions(*method, one, claims.non_negative, seed);
    const double size = size_of(one.head.V);
    const auto compare = [&](const char* path, const Matrix<double>& other) {
      results.push_back(compare_rows(claim, "attend against " + (path + (", " + one.name())), out, other, condition,
                                     size, double_tolerance));
    };
    if (kernel) {
      const ScaledKernel K(*kernel, one);
      compare("kernel", applied(K, one, claims.normaliser));
      results.push_back(compare_normalisers(*kernel, K, one, condition));
      if (one.shape.nq == one.shape.nk) results.push_back(compare_diagonal(*kernel, K, one));
    }
    if (rows_of) {
      const Matrix<double> A = all_rows(*rows_of, one);
      compare("rows", A * one.head.V);
      // Any G will do, and `out` is available. Both sides are sums of the same entries. Rows that cancel are left out.
      Matrix<double> G = out;
      for (Index i = 0; i < G.rows(); ++i)
        if (!(condition[static_cast<size_t>(i)] <= largest_condition)) G.row(i).setZero();
      Matrix<double> turned(one.shape.nk, out.cols());
      Context context;
      rows_of->transposed_times(one.head.view(), one.shape.mask, G, context, turned);
      const Eigen::Map<const Eigen::VectorXd> conditions(condition.data(), std::ssize(condition));
      const double terms =
          (A.cwiseAbs().transpose() * conditions.cwiseMin(largest_condition).asDiagonal() * G.cwiseAbs()).maxCoeff();
      results.push_back(compared(claim, "A^T G against rows, " + one.name(),
                                 (turned - A.transpose() * G).cwiseAbs().maxCoeff() / std::max(1.0, terms),
                                 double_tolerance));
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

ClaimResults test_pattern(const Subject& subject, const Probes& probes, std::uint64_t seed) {
  constexpr const char* name = "pattern";
  ClaimResults results;
  for (const Probe& one : probes) {
    if (one.shape.nk > 600) continue;
    const auto method = Drawing(subject, subject.params, one.shape, seed).draw<double>(0);
    if (!method->pattern()) return {skipped(name, "it declares no pattern of keys")};
    if (!subject.claims(subject.params, one.shape).no_attention_matrix.empty())
      return {skipped(name, "no attention matrix")};
    Context context;
    const auto head = one.head.view();
    const Matrix<double> A = attention_matrix(*method, head, one.shape.mask, context);
    std::vector<std::vector<Index>> keys(static_cast<size_t>(one.shape.nq));
    method->pattern()->keys_of_rows(head, one.shape.mask, 0, context, keys);
    // Features may be 0, and weights with them.
    const bool weighs_all = !subject.params.has("features");
    double wrong = 0;
    for (Index i = 0; i < A.rows(); ++i) {
      const auto& of_row = keys[static_cast<size_t>(i)];
      for (Index j = 0; j < A.cols(); ++j) {
        const bool listed = std::binary_search(of_row.begin(), of_row.end(), j);
        wrong += listed ? weighs_all && A(i, j) == 0 : A(i, j) != 0;
      }
    }
    results.push_back(compared(name, "entries of A that are not as the pattern says, " + one.name(), wrong, 0));
  }
  return results;
}

}  // namespace attnbench
