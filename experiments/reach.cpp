// How far a token can be heard through layers of one method. After L layers with skip connections, token j reaches
// token i if at most L weights, none of them 0, lead from i to j. The values of weights do not matter, so this is about
// sparse patterns: methods with a weight for each pair reach all in one layer.
#include <fmt/format.h>

#include <algorithm>

#include "harness/errors/error.hpp"
#include "harness/experiment/experiment.hpp"
#include "harness/linalg/products.hpp"

namespace attnbench::reach_experiment {
namespace {

// Matrices of zeros and ones: 1 where token i hears token j.
using Connections = Matrix<double>;

Connections ones_of(const Matrix<double>& A) { return (A.array() != 0).cast<double>(); }

double farthest_of(const Connections& heard) {
  Index most = 0;
  for (Index i = 0; i < heard.rows(); ++i)
    for (Index j = 0; j < heard.cols(); ++j)
      if (heard(i, j) != 0) most = std::max(most, std::abs(i - j));
  return static_cast<double>(most);
}

void refuse_other_queries(const Cell& cell) {
  const Shape& shape = cell.problem.shape;
  if (shape.nq != shape.nk)
    throw Misuse(fmt::format("reach: layers need as many queries as keys; {} queries and {} keys were given", shape.nq,
                             shape.nk));
}

void measure(const Task& task, Recorder& record) {
  const Shape& shape = task.cell.problem.shape;
  const Index layers = task.cell.experiment.integer("layers");
  Connections layer = ones_of(task.applied().attention);
  layer.diagonal().setOnes();  // the skip connection
  double visible = 0;
  for (Index i = 0; i < shape.nq; ++i) visible += static_cast<double>(shape.mask.visible(i, shape.nk));
  std::vector<double> numbers, shares, farthest;
  Index to_all = layers + 1;
  Connections heard = layer, further(layer.rows(), layer.cols());
  for (Index l = 1; l <= layers; ++l) {
    if (l > 1) {  // i hears all that those tokens heard which it hears in this layer
      multiply<double>(task.context, layer, heard, further);
      heard = ones_of(further);
    }
    if (heard.sum() == visible) to_all = std::min(to_all, l);
    numbers.push_back(static_cast<double>(l));
    shares.push_back(heard.sum() / visible);
    farthest.push_back(farthest_of(heard));
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
             .cost = "n^3 products per layer"},
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
    .bytes = [](const Cell& cell) { return 4 * matrix_bytes(cell); },
    .run = measure,
});

}  // namespace
}  // namespace attnbench::reach_experiment
