// Products of Hadamard matrices and random signs, in a separate header so that tests can set the signs.
#pragma once

#include "harness/linalg/matrix.hpp"

namespace attnbench {

// sqrt(D) H D_1 H D_2 ... H D_f, D x D, H orthogonal. signs is f x D, a diagonal a row, D a power of two.
Matrix<double> hadamard_block(const Matrix<double>& signs);

}  // namespace attnbench
