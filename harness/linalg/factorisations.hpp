// Factorisations by LAPACK, in double, for spectra of large matrices and for fitted transforms. All throw
// std::runtime_error when LAPACK fails. (A file that includes Eigen's own takes 20 to 50 s to compile.)
#pragma once

#include <span>
#include <vector>

#include "harness/linalg/matrix.hpp"

namespace attnbench {

// R of the thin QR of X (n x F, any n), F x F upper triangular, with no positive number on its diagonal. So R does not
// depend on the order of the factorisation; inputs with key_size, and all published numbers about them, depend on its
// signs. Reads X in panels of rows and folds each into the R so far (a sequential TSQR: Demmel et al. 2012, SIAM J.
// Sci. Comput. 34:A206): O((panel + F) F) memory.
Matrix<double> triangular_factor(const In<double>& X);

// Replaces X (n x b, b <= n) by an orthonormal basis of its columns. If they are dependent, the basis spans more than
// they do.
void orthonormalise(Matrix<double>& X);

// The singular values of X (F x F), largest first, and its right singular vectors as the columns of V.
struct RightSingularVectors {
  std::vector<double> sigma;
  Matrix<double> V;
};
RightSingularVectors right_singular_vectors(const Matrix<double>& X);

// The eigenvalues of a symmetric X (F x F; only its lower triangle is read), smallest first, and its eigenvectors as
// the columns of V.
struct Eigenvectors {
  std::vector<double> values;
  Matrix<double> V;
};
Eigenvectors symmetric_eigenvectors(const Matrix<double>& X);

// x = X^-1 x for a symmetric positive definite X (F x F), by Cholesky. Overwrites X. Throws NumericallyInvalid when X
// is not positive definite.
void solve_positive_definite(Matrix<double>& X, std::span<double> x);

// X^-1 (F x F). Throws NumericallyInvalid when X is singular.
Matrix<double> inverse(Matrix<double> X);

// The singular values of an upper bidiagonal matrix, each to a relative precision of epsilon (Demmel and Kahan 1990),
// and the squares of the first components of its right singular vectors, which sum to 1.
struct Quadrature {
  std::vector<double> nodes, weights;
};
// superdiagonal: one entry fewer than the diagonal.
Quadrature bidiagonal_quadrature(std::vector<double> diagonal, std::vector<double> superdiagonal);

}  // namespace attnbench
