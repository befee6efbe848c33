#include "harness/measures/attention_matrix.hpp"

#include <fmt/format.h>

#include <cmath>

namespace attnbench {

namespace {

constexpr Index panel_columns = 1024;

template <class T>
Matrix<double> by_panels(const Approximation<T>& method, const Head<T>& head, Mask mask, Context& context) {
  const Index nq = head.Q.rows(), nk = head.K.rows();
  Matrix<double> A(nq, nk);
  for (Index first = 0; first < nk; first += panel_columns) {
    const Index columns = std::min(panel_columns, nk - first);
    Matrix<T> identity = Matrix<T>::Zero(nk, columns), panel(nq, columns);
    for (Index c = 0; c < columns; ++c) identity(first + c, c) = 1;
    method.attend({head.Q, head.K, identity, head.extra}, mask, context, panel);
    A.middleCols(first, columns) = panel.template cast<double>();
  }
  require_finite<double>(A, "attention matrix");
  return A;
}

}  // namespace

template <class T>
void require_finite(const In<T>& X, const std::string& what, Index first_row) {
  for (Index i = 0; i < X.rows(); ++i)
    for (Index j = 0; j < X.cols(); ++j)
      if (!std::isfinite(X(i, j)))
        throw NumericallyInvalid(fmt::format("{}: {} at row {}, column {}", what, X(i, j), first_row + i, j));
}

template void require_finite<float>(const In<float>&, const std::string&, Index);
template void require_finite<double>(const In<double>&, const std::string&, Index);

Matrix<double> attention_matrix(const Approximation<double>& method, const Head<double>& head, Mask mask,
                                Context& context) {
  return by_panels(method, head, mask, context);
}

Matrix<double> attention_matrix(const Approximation<float>& method, const Head<float>& head, Mask mask,
                                Context& context) {
  return by_panels(method, head, mask, context);
}

}  // namespace attnbench
