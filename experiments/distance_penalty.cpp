// By how much a key loses weight with each token of distance from the query, beside the same method on the same input
// without its penalty: with `slope` at 0, which a method (retnet) or an input (alibi) declares.
//   l_ij = log(A_ij / A_ii) - log(B_ij / B_ii), j < i, B without the penalty:  -slope (i - j) for ALiBi (Press et al.
//   2021, arXiv:2108.12409) and for a decay exp(-slope) a token (Sun et al. 2023, arXiv:2307.08621, eq. 5)
// A row's own factor cancels, as that of a softmax.
#include <fmt/format.h>

#include <cmath>

#include "harness/errors/error.hpp"
#include "harness/experiment/experiment.hpp"
#include "harness/statistics/moments.hpp"

namespace attnbench::distance_penalty_experiment {
namespace {

const Params& with_slope(const Cell& cell) { return cell.method.has("slope") ? cell.method : cell.input; }

void require_slope(const Cell& cell) {
  const std::string spec = cell.method.spec() + " on " + cell.input.spec();
  if (!cell.method.has("slope") && !cell.input.has("slope"))
    throw Misuse("distance-penalty: " + spec +
                 " has no slope; expected a method or an input that has one, such as --method retnet:slope=0.1 or "
                 "--input alibi:slope=0.1");
  if (cell.method.has("slope") && cell.method.text("slope") == "by-head")
    throw Misuse("distance-penalty: " + spec +
                 " takes its slope from the head; expected a number, such as --method retnet:slope=0.1");
  if (!cell.problem.shape.mask.causal || cell.problem.shape.nq != cell.problem.shape.nk)
    throw Misuse(
        "distance-penalty: " + spec +
        " has rows that see later keys, or no key of their own; run it causal (--causal), with as many queries "
        "as keys");
}

// Its attention matrix.
Matrix<double> weights(const Cell& cell, const Task& task) {
  ExactCache exact;
  const Task here{cell, task.replicate, task.context, exact};
  return here.applied().attention;
}

void measure(const Task& task, Recorder& record) {
  Cell plain = task.cell;
  if (plain.method.has("slope")) plain.method = plain.method.with("slope", "0");
  if (plain.input.has("slope")) plain.input = plain.input.with("slope", "0");
  const Matrix<double> A = weights(task.cell, task), B = weights(plain, task);
  const double slope = with_slope(task.cell).real("slope");
  Moments of_token;
  double largest = 0;
  for (Index i = 0; i < A.rows(); ++i)
    for (Index j = 0; j < i; ++j) {
      const double weight = std::abs(A(i, j) / A(i, i)), before = std::abs(B(i, j) / B(i, i));
      if (!(weight > 0) || !(before > 0)) continue;
      const double lost = std::log(before) - std::log(weight), distance = static_cast<double>(i - j);
      of_token.add(lost / distance);
      largest = std::max(largest, std::abs(lost - slope * distance));
    }
  if (of_token.count == 0) throw Skip("no weight is left beside those of the rows' own keys");
  record.scalar("penalty", "1", of_token.mean);
  record.scalar("largest_deviation", "1", largest);
}

const bool registered = add(ExperimentEntry{
    .text = {.name = "distance-penalty",
             .summary = "how much weight a key loses with each token of distance",
             .formula = "l_ij / (j - i), l_ij = log(A_ij / A_ii) - log(B_ij / B_ii), B the same without a slope",
             .reference = "Press et al. 2021, arXiv:2108.12409; Sun et al. 2023, arXiv:2307.08621, eq. 5",
             .cost = "twice that of the method, and O(n^2) memory"},
    .parameters = {},
    .metrics = {{"penalty", "1", "the mean of l_ij / (j - i) over pairs j < i", {}, "weight lost a token [nat]"},
                {"largest_deviation", "1", "the largest |l_ij + slope (i - j)|: 0 if the penalty is slope (i - j)"}},
    .headline = {.metric = "penalty", .label = "logarithm of the weight lost a token"},
    .check = require_slope,
    .bytes = [](const Cell& cell) { return 4 * matrix_bytes(cell); },
    .run = measure,
});

}  // namespace
}  // namespace attnbench::distance_penalty_experiment
