#include "approximations/codebook/kmeans.hpp"

#include <algorithm>
#include <boost/random/uniform_01.hpp>

#include "harness/linalg/rows.hpp"

namespace attnbench {

namespace {

constexpr Index row_block = 256;

Matrix<double> seed_centres(const In<double>& X, Index count, Generator& generator) {
  boost::random::uniform_01<double> uniform;
  Matrix<double> centres(count, X.cols());
  const auto n = static_cast<double>(X.rows());
  centres.row(0) = X.row(static_cast<Index>(uniform(generator) * n));
  Eigen::VectorXd distance = (X.rowwise() - centres.row(0)).rowwise().squaredNorm();
  for (Index c = 1; c < count; ++c) {
    double remaining = uniform(generator) * distance.sum();
    Index chosen = 0;
    // Distances are zero at rows already chosen: they are passed over unless nothing else is left.
    for (Index i = 0; i < X.rows() && remaining >= 0; ++i)
      if (distance[i] > 0) {
        chosen = i;
        remaining -= distance[i];
      }
    centres.row(c) = X.row(chosen);
    distance = distance.cwiseMin((X.rowwise() - centres.row(c)).rowwise().squaredNorm());
  }
  return centres;
}

// Moves each centre to the mean of its rows; a centre without rows stays.
void move_to_means(const In<double>& X, const std::vector<Index>& nearest, Matrix<double>& centres) {
  Matrix<double> sums = Matrix<double>::Zero(centres.rows(), centres.cols());
  std::vector<double> counts(static_cast<size_t>(centres.rows()));
  for (Index i = 0; i < X.rows(); ++i) {
    const Index code = nearest[static_cast<size_t>(i)];
    sums.row(code) += X.row(i);
    ++counts[static_cast<size_t>(code)];
  }
  for (Index c = 0; c < centres.rows(); ++c)
    if (const double count = counts[static_cast<size_t>(c)]; count > 0) centres.row(c) = sums.row(c) / count;
}

double total_distance(const In<double>& X, const std::vector<Index>& nearest, const Matrix<double>& centres) {
  double sum = 0;
  for (Index i = 0; i < X.rows(); ++i) sum += (X.row(i) - centres.row(nearest[static_cast<size_t>(i)])).squaredNorm();
  return sum;
}

}  // namespace

template <class T>
std::vector<Index> nearest_codes(Context& context, const In<T>& X, const In<T>& centres) {
  std::vector<T> half_norms(static_cast<size_t>(centres.rows()));
  half_squared_norms<T>(centres, half_norms);
  return nearest_codes<T>(context, X, centres, half_norms);
}

template <class T>
std::vector<Index> nearest_codes(Context& context, const In<T>& X, const In<T>& centres,
                                 std::span<const T> half_norms) {
  const Eigen::Map<const Eigen::Array<T, 1, Eigen::Dynamic>> half(half_norms.data(), centres.rows());
  std::vector<Index> nearest(static_cast<size_t>(X.rows()));
  context.for_blocks(X.rows(), row_block, [&](Context& single, Index begin, Index count) {
    Matrix<T> scores(count, centres.rows());
    multiply_transposed<T>(single, attnbench::rows(X, begin, count), centres, scores);  // argmin |x-c|^2 = argmax of
    for (Index i = 0; i < count; ++i) {                                                 // x.c - |c|^2/2
      const auto row = (scores.row(i).array() - half).eval();
      Index best = 0;
      for (Index c = 1; c < row.size(); ++c)
        if (row[c] > row[best]) best = c;
      nearest[static_cast<size_t>(begin + i)] = best;
    }
  });
  return nearest;
}

Clustering kmeans(Context& context, const In<double>& X, Index codes, Index sweeps, Generator& generator) {
  Clustering result{seed_centres(X, std::min(codes, X.rows()), generator), {}};
  std::vector<Index> nearest = nearest_codes<double>(context, X, result.centres);
  for (Index sweep = 0; sweep < sweeps; ++sweep) {
    result.inertia.push_back(total_distance(X, nearest, result.centres));
    move_to_means(X, nearest, result.centres);
    auto moved = nearest_codes<double>(context, X, result.centres);
    if (moved == nearest) break;
    nearest = std::move(moved);
  }
  return result;
}

Matrix<double> learn_codebook(const Draw& draw) {
  const Index codes = draw.params.integer("codes");
  if (draw.state && draw.state->contains("codebook")) {
    const Index learnt = draw.state->at("codebook").rows();  // fewer than codes when there were fewer keys
    return *draw.injected("codebook", std::clamp<Index>(learnt, 1, codes), draw.shape.d);
  }
  if (!draw.calibration)
    throw Misuse(draw.params.name() + ": the codebook is learnt from a calibration head, but none was given");
  auto generator = draw.streams.stream("codebook", "kmeans", codes, draw.shape.d, draw.head, draw.replicate);
  Context context;
  return kmeans(context, draw.calibration->K, codes, draw.params.integer("sweeps"), generator).centres;
}

#define ATTNBENCH_INSTANTIATE(T)                                                      \
  template std::vector<Index> nearest_codes<T>(Context&, const In<T>&, const In<T>&); \
  template std::vector<Index> nearest_codes<T>(Context&, const In<T>&, const In<T>&, std::span<const T>);
ATTNBENCH_INSTANTIATE(float)
ATTNBENCH_INSTANTIATE(double)
#undef ATTNBENCH_INSTANTIATE

}  // namespace attnbench
