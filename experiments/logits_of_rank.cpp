// How far softmax attention moves when its logits are truncated to a lower rank: the best that a head with a smaller
// key size could do in the Frobenius norm of its logits. The key size bounds the rank of Q K^T, so such a head has only
// the softmax of logits of that rank (Bhojanapalli et al. 2020). Truncation comes before the mask, as for Q and K.
#include <fmt/format.h>

#include <cmath>

#include "harness/experiment/experiment.hpp"
#include "harness/inputs/key_directions.hpp"
#include "harness/linalg/products.hpp"

namespace attnbench::logits_of_rank_experiment {
namespace {

void check_cell(const Cell& cell) {
  if (cell.method.name() != "softmax")
    throw Misuse("logits-of-rank with --method " + cell.method.spec() + ": expected --method softmax");
  const auto& shape = cell.problem.shape;
  const Index most = std::min({shape.d, shape.nq, shape.nk});
  if (cell.experiment.integer("rank") > most)
    throw Misuse(fmt::format("{} and logits of rank {} at most; give a rank up to that", cell.experiment.spec(), most));
}

void measure(const Task& task, Recorder& record) {
  const auto exact = task.exact.get(task.cell, task.replicate);
  const auto& shape = task.cell.problem.shape;
  const HeadData<double>& head = exact->head;
  const KeyDirections best = best_directions(head.Q, head.K, task.cell.experiment.integer("rank"));
  const HeadData<double> truncated{head.Q * best.of_queries, head.K * best.of_keys, head.V, head.extra};
  Shape of_rank = shape;
  of_rank.d = truncated.Q.cols();
  Matrix<double> output(shape.nq, shape.dv);
  make_approximation<double>({.shape = of_rank, .params = task.cell.method, .streams = Streams(task.cell.seed)})
      ->attend(truncated.view(), shape.mask, task.context, output);
  Matrix<double> logits(shape.nq, shape.nk), left(shape.nq, shape.nk);
  multiply_transposed<double>(task.context, head.Q, head.K, logits);
  multiply_transposed<double>(task.context, truncated.Q, truncated.K, left);
  record.scalar("relative_logits_error", "1", (left - logits).norm() / logits.norm());
  record.scalar("relative_output_error", "1", (output - exact->output).norm() / exact->output.norm());
}

const bool registered = add(ExperimentEntry{
    .text = {.name = "logits-of-rank",
             .summary = "error of softmax attention when its logits are truncated to a rank",
             .formula = "|A_r V - A V|_F / |A V|_F, A_r = softmax(S_r), S_r the best approximation of Q K^T of rank r",
             .reference = "Bhojanapalli et al. 2020, arXiv:2002.07028; Eckart and Young 1936",
             .cost = "O(n^2 d), and O(n d^2) for the directions"},
    .parameters = {Parameter::integer("rank", 16, "r, at most d: the key size of a head with such logits", 1)},
    .metrics = {{"relative_output_error", "1", "|A_r V - A V|_F / |A V|_F", Better::less, "error of the output",
                 "log10"},
                {"relative_logits_error", "1", "|S_r - Q K^T|_F / |Q K^T|_F, without a mask"}},
    .headline = {.metric = "relative_output_error", .label = "|A_r V - A V| / |A V|  (Frobenius)"},
    .check = check_cell,
    .bytes = [](const Cell& cell) { return 3 * matrix_bytes(cell); },
    .run = measure,
});

}  // namespace
}  // namespace attnbench::logits_of_rank_experiment
