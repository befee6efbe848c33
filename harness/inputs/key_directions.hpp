// Shrinks the keys of a head: finds the directions of its queries and keys that carry its logits best.
#pragma once

#include "harness/linalg/matrix.hpp"

namespace attnbench {

// d x size each.
struct KeyDirections {
  Matrix<double> of_queries, of_keys;
};

// (Q of_queries)(K of_keys)^T is the best approximation of Q K^T of rank `size` in the Frobenius and the spectral norm
// (Eckart and Young 1936), and both factors have the same column norms. Q is nq x d, K is nk x d, size is at most d.
// Throws Misuse if the rank of Q K^T is lower than `size`.
KeyDirections best_directions(const Matrix<double>& Q, const Matrix<double>& K, Index size);

}  // namespace attnbench
