#include "approximations/codebook/kmeans.hpp"

#include <algorithm>
#include <boost/random/uniform_01.hpp>
#include <numeric>

#include "approximations/codebook/nearest_codes.hpp"
#include "harness/linalg/per_row.hpp"

namespace attnbench {

namespace {

constexpr Index seeding_block = 512;  // rows; at d = 64 in float 128 KB, which fits in the second-level cache
constexpr Index most_partial_sums = 16;

// Squared distances of rows to the nearest centre so far, and their sums over blocks of rows. A pass is limited by
// memory bandwidth: numbers are float, which is precise enough to draw from, and the rows of a block are contiguous.
class Distances {
 public:
  explicit Distances(const In<double>& X)
      : rows_(X.rows()), nearest_(1, X.rows()), sums_(static_cast<size_t>((X.rows() - 1) / seeding_block + 1)) {
    nearest_.setConstant(std::numeric_limits<float>::infinity());
    for (Index begin = 0; begin < rows_; begin += seeding_block)
      blocks_.push_back(row_block(X, begin, std::min(seeding_block, rows_ - begin)).transpose().cast<float>());
  }

  void add_centre(Context& context, const Eigen::RowVectorXf& centre) {
    context.for_blocks(rows_, seeding_block, [&](Context& single, Index begin, Index count) {
      single.work.flops += 3.0 * static_cast<double>(count * centre.size());
      const size_t block = static_cast<size_t>(begin / seeding_block);
      Eigen::Array<float, 1, Eigen::Dynamic> squared = Eigen::Array<float, 1, Eigen::Dynamic>::Zero(count);
      for (Index l = 0; l < centre.size(); ++l) squared += (blocks_[block].row(l).array() - centre[l]).square();
      auto nearest = nearest_.row(0).segment(begin, count).array();
      nearest = nearest.min(squared);
      sums_[block] = nearest.cast<double>().sum();
    });
  }

  // The row where the cumulative distance reaches `share` of the total. Skips rows of distance 0, which are centres
  // already, unless all rows are.
  Index at(double share) const {
    double remaining = share * std::accumulate(sums_.begin(), sums_.end(), 0.0);
    size_t block = 0;
    while (block + 1 < sums_.size() && remaining >= sums_[block]) remaining -= sums_[block++];
    const Index begin = static_cast<Index>(block) * seeding_block, end = std::min(begin + seeding_block, rows_);
    Index chosen = 0;
    for (Index i = begin; i < end && remaining >= 0; ++i)
      if (nearest_(0, i) > 0) {
        chosen = i;
        remaining -= static_cast<double>(nearest_(0, i));
      }
    return chosen;
  }

 private:
  Index rows_;
  std::vector<Matrix<float>> blocks_;  // d x rows of the block
  Matrix<float> nearest_;              // 1 x rows
  std::vector<double> sums_;
};

// For a block of rows: the number and the sum of the rows on each code, and the rows' squared distances to their codes.
struct CodeStatistics {
  CodeStatistics(Index codes, Index d) : counts(Eigen::VectorXd::Zero(codes)), sums(Matrix<double>::Zero(codes, d)) {}

  void add(const In<double>& X, Index row, Index code, const Matrix<double>& centres) {
    ++counts[code];
    sums.row(code) += X.row(row);
    inertia += (X.row(row) - centres.row(code)).squaredNorm();
  }
  void add(const CodeStatistics& other) {
    counts += other.counts;
    sums += other.sums;
    inertia += other.inertia;
  }

  Eigen::VectorXd counts;
  Matrix<double> sums;  // c x d
  double inertia = 0;
};

// Computed in parts and added in order; the number of parts depends on the sizes alone.
CodeStatistics statistics(Context& context, const In<double>& X, const std::vector<Index>& nearest,
                          const Matrix<double>& centres) {
  const Index block = std::max({Index(1024), 4 * centres.rows(), (X.rows() - 1) / most_partial_sums + 1});
  std::vector<CodeStatistics> parts(static_cast<size_t>((X.rows() - 1) / block + 1), {centres.rows(), X.cols()});
  context.for_blocks(X.rows(), block, [&](Context&, Index begin, Index count) {
    auto& part = parts[static_cast<size_t>(begin / block)];
    for (Index i = begin; i < begin + count; ++i) part.add(X, i, nearest[static_cast<size_t>(i)], centres);
  });
  for (size_t part = 1; part < parts.size(); ++part) parts[0].add(parts[part]);
  return parts[0];
}

}  // namespace

Matrix<double> seed_centres(Context& context, const In<double>& X, std::span<const double> uniforms) {
  Matrix<double> centres(std::min(static_cast<Index>(uniforms.size()), X.rows()), X.cols());
  Distances distances(X);
  for (Index c = 0; c < centres.rows(); ++c) {
    const double share = uniforms[static_cast<size_t>(c)];
    centres.row(c) = X.row(c == 0 ? static_cast<Index>(share * static_cast<double>(X.rows())) : distances.at(share));
    if (c + 1 < centres.rows()) distances.add_centre(context, centres.row(c).cast<float>());
  }
  return centres;
}

Clustering kmeans(Context& context, const In<double>& X, Matrix<double> seeds, Sweeps sweeps) {
  Clustering result{std::move(seeds), {}};
  auto& centres = result.centres;
  std::vector<Index> nearest;
  Eigen::VectorXd N;
  Matrix<double> Sigma;
  for (Index sweep = 0; sweep < sweeps.most; ++sweep) {
    auto assigned = nearest_codes<double>(context, X, centres);
    if (assigned == nearest && sweeps.decay == 0) break;
    nearest = std::move(assigned);
    const auto now = statistics(context, X, nearest, centres);
    result.inertia.push_back(now.inertia);
    if (sweep == 0) {  // moving averages start at the seeds, each weighted by its number of rows
      N = now.counts;
      Sigma = N.asDiagonal() * centres;
    }
    N = sweeps.decay * N + (1 - sweeps.decay) * now.counts;
    Sigma = sweeps.decay * Sigma + (1 - sweeps.decay) * now.sums;
    for (Index y = 0; y < centres.rows(); ++y)
      if (now.counts[y] > 0) centres.row(y) = Sigma.row(y) / N[y];
  }
  return result;
}

Clustering kmeans(Context& context, const In<double>& X, Index codes, Sweeps sweeps, Generator& generator) {
  boost::random::uniform_01<double> uniform;
  PerRow<double> uniforms(std::min(codes, X.rows()));
  for (double& u : uniforms) u = uniform(generator);
  return kmeans(context, X, seed_centres(context, X, uniforms), sweeps);
}

}  // namespace attnbench
