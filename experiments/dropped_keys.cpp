// The error of a pattern of keys as the weight that it drops times a distance. methods.md F1. For a row with softmax
// weights a, kept keys S and p_S = sum of a over S, let o_S and o_rest be the softmax outputs over S and over the
// others:
//   o - o_S = (1 - p_S) (o_rest - o_S)
// The three are computed separately. A method that weighs its keys otherwise (linear features, hashed keys, sampled
// weights) has another row than o_S; reweighting_error measures how far it is from that.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "harness/experiment/experiment.hpp"
#include "harness/statistics/moments.hpp"
#include "harness/statistics/rank_correlation.hpp"

namespace attnbench::dropped_keys_experiment {
namespace {

// One row split into its kept keys and the others.
struct Split {
  double kept = 0, dropped = 0;           // their weights
  Eigen::RowVectorXd kept_row, rest_row;  // o_S and o_rest; 0 if their keys have no weight
};

Split split(const Eigen::RowVectorXd& weights, const Matrix<double>& V, const std::vector<Index>& keys) {
  Split row{.kept_row = Eigen::RowVectorXd::Zero(V.cols()), .rest_row = Eigen::RowVectorXd::Zero(V.cols())};
  size_t next = 0;  // of the keys, which ascend
  for (Index j = 0; j < weights.size(); ++j) {
    const bool kept = next < keys.size() && keys[next] == j;
    if (kept) ++next;
    (kept ? row.kept : row.dropped) += weights(j);
    (kept ? row.kept_row : row.rest_row) += weights(j) * V.row(j);
  }
  if (row.kept > 0) row.kept_row /= row.kept;
  if (row.dropped > 0) row.rest_row /= row.dropped;
  return row;
}

// The weight of the `count` heaviest keys: no pattern of as many has more.
double heaviest(const Eigen::RowVectorXd& weights, Index count) {
  if (count == 0) return 0;
  std::vector<double> parted(weights.begin(), weights.end());
  const auto last = parted.begin() + std::min(count, weights.size()) - 1;
  std::nth_element(parted.begin(), last, parted.end(), std::greater<>());
  return std::accumulate(parted.begin(), last + 1, 0.0);
}

// The pattern of the drawn method, all rows.
std::vector<std::vector<Index>> pattern_of(const Task::Applied& applied, const Task& task) {
  std::vector<std::vector<Index>> keys(static_cast<size_t>(applied.output.rows()));
  std::visit(
      [&](const auto& drawn) {
        const auto* pattern = drawn.method->pattern();
        if (!pattern) throw Skip(task.cell.method.spec() + " declares no pattern of keys: it drops none");
        pattern->keys_of_rows(drawn.head.view(), task.cell.problem.shape.mask, 0, task.context, keys);
      },
      applied.instance);
  return keys;
}

void measure(const Task& task, Recorder& record) {
  const auto exact = task.exact.get(task.cell, task.replicate);
  const Task::Applied applied = task.applied_without_matrix();
  const auto keys = pattern_of(applied, task);
  const Matrix<double>& A = exact->attention();
  Matrix<double> over_kept = Matrix<double>::Zero(exact->output.rows(), exact->output.cols());
  std::vector<double> masses, errors;
  Moments distance, read, recall;
  for (Index i = 0; i < A.rows(); ++i) {
    const auto& of_row = keys[static_cast<size_t>(i)];
    if (task.cell.problem.shape.mask.visible(i, A.cols()) == 0) continue;
    const Split row = split(A.row(i), exact->head.V, of_row);
    over_kept.row(i) = row.kept_row;
    read.add(static_cast<double>(of_row.size()));
    recall.add(of_row.empty() ? 0 : row.kept / heaviest(A.row(i), std::ssize(of_row)));
    masses.push_back(row.dropped);
    errors.push_back((exact->output.row(i) - row.kept_row).norm());
    if (row.dropped > 0 && row.kept > 0) distance.add((row.rest_row - row.kept_row).norm());
  }
  if (masses.empty()) throw Skip("no row sees a key");
  const double size = exact->output.norm();
  record.scalar("keys_read", "1", read.mean);
  record.scalar("dropped_mass", "1", moments(masses).mean);
  record.scalar("mass_recall", "1", recall.mean);
  if (distance.count > 0) record.scalar("dropped_distance", "1", distance.mean);
  record.scalar("dropped_error", "1", (exact->output - over_kept).norm() / size);
  record.scalar("reweighting_error", "1", (applied.output - over_kept).norm() / size);
  record.scalar("relative_output_error", "1", (applied.output - exact->output).norm() / size);
  const double correlation = rank_correlation(masses, errors);
  if (std::isfinite(correlation)) record.scalar("mass_correlation", "1", correlation);
}

const bool registered = add(ExperimentEntry{
    .text = {.name = "dropped-keys",
             .summary = "the softmax weight that a pattern of keys drops, and the distance that makes it an error",
             .formula = "o - o_S = (1 - p_S) (o_rest - o_S), p_S the softmax weight of the kept keys S",
             .reference = "Gupta et al. 2021, arXiv:2106.06899, for the keys of largest weight",
             .cost = "O(n^2) memory; the exact matrix once an input"},
    .parameters = {},
    .metrics = {{"dropped_mass", "1", "mean over rows of 1 - p_S, the exact weight of the keys that are left out"},
                {"mass_recall",
                 "1",
                 "mean over rows of p_S over the weight of the |S| heaviest keys: 1 for top-k",
                 {},
                 "weight kept, of what as many keys can have"},
                {"dropped_distance", "1", "mean of |o_rest - o_S| over the rows that keep keys and drop some"},
                {"keys_read", "1", "mean over rows of the number of keys that the method reads"},
                {"dropped_error",
                 "1",
                 "|O - O_S| / |O|: the error of softmax over the kept keys",
                 {},
                 "error of the output",
                 "log10"},
                {"reweighting_error", "1", "|O' - O_S| / |O|: how far the method is from softmax over its keys"},
                {"relative_output_error", "1", "|O' - O| / |O|: the error of the method", Better::less,
                 "error of the output", "log10"},
                {"mass_correlation", "1", "rank correlation over rows of 1 - p_S and |o - o_S|"}},
    .headline = {.metric = "dropped_mass", .label = "exact weight of the dropped keys"},
    .bytes = [](const Cell& cell) { return matrix_bytes(cell); },
    .run = measure,
});

}  // namespace
}  // namespace attnbench::dropped_keys_experiment
