// Inverses of small square matrices for Nystroem attention. methods.md E.
#pragma once

#include "harness/linalg/products.hpp"

namespace attnbench {

// Z with A Z A = A, where singular values of A below tolerance times the largest count as 0. By SVD, in double. A is
// m x m. Throws NumericallyInvalid if an entry is NaN or infinite.
Matrix<double> pseudo_inverse(Context& context, Matrix<double> A, double tolerance);

// FLOPs of the SVD with left and right vectors (Golub and Van Loan, section 8.6) and of the product.
inline double pseudo_inverse_flops(Index m) { return 23 * static_cast<double>(m * m * m); }

// Z_0 = A^T / (|A|_1 |A|_inf), then `iterations` times Z <- Z (13 I - A Z (15 I - A Z (7 I - A Z))) / 4. Razavi et al.
// 2014; Xiong et al. 2021, arXiv:2102.03902, eq. 11. A step maps the residual E = I - A Z to 3/4 E^3 + 1/4 E^4. |A|_1
// and |A|_inf are of this matrix alone; a library that takes them over a batch makes heads depend on each other.
template <class T>
Matrix<T> newton_schulz_inverse(Context& context, const Matrix<T>& A, Index iterations);

}  // namespace attnbench
