// Products of Hadamard matrices and diagonals, for the ensembles made of them and for tests that set the signs.
#pragma once

#include <bit>

#include "harness/linalg/matrix.hpp"

namespace attnbench {

inline Index padded_to_power_of_two(Index d) { return static_cast<Index>(std::bit_ceil(static_cast<std::size_t>(d))); }

// Multiplies W (D x any, D a power of two) from the left by the Hadamard matrix of entries 1 and -1, in D log D
// additions a column.
void walsh_hadamard(Matrix<double>& W);

// sqrt(D) H D_1 H D_2 ... H D_f, D x D, H orthogonal. signs is f x D, a diagonal a row, D a power of two.
Matrix<double> hadamard_block(const Matrix<double>& signs);

}  // namespace attnbench
