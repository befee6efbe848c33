// Codebooks: k-means++ and Lloyd's sweeps, and the assignment of vectors to codes. methods.md D.
#pragma once

#include <vector>

#include "harness/linalg/context.hpp"
#include "harness/random/streams.hpp"

namespace attnbench {

struct Clustering {
  Matrix<double> centres;       // min(codes, n) x d
  std::vector<double> inertia;  // sum of squared distances to the nearest centre before each sweep: non-increasing
};

// k-means of the rows of X (n x d): k-means++ seeding (Arthur and Vassilvitskii 2007), then at most `sweeps` of Lloyd,
// stopping when no assignment changes. An empty cluster keeps its centre. No more centres than rows.
Clustering kmeans(Context& context, const In<double>& X, Index codes, Index sweeps, Generator& generator);

// nearest[i] = argmin_y |x_i - c_y|, ties to the lowest index. X is n x d, centres c x d.
template <class T>
std::vector<Index> nearest_codes(Context& context, const In<T>& X, const In<T>& centres);

}  // namespace attnbench
