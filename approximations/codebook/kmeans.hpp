// Codebooks: k-means++ and Lloyd's sweeps, and the assignment of vectors to codes. methods.md D.
#pragma once

#include <vector>

#include "harness/core/approximation.hpp"

namespace attnbench {

struct Clustering {
  Matrix<double> centres;       // min(codes, n) x d
  std::vector<double> inertia;  // sum of squared distances to the nearest centre before each sweep: non-increasing
};

// k-means of the rows of X (n x d): k-means++ seeding (Arthur and Vassilvitskii 2007), then at most `sweeps` of Lloyd,
// stopping when no assignment changes. An empty cluster keeps its centre. No more centres than rows.
Clustering kmeans(Context& context, const In<double>& X, Index codes, Index sweeps, Generator& generator);

// The codebook of the parameters `codes` and `sweeps` (c x d): the injected tensor "codebook", or else k-means of the
// calibration head's keys, from a stream of its own, so that methods of as many codes share it.
Matrix<double> learn_codebook(const Draw& draw);

// nearest[i] = argmin_y |x_i - c_y|, ties to the lowest index. X is n x d, centres c x d; half_norms are |c_y|^2 / 2.
template <class T>
std::vector<Index> nearest_codes(Context& context, const In<T>& X, const In<T>& centres, std::span<const T> half_norms);
template <class T>
std::vector<Index> nearest_codes(Context& context, const In<T>& X, const In<T>& centres);

}  // namespace attnbench
