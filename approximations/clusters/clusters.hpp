// Shared code of the methods that sort tokens into groups: gathering rows, picking the largest, k-means of a call's own
// queries, how many tokens are in any cluster, and Sinkhorn's balancing. methods.md F.
//
// Comparisons of real numbers (which centroid, which token) are made in double, for float heads as well: they cost
// little beside the attention, and both scalar types then group tokens alike.
#pragma once

#include <vector>

#include "approximations/codebook/kmeans.hpp"
#include "approximations/codebook/nearest_codes.hpp"
#include "harness/core/approximation.hpp"

namespace attnbench {

// The given rows of X, in the given order.
template <class T>
Matrix<T> gather(const In<T>& X, std::span<const Index> chosen) {
  Matrix<T> gathered(static_cast<Index>(chosen.size()), X.cols());
  for (Index i = 0; i < gathered.rows(); ++i) gathered.row(i) = X.row(chosen[static_cast<size_t>(i)]);
  return gathered;
}

// The places of the `count` largest scores, ascending; of equal scores the first. All places when there are fewer.
template <class S>
std::vector<Index> largest(std::span<const S> scores, Index count);

// Softmax of one query's logits over its own keys, written into its row of A at those keys. K holds all keys. Slow and
// plain: tests compare the patterns' fast path with it.
template <class T>
void softmax_over(Context& context, const In<T>& query, const In<T>& K, std::span<const Index> keys, Out<T> row);

// Rows of X less their mean, over their standard deviation: layer norm without its affine part. Constant rows become 0.
template <class T>
Matrix<double> layer_norm(const In<T>& X);

// The rows of X that each centroid takes, ascending: the `top` rows whose layer norm has the largest product with it.
// top = 0: the number of rows divided by the number of centroids, rounded up.
template <class T>
std::vector<std::vector<Index>> routes(Context& context, const In<T>& X, const Matrix<double>& centroids, Index top);

// How much of a sequence a grouping reaches. Public code does not check this (anchors P15).
struct Coverage {
  Index tokens = 0;
  Index in_none = 0;     // their rows are 0
  Index in_several = 0;  // their rows are averages
};
Coverage coverage(std::span<const std::vector<Index>> members, Index tokens);

// Queries in groups, each with its mean, for methods that cluster the queries of each call.
struct Groups {
  Matrix<double> centroids;    // at most one per uniform number and one per query
  std::vector<Index> nearest;  // of each query
};

// k-means of the rows of X, a centroid for each of the uniform numbers in [0, 1). An empty group keeps its centroid.
// k-means++ seeds from a subset of X: 16 rows per centroid, evenly spaced (all rows if there are fewer). With 16384
// rows and 64 centroids, seeding from all rows would take twice as long as everything else.
Groups group_queries(Context& context, const In<double>& X, std::span<const double> uniforms, Index sweeps);
// The FLOPs of group_queries.
double grouping_flops(Index n, Index d, Index clusters, Index sweeps);

// The result of Sinkhorn's sweeps.
struct Balance {
  Index sweeps = 0;
  double residual = 0;  // the largest |row sum - 1| after the last sweep; columns sum to 1 but for rounding
};

// Makes P = exp(log_P), N x N, doubly stochastic. A sweep divides the rows and then the columns of P by their sums, in
// the log domain. Stops after `sweeps` sweeps, or when every row sum is within `tolerance` of 1.
Balance sinkhorn(Context& context, Matrix<double>& log_P, Index sweeps, double tolerance);

}  // namespace attnbench
