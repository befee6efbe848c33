// Singular values by LAPACK (divide and conquer, values only), in double.
#pragma once

#include <vector>

#include "harness/linalg/matrix.hpp"

namespace attnbench {

// All min(rows, columns) singular values of A, largest first, to epsilon sigma_1 times a little. A is overwritten.
// Throws std::runtime_error when LAPACK does not converge.
std::vector<double> singular_values(Matrix<double> A);

// LAPACK's own threads off: results then do not depend on them, and cells run side by side. OpenBLAS before 0.3.22 does
// not know recent CPUs and falls back to a fifth of their speed; that is mended by an environment variable that it
// reads at start, so this replaces the process by itself once when it is needed. To be called first in main.
void prepare_lapack(char** argv);

}  // namespace attnbench
