// Products of Householder reflections.
#pragma once

#include <span>

#include "harness/linalg/matrix.hpp"

namespace attnbench {

// The orthogonal d x d matrix H_d ... H_2 S. H_k reflects the last k coordinates and takes e1 of these to -s x / |x|: x
// (not 0) is the k numbers from number k (k - 1) / 2 on, and s = 1 or -1 the sign of x_1. S is diagonal: -s for each k,
// and in the last place the sign of the first number. So each product so far has x / |x| for its first column.
Matrix<double> product_of_reflections(std::span<const double> directions, Index d);

}  // namespace attnbench
