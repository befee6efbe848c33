// How far a method's attention matrix and output are from the exact ones. methods.md I.
// The matrix comes from the timed path (attend with V = I). Every comparison should include the null, uniform. If a
// method has no attention matrix, only its output is compared, and a note says so.
#include <cmath>
#include <limits>
#include <numeric>

#include "harness/experiment/experiment.hpp"
#include "harness/measures/attention_matrix.hpp"
#include "harness/measures/divergence.hpp"
#include "harness/measures/retrieval.hpp"
#include "harness/statistics/moments.hpp"
#include "harness/theory/delta_method.hpp"

namespace attnbench::attention_error_experiment {
namespace {

std::span<const double> row(const Matrix<double>& A, Index i) {
  return {A.data() + i * A.cols(), static_cast<size_t>(A.cols())};
}

// KL(from || to) row by row: records the mean of the finite rows, the shares of infinite and of undefined rows, and
// (by_row) every row that is defined, infinity included.
void record_divergence(const Matrix<double>& from, const Matrix<double>& to, const std::string& name, bool by_row,
                       Recorder& record) {
  Moments finite;
  std::vector<double> defined;
  double infinite = 0;
  for (Index i = 0; i < from.rows(); ++i) {
    const auto divergence = kl_divergence(row(from, i), row(to, i));
    if (!divergence) continue;
    defined.push_back(*divergence);
    if (std::isinf(*divergence))
      ++infinite;
    else
      finite.add(*divergence);
  }
  const auto rows = static_cast<double>(from.rows());
  if (finite.count > 0) record.scalar(name, "nat", finite.mean);
  record.scalar(name + "_infinite", "1", infinite / rows);
  record.scalar(name + "_undefined", "1", (rows - static_cast<double>(defined.size())) / rows);
  const Index count = std::ssize(defined);
  if (by_row && count > 0) record.array(name + "_rows", "nat", {count}, std::move(defined));
}

// Whether the largest weight of a row is at the same key as in the exact row, and at the input's needle. Rows that see
// no key are left out.
void record_retrieval(const Matrix<double>& A, const Matrix<double>& truth, const Task& task, Recorder& record) {
  const auto needles = needles_of(task.cell, task.replicate);
  Moments agreement, recall, found, weight;
  for (Index i = 0; i < A.rows(); ++i) {
    const Index wanted = top_key(row(truth, i)), given = top_key(row(A, i));
    if (wanted < 0) continue;
    agreement.add(given == wanted);
    recall.add(top_recall(row(A, i), row(truth, i), task.cell.experiment.integer("top")));
    if (needles.empty()) continue;
    const Index needle = needles[static_cast<size_t>(i)];
    found.add(given == needle);
    weight.add(A(i, needle));
  }
  if (agreement.count == 0) return;
  record.scalar("top_agreement", "1", agreement.mean);
  record.scalar("top_recall", "1", recall.mean);
  if (needles.empty()) return;
  record.scalar("needle_found", "1", found.mean);
  record.scalar("needle_weight", "1", weight.mean);
}

// The share of rows whose normaliser sum_j K_ij over visible keys is not positive: such a row is no weighted average.
template <class T>
void record_normalisers(const Task::Applied::Instance<T>& drawn, const Task& task, Recorder& record) {
  const auto* kernel = drawn.method->kernel();
  if (!kernel) return;
  const auto rows = static_cast<size_t>(drawn.head.Q.rows());
  const auto& mask = task.cell.problem.shape.mask;
  std::vector<T> values(rows), log_scale(rows);
  kernel->normalisers(drawn.head.view(), mask, task.context, values, log_scale);
  Index seeing = 0, bad = 0;
  for (size_t i = 0; i < rows; ++i)
    if (mask.visible(static_cast<Index>(i), drawn.head.K.rows()) > 0) {
      ++seeing;
      if (values[i] <= 0) ++bad;
    }
  if (seeing > 0)
    record.scalar("fraction_nonpositive_normalisers", "1", static_cast<double>(bad) / static_cast<double>(seeing));
}

// The delta method's prediction of output_mse and of the output's bias, over at most 64 rows that the seed chooses;
// for n > 1024 in the first replicate only.
void record_delta_method(const Task& task, const Exact& exact, Recorder& record) {
  constexpr Index most_rows = 64, small = 1024;
  // A row costs n^2 operations: at n = 4096 the 64 rows of one input take seconds, and inputs that long hardly differ.
  if (exact.head.K.rows() > small && task.replicate > 0) return;
  const auto theory = task.theory(0);
  if (!theory || !theory->correlation) return;
  const auto& head = exact.head;
  const Index nq = head.Q.rows(), nk = head.K.rows(), dv = head.V.cols();
  std::vector<Index> chosen(static_cast<size_t>(nq));
  std::iota(chosen.begin(), chosen.end(), Index{0});
  if (nq > most_rows) {
    Generator generator = Streams(task.cell.seed).stream("delta method", nq, task.replicate);
    for (Index i = 0; i < most_rows; ++i)  // the first steps of a Fisher-Yates shuffle
      std::swap(chosen[static_cast<size_t>(i)],
                chosen[static_cast<size_t>(i + static_cast<Index>(generator() % static_cast<std::uint64_t>(nq - i)))]);
    chosen.resize(static_cast<size_t>(most_rows));
  }
  // Apart from the factor 1/m it depends only on the map and the input: specs that differ in m share one computation.
  const Params single = task.cell.method.with("m", task.cell.method.has("count") ? "2" : "1");
  const auto& error = task.exact.remembered(task.cell, task.replicate, "delta method " + single.spec(), [&] {
    std::vector<double> squared_and_bias(2);
    Context in_double(task.context.threads());  // theory is computed in double even if the cell is float
    for (const Index i : chosen) {
      const Index seen = task.cell.problem.shape.mask.visible(i, nk);
      if (seen == 0) continue;
      const RowError row = delta_method(in_double, *theory, row_block(head.Q, i, 1), row_block(head.K, 0, seen),
                                        row_block(head.V, 0, seen));
      squared_and_bias[0] += row.squared_error;
      for (const double b : row.bias) squared_and_bias[1] += b * b;
    }
    for (double& x : squared_and_bias) x /= static_cast<double>(dv * std::ssize(chosen));
    return squared_and_bias;
  });
  const double m = static_cast<double>(theory->summands);
  record.scalar("output_mse_theory", "1", error[0] / m);
  record.scalar("output_bias_theory", "1", std::sqrt(error[1]) / m);
}

void record_output(const Matrix<double>& output, const Exact& exact, Recorder& record) {
  record.scalar("relative_output_error", "1", (output - exact.output).norm() / exact.output.norm());
  record.scalar("output_mse", "1", (output - exact.output).squaredNorm() / static_cast<double>(output.size()));
}

// The cost of the method by its formulas, and the cost of attention to its pattern once the pattern is known.
template <class T>
void record_cost(const Task::Applied::Instance<T>& drawn, const Task& task, Recorder& record) {
  const auto& shape = task.cell.problem.shape;
  record.scalar("flops", "FLOP", find<MethodEntry>(task.cell.method.name()).cost(task.cell.method, shape).flops);
  const auto* pattern = drawn.method->pattern();
  if (!pattern) return;
  std::vector<std::vector<Index>> keys(static_cast<size_t>(shape.nq));
  pattern->keys_of_rows(drawn.head.view(), shape.mask, 0, task.context, keys);
  double pairs = 0;
  for (const auto& of_row : keys) pairs += static_cast<double>(of_row.size());
  record.scalar("pattern_flops", "FLOP", 2 * pairs * static_cast<double>(shape.d + shape.dv));
}

void record_matrix(const std::string& method, const Matrix<double>& A, const Matrix<double>& truth, bool by_row,
                   Recorder& record) {
  record.scalar("relative_frobenius", "1", (A - truth).norm() / truth.norm());
  Moments l1;
  std::vector<double> rows, not_negative;
  for (Index i = 0; i < A.rows(); ++i) {
    rows.push_back(l1_distance(row(A, i), row(truth, i)));
    l1.add(rows.back());
    if (A.row(i).minCoeff() >= 0) not_negative.push_back(static_cast<double>(i));
  }
  record.scalar("row_l1", "1", l1.mean);
  if (by_row) record.array("row_l1_rows", "1", {A.rows()}, std::move(rows));
  const Index defined = std::ssize(not_negative);
  if (defined < A.rows())
    record.note(method +
                ": rows with negative entries have no KL divergence and are left out of its means: see "
                "kl_exact_to_estimate_undefined");
  record_divergence(truth, A, "kl_exact_to_estimate", by_row, record);
  record_divergence(A, truth, "kl_estimate_to_exact", by_row, record);
  if (by_row && defined > 0) record.array("kl_row_index", "1", {defined}, std::move(not_negative));
  record.scalar("fraction_negative", "1", static_cast<double>((A.array() < 0).count()) / static_cast<double>(A.size()));
}

void measure(const Task& task, Recorder& record) {
  const auto exact = task.exact.get(task.cell, task.replicate);
  const std::string no_matrix =
      find<MethodEntry>(task.cell.method.name()).claims(task.cell.method, task.cell.problem.shape).no_attention_matrix;
  if (task.cell.experiment.flag("matrix") && !no_matrix.empty())
    record.note(task.cell.method.spec() + " has no attention matrix (" + no_matrix +
                "): the error of its output alone was measured");
  const bool matrix = task.cell.experiment.flag("matrix") && no_matrix.empty();
  const Task::Applied applied = matrix ? task.applied() : task.applied_without_matrix();
  record_output(applied.output, *exact, record);
  if (matrix) {
    const Matrix<double>&A = applied.attention, &truth = exact->attention();
    record_matrix(task.cell.method.spec(), A, truth, task.cell.experiment.flag("by_row"), record);
    record_retrieval(A, truth, task, record);
  }
  std::visit(
      [&](const auto& drawn) {
        record_cost(drawn, task, record);
        record_normalisers(drawn, task, record);
      },
      applied.instance);
  record_delta_method(task, *exact, record);
}

const bool registered = add(ExperimentEntry{
    .text = {.name = "attention-error",
             .summary = "error of the attention matrix and of the output against exact softmax",
             .formula =
                 "|A' - A|_F / |A|_F, |A'V - AV|_F / |AV|_F, row L1, KL both ways, top-1 agreement, top-k recall",
             .reference = "Choromanski et al. 2020, arXiv:2009.14794, Fig. 4, for the output's MSE",
             .cost = "O(n^2) memory; the exact matrix once an input; matrix=false: what the method and softmax cost"},
    .parameters = {Parameter::flag("matrix", true, "compare the matrices as well; false: outputs alone, at any n"),
                   Parameter::integer("top", 32, "k of the top-k recall", 1),
                   Parameter::flag("by_row", true, "keep the measures of each row; false: their means alone")},
    .metrics = {{"relative_frobenius", "1", "|A' - A|_F / |A|_F", Better::less},
                {"relative_output_error", "1", "|A'V - AV|_F / |AV|_F", Better::less, "error of the output", "log10"},
                {"output_mse", "1", "mean squared error of the entries of the output", Better::less,
                 "mean squared error of the output", "log10"},
                {"row_l1", "1", "mean over rows of sum_j |A'_ij - A_ij|; at most 2 for stochastic rows", Better::less,
                 "L1 error of a row, 2 (1 - p)"},
                {"row_l1_rows", "1", "the same for each row", Better::less},
                {"kl_exact_to_estimate", "nat", "mean KL(A || A') over the rows where it is finite", Better::less},
                {"kl_exact_to_estimate_infinite", "1", "share of rows where it is infinite", Better::less},
                {"kl_exact_to_estimate_undefined", "1", "share of rows with negative entries"},
                {"kl_exact_to_estimate_rows", "nat", "of each row of kl_row_index, infinite ones as such"},
                {"kl_estimate_to_exact", "nat", "mean KL(A' || A) over the rows where it is finite", Better::less},
                {"kl_estimate_to_exact_infinite", "1", "share of rows where it is infinite", Better::less},
                {"kl_estimate_to_exact_undefined", "1", "share of rows with negative entries"},
                {"kl_estimate_to_exact_rows", "nat", "of each row of kl_row_index, infinite ones as such"},
                {"kl_row_index", "1", "i of each of them: rows without negative entries"},
                {"top_agreement", "1",
                 "share of rows whose largest weight is at the key where the exact one is; of equal weights the first",
                 Better::more},
                {"top_recall", "1", "mean share of the k keys of largest exact weight that are among the k largest",
                 Better::more},
                {"needle_found", "1",
                 "share of rows whose largest weight is at the key that the query is aimed at, of inputs that know it",
                 Better::more, "share of rows with most weight on the needle"},
                {"needle_weight", "1", "mean weight at that key", Better::more, "mean weight on the needle", "log10"},
                {"fraction_negative", "1", "share of entries of A' below zero", {}, "share of the entries of A'"},
                {"fraction_nonpositive_normalisers", "1", "share of rows whose weights do not sum to more than zero",
                 Better::less, "share of the rows"},
                {"flops", "FLOP", "of one call, by the method's cost formula"},
                {"pattern_flops", "FLOP",
                 "of logits and outputs for the keys of a sparse pattern, once they are known"},
                {"output_mse_theory", "1",
                 "what the delta method predicts for output_mse, to first order in 1/m (independent vectors)"},
                {"output_bias_theory", "1",
                 "the root mean square of the output's bias that it predicts: rows are biased by O(1/m)"}},
    .headline = {.metric = "relative_output_error", .label = "|A'V - AV| / |AV|  (Frobenius)"},
    .bytes = [](const Cell& cell) { return cell.experiment.flag("matrix") ? 4 * matrix_bytes(cell) : 0; },
    .run = measure,
});

}  // namespace
}  // namespace attnbench::attention_error_experiment
