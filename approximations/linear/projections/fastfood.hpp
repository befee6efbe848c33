// One block of Fastfood, in a separate header so that tests can give the factors.
#pragma once

#include <vector>

#include "harness/linalg/matrix.hpp"

namespace attnbench {

// The factors of a block of D rows.
struct FastfoodFactors {
  Matrix<double> signs;       // D x 1, the diagonal of B
  std::vector<Index> order;   // row i of P H B is row order[i] of H B
  Matrix<double> scales;      // D x 1, the diagonal of G
  std::vector<double> norms;  // of the rows of the block
};

// D^-1/2 S H G P H B, D x D, D a power of two, the diagonal of S norms over the Euclidean norm of scales.
Matrix<double> fastfood_block(const FastfoodFactors& factors);

}  // namespace attnbench
