// How tight the bounds are by which a method chooses keys, and in how many rows they prove that the row has read its
// largest logit. methods.md U.
//   certified: max over keys read of q_i.k_j  >=  max over unread keys that the row sees of their bounds
// A row that reads every key that it sees is certified. Everything is in double.
#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/core/bounds.hpp"
#include "harness/experiment/experiment.hpp"
#include "harness/linalg/products.hpp"
#include "harness/statistics/moments.hpp"
#include "harness/statistics/rank_correlation.hpp"

namespace attnbench::logit_bounds_experiment {
namespace {

constexpr Index block_rows = 64;

// Of one row.
struct Certificate {
  bool certified = false, top_read = false;
};

Certificate certificate(std::span<const double> logits, std::span<const double> bounds,
                        const std::vector<Index>& keys) {
  constexpr double none = -std::numeric_limits<double>::infinity();
  double read = none, unread = none, unread_bound = none;
  size_t next = 0;  // of the keys, which ascend
  for (size_t j = 0; j < logits.size(); ++j) {
    const bool is_read = next < keys.size() && keys[next] == static_cast<Index>(j);
    if (is_read) {
      ++next;
      read = std::max(read, logits[j]);
    } else {
      unread = std::max(unread, logits[j]);
      unread_bound = std::max(unread_bound, bounds[j]);
    }
  }
  return {read >= unread_bound, read >= unread};
}

void measure(const Task& task, Recorder& record) {
  const auto head = draw_cell_head(task.cell, task.replicate, 0, Purpose::measured);
  const Mask mask = task.cell.problem.shape.mask;
  const Index nq = head.Q.rows(), nk = head.K.rows();
  const auto method = task.method<double>(0, task.replicate);
  const auto* bounded = logit_bounds(*method);
  if (!bounded || !method->pattern())
    throw Skip(task.cell.method.spec() + " chooses no keys by bounds of their logits");
  std::vector<std::vector<Index>> keys(static_cast<size_t>(nq));
  method->pattern()->keys_of_rows(head.view(), mask, 0, task.context, keys);
  Moments certified, top_read, slack, spread, correlation;
  for (Index first = 0; first < nq; first += block_rows) {
    const Index count = std::min(block_rows, nq - first);
    Matrix<double> logits(count, nk), bounds(count, nk);
    multiply_transposed<double>(task.context, row_block(head.Q, first, count), head.K, logits);
    bounded->logit_bounds(head.view(), mask, first, task.context, bounds);
    for (Index i = 0; i < count; ++i) {
      const auto seen = static_cast<size_t>(mask.visible(first + i, nk));
      if (seen == 0) continue;
      const std::span<const double> of_row(&logits(i, 0), seen), above(&bounds(i, 0), seen);
      const auto [proved, found] = certificate(of_row, above, keys[static_cast<size_t>(first + i)]);
      certified.add(proved ? 1 : 0);
      top_read.add(found ? 1 : 0);
      Moments differences;
      for (size_t j = 0; j < seen; ++j) differences.add(above[j] - of_row[j]);
      slack.add(differences.mean);
      spread.add(std::sqrt(moments(of_row).variance()));
      if (const double found_order = rank_correlation(above, of_row); std::isfinite(found_order))
        correlation.add(found_order);
    }
  }
  if (certified.count == 0) throw Skip("no row sees a key");
  record.scalar("certified", "1", certified.mean);
  record.scalar("top_read", "1", top_read.mean);
  record.scalar("slack", "1", slack.mean);
  record.scalar("spread", "1", spread.mean);
  if (correlation.count > 0) record.scalar("bound_correlation", "1", correlation.mean);
}

const bool registered = add(ExperimentEntry{
    .text = {.name = "logit-bounds",
             .summary = "how tight the bounds are by which a method chooses keys, and what they prove",
             .formula = "share of rows with max over keys read of q.k >= max over unread keys of their bounds",
             .reference = "Tang et al. 2024, arXiv:2406.10774, section 3.3, for the bounds",
             .cost = "O(n^2 (d + log n)) time, O(n) memory and the keys of all rows"},
    .parameters = {},
    .metrics =
        {{"certified", "1", "share of rows whose bounds prove that the largest logit was read", {}, "share of rows"},
         {"top_read", "1", "share of rows that read their largest logit", {}, "share of rows"},
         {"slack", "1", "mean over keys, then rows, of the bound less q.k"},
         {"spread", "1", "mean over rows of the standard deviation of q.k over keys"},
         {"bound_correlation", "1", "mean over rows of the rank correlation over keys of bound and q.k"}},
    .headline = {.metric = "certified", .label = "rows with a proof that the largest logit was read"},
    .bytes = [](const Cell& cell) { return matrix_bytes(cell); },
    .work =
        [](const Cell& cell) {
          Work work = work_of_layers(cell, 1);
          work.flops += 2 * matrix_bytes(cell) / 8 * static_cast<double>(cell.problem.shape.d);
          return work;
        },
    .run = measure,
});

}  // namespace
}  // namespace attnbench::logit_bounds_experiment
