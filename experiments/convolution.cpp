// Whether heads compute a convolution. Cordonnier et al. 2020, arXiv:1911.03584, Theorem 1 and Lemma 2, in one
// dimension: a head for each shift D attends to token i + D with logits -alpha (i + D - j)^2, which are queries and
// keys of two channels up to a number that a row shares,
//   q_i = (2 alpha (i + D), -alpha),  k_j = (j, j^2),
// and a matrix of its own maps the values of each head. Token i + D has the weight 1 - O(exp(-alpha)). A convolution
// that ends at the borders differs there, so that rows whose kernel would cross them are left out.
#include <fmt/format.h>

#include "harness/errors/error.hpp"
#include "harness/experiment/experiment.hpp"
#include "harness/linalg/products.hpp"
#include "harness/measures/attention_matrix.hpp"

namespace attnbench::convolution_experiment {
namespace {

void refuse_impossible_sizes(const Cell& cell) {
  const Shape& shape = cell.problem.shape;
  const Index width = 2 * cell.experiment.integer("radius") + 1;
  if (shape.nq != shape.nk || shape.nk < width)
    throw Misuse(
        fmt::format("convolution: expected as many queries as keys, and at least {} for a kernel of {}; {} "
                    "queries and {} keys were given",
                    width, width, shape.nq, shape.nk));
  if (shape.d < 2)
    throw Misuse(
        fmt::format("convolution: positions are queries and keys of two channels; expected -d 2 or more, and {} was "
                    "given",
                    shape.d));
}

void measure(const Task& task, Recorder& record) {
  const Cell& cell = task.cell;
  const Index n = cell.problem.shape.nk, radius = cell.experiment.integer("radius");
  const double alpha = cell.experiment.real("alpha");
  const Matrix<double> values = draw_cell_head(cell, task.replicate, 0, Purpose::measured).V;
  const auto method = task.method<double>(0, task.replicate);
  Generator generator = Streams(cell.seed).stream("convolution", task.replicate);
  Matrix<double> Q = Matrix<double>::Zero(n, cell.problem.shape.d), K = Q, head(n, values.cols());
  for (Index j = 0; j < n; ++j) K.row(j).head(2) << static_cast<double>(j), static_cast<double>(j * j);
  const Index inner = n - 2 * radius;
  Matrix<double> heads = Matrix<double>::Zero(inner, values.cols()), convolved = heads;
  for (Index shift = -radius; shift <= radius; ++shift) {
    const Matrix<double> weights = standard_normal(generator, values.cols(), values.cols());
    for (Index i = 0; i < n; ++i) Q.row(i).head(2) << 2 * alpha * static_cast<double>(i + shift), -alpha;
    method->attend({Q, K, values}, cell.problem.shape.mask, task.context, head);
    require_finite<double>(head, "output");
    heads += head.middleRows(radius, inner) * weights;
    convolved += values.middleRows(radius + shift, inner) * weights;
  }
  record.scalar("difference_to_convolution", "1", (heads - convolved).norm() / convolved.norm());
}

const bool registered = add(ExperimentEntry{
    .text = {.name = "convolution",
             .summary = "whether heads that attend to one shift each compute a convolution",
             .formula = "|sum_h head_h W_h - sum_D V_(i + D) W_D|_F / |...|_F, logits -alpha (i + D - j)^2",
             .reference = "Cordonnier et al. 2020, arXiv:1911.03584, Theorem 1 and Lemma 2",
             .cost = "2 r + 1 calls of the method"},
    .parameters = {Parameter::integer("radius", 2, "r: the kernel has 2 r + 1 taps", 0, 1024),
                   Parameter::real("alpha", 40, "how sharply a head attends to its shift", 0, 1e6)},
    .metrics = {{"difference_to_convolution",
                 "1",
                 "|heads - convolution|_F / |convolution|_F, without the rows at the borders",
                 {},
                 "heads less convolution / convolution"}},
    .headline = {.metric = "difference_to_convolution", .label = "heads less convolution / convolution"},
    .check = refuse_impossible_sizes,
    .run = measure,
});

}  // namespace
}  // namespace attnbench::convolution_experiment
