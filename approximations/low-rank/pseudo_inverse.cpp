#include "approximations/low-rank/pseudo_inverse.hpp"

#include <lapacke.h>

#include "harness/errors/error.hpp"
#include "harness/linalg/per_row.hpp"

namespace attnbench {

Matrix<double> pseudo_inverse(Context& context, Matrix<double> A, double tolerance) {
  const auto m = static_cast<lapack_int>(A.rows());
  // LAPACK is column-major and these are row-major, so it decomposes A^T = V S U^T and returns V^T and U.
  Matrix<double> Vt(m, m), U(m, m), Z(m, m);
  PerRow<double> sigma(m);
  if (LAPACKE_dgesdd(LAPACK_COL_MAJOR, 'S', m, m, A.data(), m, sigma.data(), Vt.data(), m, U.data(), m) != 0)
    throw NumericallyInvalid("the matrix between landmarks has no singular values");
  for (Index a = 0; a < m; ++a) {
    const double own = sigma[a];
    Vt.row(a) *= own > tolerance * sigma[0] ? 1 / own : 0;
  }
  multiply<double>(context, U, Vt, Z);
  context.work.flops += 21 * static_cast<double>(A.rows() * A.rows() * A.rows());
  return Z.transpose();
}

template <class T>
Matrix<T> newton_schulz_inverse(Context& context, const Matrix<T>& A, Index iterations) {
  const Index m = A.rows();
  const T norms = A.cwiseAbs().colwise().sum().maxCoeff() * A.cwiseAbs().rowwise().sum().maxCoeff();
  Matrix<T> Z = A.transpose() / norms, AZ(m, m), inner(m, m), product(m, m);
  const auto subtract_from = [](T factor, Matrix<T>& X) {
    X = -X;
    X.diagonal().array() += factor;
  };
  for (Index iteration = 0; iteration < iterations; ++iteration) {
    multiply<T>(context, A, Z, AZ);
    inner = AZ;
    subtract_from(7, inner);
    multiply<T>(context, AZ, inner, product);
    subtract_from(15, product);
    multiply<T>(context, AZ, product, inner);
    subtract_from(13, inner);
    multiply<T>(context, Z, inner, product);
    Z = product / 4;
  }
  return Z;
}

template Matrix<float> newton_schulz_inverse<float>(Context&, const Matrix<float>&, Index);
template Matrix<double> newton_schulz_inverse<double>(Context&, const Matrix<double>&, Index);

}  // namespace attnbench
