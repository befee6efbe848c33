#include "approximations/clusters/clusters.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "harness/linalg/per_row.hpp"
#include "harness/linalg/rows.hpp"

namespace attnbench {

namespace {

constexpr Index block_rows = 256;
constexpr Index seeds_a_centroid = 16;

}  // namespace

template <class S>
std::vector<Index> largest(std::span<const S> scores, Index count) {
  std::vector<Index> places(scores.size());
  std::iota(places.begin(), places.end(), Index(0));
  if (count >= static_cast<Index>(places.size())) return places;
  const auto comes_first = [&](Index a, Index b) {
    const S score_a = scores[static_cast<size_t>(a)], score_b = scores[static_cast<size_t>(b)];
    return score_a > score_b || (score_a == score_b && a < b);
  };
  std::nth_element(places.begin(), places.begin() + count, places.end(), comes_first);
  places.resize(static_cast<size_t>(count));
  std::sort(places.begin(), places.end());
  return places;
}

template <class T>
void softmax_over(Context& context, const In<T>& query, const In<T>& K, std::span<const Index> keys, Out<T> row) {
  if (keys.empty()) return;
  Matrix<T> weights(1, static_cast<Index>(keys.size()));
  multiply_transposed<T>(context, query, gather<T>(K, keys), weights);
  softmax_within<T>(context, weights, 0, 0, weights.cols());
  for (Index a = 0; a < weights.cols(); ++a) row(0, keys[static_cast<size_t>(a)]) = weights(0, a);
}

template <class T>
Matrix<double> layer_norm(const In<T>& X) {
  Matrix<double> normalised = X.template cast<double>();
  normalised.colwise() -= normalised.rowwise().mean().eval();
  for (Index i = 0; i < X.rows(); ++i) {
    const double deviation = normalised.row(i).norm() / std::sqrt(static_cast<double>(X.cols()));
    if (deviation > 1e-14 * X.row(i).cwiseAbs().maxCoeff())  // more than rounding gives a constant row
      normalised.row(i) /= deviation;
    else
      normalised.row(i).setZero();
  }
  return normalised;
}

template <class T>
std::vector<std::vector<Index>> routes(Context& context, const In<T>& X, const Matrix<double>& centroids, Index top) {
  const Index n = X.rows(), clusters = centroids.rows();
  // Avoid blocks of one row: another kernel computes their product, so equal tokens could differ in the last bit.
  Index block = block_rows;
  while (n % block == 1) --block;
  Matrix<double> scores(clusters, n);
  context.for_blocks(n, block, [&](Context& single, Index begin, Index count) {
    const Matrix<double> tokens = layer_norm<T>(row_block(X, begin, count));
    multiply_transposed<double>(single, centroids, tokens, Out<double>(scores.data() + begin, clusters, count, n));
  });
  if (top == 0) top = (n + clusters - 1) / clusters;
  std::vector<std::vector<Index>> taken(static_cast<size_t>(clusters));
  context.for_blocks(clusters, 1, [&](Context&, Index c, Index) {
    taken[static_cast<size_t>(c)] = largest<double>({scores.data() + c * n, static_cast<size_t>(n)}, top);
  });
  return taken;
}

Coverage coverage(std::span<const std::vector<Index>> members, Index tokens) {
  PerRow<Index> groups(tokens);
  for (const auto& group : members)
    for (const Index token : group) ++groups[token];
  return {tokens, std::count(groups.begin(), groups.end(), 0),
          std::count_if(groups.begin(), groups.end(), [](Index count) { return count > 1; })};
}

Groups group_queries(Context& context, const In<double>& X, std::span<const double> uniforms, Index sweeps) {
  const Index sample = std::min(X.rows(), seeds_a_centroid * static_cast<Index>(uniforms.size()));
  Matrix<double> seeds(sample, X.cols());
  for (Index i = 0; i < sample; ++i) seeds.row(i) = X.row(i * X.rows() / sample);
  Groups groups{kmeans(context, X, seed_centres(context, seeds, uniforms), {.most = sweeps}).centres, {}};
  groups.nearest = nearest_codes<double>(context, X, groups.centroids);
  return groups;
}

double grouping_flops(Index n, Index d, Index clusters, Index sweeps) {
  const auto distances = static_cast<double>(d * clusters);
  return distances * static_cast<double>(3 * std::min(n, seeds_a_centroid * clusters) + 2 * n * (sweeps + 1));
}

Balance sinkhorn(Context& context, Matrix<double>& log_P, Index sweeps, double tolerance) {
  Balance balance;
  const auto log_sum = [&](const auto& line) {
    const double most = line.maxCoeff();
    context.work.exps += static_cast<double>(line.size());
    return most == -INFINITY ? 0 : most + std::log((line - most).exp().sum());
  };
  Eigen::ArrayXd sums(log_P.rows());
  const auto row_sums = [&] {
    for (Index i = 0; i < log_P.rows(); ++i) sums[i] = log_sum(log_P.row(i).array());
  };
  row_sums();
  while (balance.sweeps < sweeps) {
    for (Index i = 0; i < log_P.rows(); ++i) log_P.row(i).array() -= sums[i];
    for (Index j = 0; j < log_P.cols(); ++j) log_P.col(j).array() -= log_sum(log_P.col(j).array());
    ++balance.sweeps;
    row_sums();
    balance.residual = (sums.exp() - 1).abs().maxCoeff();
    if (balance.residual <= tolerance) break;
  }
  return balance;
}

template Matrix<double> layer_norm<float>(const In<float>&);
template std::vector<std::vector<Index>> routes<float>(Context&, const In<float>&, const Matrix<double>&, Index);
template Matrix<double> layer_norm<double>(const In<double>&);
template std::vector<std::vector<Index>> routes<double>(Context&, const In<double>&, const Matrix<double>&, Index);
template std::vector<Index> largest<float>(std::span<const float>, Index);
template std::vector<Index> largest<double>(std::span<const double>, Index);
template void softmax_over<float>(Context&, const In<float>&, const In<float>&, std::span<const Index>, Out<float>);
template void softmax_over<double>(Context&, const In<double>&, const In<double>&, std::span<const Index>, Out<double>);

}  // namespace attnbench
