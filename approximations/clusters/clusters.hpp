// What methods that sort tokens into groups share: gathering rows, picking the best, k-means of a call's own queries,
// who is in a cluster at all, and Sinkhorn's balancing. methods.md F.
//
// Decisions between real numbers (which centroid, which token) are taken in double from the numbers of the call, for
// float heads as well: they cost little beside the attention, and both scalar types then group tokens alike.
#pragma once

#include <vector>

#include "approximations/codebook/kmeans.hpp"
#include "approximations/codebook/nearest_codes.hpp"
#include "harness/core/approximation.hpp"

namespace attnbench {

// Those rows of X, in that order.
template <class T>
Matrix<T> gather(const In<T>& X, std::span<const Index> chosen) {
  Matrix<T> gathered(static_cast<Index>(chosen.size()), X.cols());
  for (Index i = 0; i < gathered.rows(); ++i) gathered.row(i) = X.row(chosen[static_cast<size_t>(i)]);
  return gathered;
}

// The places of the `count` largest scores, ascending; of equal scores the first. All places when there are fewer.
template <class S>
std::vector<Index> largest(std::span<const S> scores, Index count);

// Softmax of one query's logits over the keys that it has, written into its row of A at those keys. K's rows are all
// keys. A second path for patterns: slow and plain.
template <class T>
void softmax_over(Context& context, const In<T>& query, const In<T>& K, std::span<const Index> keys, Out<T> row);

// Rows of X less their mean, over their standard deviation: layer norm without its affine part. Constant rows become 0.
template <class T>
Matrix<double> layer_norm(const In<T>& X);

// The rows of X that each centroid takes, ascending: the `top` whose layer norm has the largest product with it (0: the
// number of rows over that of centroids, rounded up).
template <class T>
std::vector<std::vector<Index>> routes(Context& context, const In<T>& X, const Matrix<double>& centroids, Index top);

// How much of a sequence a grouping reaches: P15 of public code is that nobody looks.
struct Coverage {
  Index tokens = 0;
  Index in_none = 0;     // their rows are 0
  Index in_several = 0;  // their rows are averages
};
Coverage coverage(std::span<const std::vector<Index>> members, Index tokens);

// Queries in groups, each with its mean: what a method that clusters at the time of the call works with.
struct Groups {
  Matrix<double> centroids;    // at most one a uniform, and a query
  std::vector<Index> nearest;  // of each query
};

// k-means of the rows of X, a centroid for each of the uniform numbers in [0, 1). An empty group keeps its centroid.
// They are first chosen among 16 rows for each, spread evenly over X (all, when there are fewer): of 16384 rows, 64
// would otherwise take twice as long as the rest.
Groups group_queries(Context& context, const In<double>& X, std::span<const double> uniforms, Index sweeps);
// FLOPs of it.
double grouping_flops(Index n, Index d, Index clusters, Index sweeps);

// What Sinkhorn's sweeps came to.
struct Balance {
  Index sweeps = 0;
  double residual = 0;  // the largest |row sum - 1| after the last sweep; columns sum to 1 but for rounding
};

// P = exp(log_P) becomes doubly stochastic: rows and then columns of P are divided by their sums, in the logarithm, at
// most `sweeps` times, until every row sum is within `tolerance` of 1. log_P is N x N.
Balance sinkhorn(Context& context, Matrix<double>& log_P, Index sweeps, double tolerance);

}  // namespace attnbench
