// How far a token can be heard through layers of one method. After L layers with skip connections, token j reaches
// token i if at most L weights, none of them 0, lead from i to j. The values of weights do not matter, so this is about
// sparse patterns: methods with a weight for each pair reach all in one layer.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>

#include "harness/errors/error.hpp"
#include "harness/experiment/experiment.hpp"

namespace attnbench::reach_experiment {
namespace {

// A square matrix of zeros and ones, 64 entries of a row in a word.
class Connections {
 public:
  // Token i hears itself, and token j where A_ij is not 0.
  explicit Connections(const Matrix<double>& A) : n_(A.rows()), words_(Words::Zero(n_, (n_ + 63) / 64)) {
    for (Index i = 0; i < n_; ++i)
      for (Index j = 0; j < n_; ++j)
        if (i == j || A(i, j) != 0) words_(i, j / 64) |= std::uint64_t(1) << (j % 64);
  }

  bool connect(Index i, Index j) const { return (words_(i, j / 64) >> (j % 64) & 1) != 0; }

  // One layer more: i hears all that those tokens heard which it hears in this layer.
  Connections before(const Connections& layer) const {
    Connections all = *this;
    for (Index i = 0; i < n_; ++i)
      for (Index j = 0; j < n_; ++j)
        if (layer.connect(i, j))
          for (Index w = 0; w < words_.cols(); ++w) all.words_(i, w) |= words_(j, w);
    return all;
  }

  Index pairs() const {
    Index all = 0;
    for (const std::uint64_t word : words_.reshaped()) all += std::popcount(word);
    return all;
  }

  Index farthest() const {
    Index most = 0;
    for (Index i = 0; i < n_; ++i)
      for (Index j = 0; j < n_; ++j)
        if (connect(i, j)) most = std::max(most, std::abs(i - j));
    return most;
  }

 private:
  using Words = Eigen::Matrix<std::uint64_t, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

  Index n_;
  Words words_;
};

void refuse_other_queries(const Cell& cell) {
  const Shape& shape = cell.problem.shape;
  if (shape.nq != shape.nk)
    throw Misuse(fmt::format("reach: layers need as many queries as keys; {} queries and {} keys were given", shape.nq,
                             shape.nk));
}

void measure(const Task& task, Recorder& record) {
  const Shape& shape = task.cell.problem.shape;
  const Index layers = task.cell.experiment.integer("layers");
  const Connections layer(task.applied().attention);
  Index visible = 0;
  for (Index i = 0; i < shape.nq; ++i) visible += shape.mask.visible(i, shape.nk);
  std::vector<double> numbers, shares, farthest;
  Index to_all = layers + 1;
  Connections heard = layer;
  for (Index l = 1; l <= layers; ++l) {
    if (l > 1) heard = heard.before(layer);
    const Index pairs = heard.pairs();
    if (pairs == visible) to_all = std::min(to_all, l);
    numbers.push_back(static_cast<double>(l));
    shares.push_back(static_cast<double>(pairs) / static_cast<double>(visible));
    farthest.push_back(static_cast<double>(heard.farthest()));
  }
  record.scalar("layers_to_all", "1", static_cast<double>(to_all));
  record.scalar("farthest_at_last", "tokens", farthest.back());
  record.array("layers", "1", {layers}, std::move(numbers));
  record.array("reached_share", "1", {layers}, std::move(shares));
  record.array("farthest", "tokens", {layers}, std::move(farthest));
}

const bool registered = add(ExperimentEntry{
    .text = {.name = "reach",
             .summary = "through how many layers of a pattern each token reaches each other one",
             .formula = "pairs (i, j) with (I + [A != 0])^L_ij > 0, over the pairs that the mask lets meet",
             .reference = "Child et al. 2019, arXiv:1904.10509, section 4.2; Beltagy et al. 2020, arXiv:2004.05150, "
                          "section 3.1",
             .cost = "n^3 / 64 bit operations per layer"},
    .parameters = {Parameter::integer("layers", 8, "L: layers of the same pattern", 1, 1024)},
    .metrics = {{"layers_to_all", "1",
                 "the least number of layers after which each pair that the mask lets meet is connected; L + 1 if L "
                 "layers are too few"},
                {"farthest_at_last", "tokens", "max |i - j| over the pairs that L layers connect"},
                {"layers", "1", "1 to L"},
                {"reached_share", "1", "share of the pairs that so many layers connect", {}, "pairs connected / pairs"},
                {"farthest", "tokens", "max |i - j| over the pairs that so many layers connect", {}, "farthest pair"}},
    .headline = {.metric = "layers_to_all", .label = "layers until every pair is connected"},
    .check = refuse_other_queries,
    .bytes = [](const Cell& cell) { return 2 * matrix_bytes(cell); },
    .run = measure,
});

}  // namespace
}  // namespace attnbench::reach_experiment
