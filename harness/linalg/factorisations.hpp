// Factorisations by LAPACK, in double: what spectra of large matrices and fitted transforms are made of. All throw
// std::runtime_error when LAPACK fails. (Eigen's own take a file that includes them 20 to 50 s to compile.)
#pragma once

#include <span>
#include <vector>

#include "harness/linalg/matrix.hpp"

namespace attnbench {

// R of the thin QR of X (n x F, any n), F x F upper triangular, signs as they come. X is read in panels of rows, each
// folded into the R so far (a sequential TSQR: Demmel et al. 2012, SIAM J. Sci. Comput. 34:A206): O((panel + F) F)
// memory.
Matrix<double> triangular_factor(const In<double>& X);

// X (n x b, b <= n) becomes an orthonormal basis of its columns; where they are dependent, of more than their span.
void orthonormalise(Matrix<double>& X);

// The singular values of X (F x F), largest first, and its right singular vectors as the columns of V.
struct RightSingularVectors {
  std::vector<double> sigma;
  Matrix<double> V;
};
RightSingularVectors right_singular_vectors(const Matrix<double>& X);

// The eigenvalues of a symmetric X (F x F, its lower triangle is read), smallest first, and its eigenvectors as the
// columns of V.
struct Eigenvectors {
  std::vector<double> values;
  Matrix<double> V;
};
Eigenvectors symmetric_eigenvectors(const Matrix<double>& X);

// X^-1 (F x F). Throws NumericallyInvalid when X is singular.
Matrix<double> inverse(Matrix<double> X);

// The singular values of an upper bidiagonal matrix, to a relative precision of epsilon each (Demmel and Kahan 1990),
// and the squares of the first components of its right singular vectors, which sum to 1.
struct Quadrature {
  std::vector<double> nodes, weights;
};
// superdiagonal: one entry fewer than the diagonal.
Quadrature bidiagonal_quadrature(std::vector<double> diagonal, std::vector<double> superdiagonal);

}  // namespace attnbench
