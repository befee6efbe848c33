// How concentrated the rows of a method's attention matrix are, and how far away they look. methods.md I.
// Rows are computed, measured and dropped in blocks of 4 MiB per thread, so memory does not limit n. If a method cannot
// compute single rows, its whole matrix comes from attend with V = I, up to n = 4096.
#include "harness/measures/sparsity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "harness/errors/error.hpp"
#include "harness/experiment/experiment.hpp"
#include "harness/measures/attention_matrix.hpp"
#include "harness/statistics/moments.hpp"

namespace attnbench::sparsity_experiment {
namespace {

constexpr Index block_bytes = 4 << 20, largest_dense = 4096;
// The share of rows that a mean needs. A mean over fewer says nothing of the matrix: differential attention had a
// support of 1.00, that of its first row, because all other rows have negative entries.
constexpr double least_measured = 0.5;

struct Measure {
  std::string name, unit, text;
  double RowSparsity::*of;
  bool any_sign = false;
};
const std::vector<Measure>& row_measures() {
  static const std::vector<Measure> all{
      {"entropy", "nat", "entropy of a row", &RowSparsity::entropy},
      {"effective_support", "1", "exp(entropy): keys that a row attends to", &RowSparsity::effective_support},
      {"relative_support", "1", "exp(entropy) over the keys that the row sees; 1 is average pooling",
       &RowSparsity::relative_support},
      {"relative_entropy", "1",
       "entropy over log of the keys that the row sees; 1 is average pooling, or one key alone",
       &RowSparsity::relative_entropy},
      {"inverse_participation", "1", "1 / sum_j A_ij^2; at most the effective support",
       &RowSparsity::inverse_participation},
      {"top_mass", "1", "mass of a row's k largest entries", &RowSparsity::top_mass},
      {"sink_mass", "1", "weight of the first key: an attention sink where it is large", &RowSparsity::sink_mass},
      {"gini", "1", "Gini coefficient of a row: 0 uniform, 1 - 1/n one-hot", &RowSparsity::gini},
      {"attention_distance", "tokens", "sum_j A_ij |i - j|: how far away a row looks",
       &RowSparsity::attention_distance},
      {"fraction_below", "1", "share of entries with |A_ij| below the threshold", &RowSparsity::fraction_below, true},
      {"hoyer", "1", "Hoyer sparsity of a row: 0 uniform, 1 one-hot", &RowSparsity::hoyer, true},
      {"mean_over_rms", "1", "E|A_ij| / sqrt(E A_ij^2) of a row: 1 uniform, n^-1/2 one-hot",
       &RowSparsity::mean_over_rms, true}};
  return all;
}

std::vector<Metric> metrics() {
  std::vector<Metric> all{
      {"rows_with_negative_entries", "1", "share of rows that have no entropy and what follows from it"},
      {"rows_with_zero_sum", "1", "share of rows without any weight, which all means leave out"},
      {"row_index", "1", "i of each element of the arrays: rows without negative entries and with weight"}};
  for (const Measure& m : row_measures()) {
    all.push_back({m.name, m.unit, "mean over rows: " + m.text});
    all.push_back({m.name + "_rows", m.unit, "the same for each row of row_index"});
  }
  return all;
}

// In a row that sums to 1, rounding makes an entry below machine epsilon indistinguishable from 0.
void refuse_threshold_below_rounding(const Cell& cell) {
  const Params& params = cell.experiment;
  if (params.text("threshold") == "auto") return;
  const Precision precision = cell.problem.shape.precision;
  const bool single = in_float(precision);
  const double floor = single ? double{std::numeric_limits<float>::epsilon()} : std::numeric_limits<double>::epsilon();
  if (params.real("threshold") < floor)
    throw Misuse(fmt::format("sparsity: threshold={} is below the rounding floor of {}; expected at least {:.3g}{}",
                             params.text("threshold"), to_string(precision), floor,
                             single ? "; give more, or --precision f64" : "; give more"));
}

// Throws NumericallyInvalid, naming the first entry that is not finite.
template <class T>
std::vector<RowSparsity> measure_rows(const Task& task, const HeadData<T>& head) {
  const auto& shape = task.cell.problem.shape;
  const Params& options = task.cell.experiment;
  const Index top = options.integer("top");
  const double threshold =
      options.text("threshold") == "auto" ? 0.1 / static_cast<double>(shape.nk) : options.real("threshold");
  const auto method = task.method<T>(0, task.replicate);

  std::vector<RowSparsity> measured(static_cast<size_t>(shape.nq));
  std::vector<Index> bad(static_cast<size_t>(shape.nq), -1);  // a column that is not finite
  const auto measure = [&](const auto& row, Index i, std::vector<double>& p) {
    p.assign(row.begin(), row.end());
    const auto found = std::find_if(p.begin(), p.end(), [](double x) { return !std::isfinite(x); });
    if (found != p.end())
      bad[static_cast<size_t>(i)] = found - p.begin();
    else
      measured[static_cast<size_t>(i)] =
          row_sparsity(p, i + shape.mask.offset, shape.mask.visible(i, shape.nk), top, threshold);
  };
  if (const auto* rows_of = method->rows()) {
    const Index block = std::clamp<Index>(block_bytes / (shape.nk * static_cast<Index>(sizeof(T))), 1, shape.nq);
    task.context.for_blocks(shape.nq, block, [&](Context& single, Index first, Index count) {
      Matrix<T> A(count, shape.nk);
      rows_of->attention_rows(head.view(), shape.mask, first, single, A);
      std::vector<double> p;
      for (Index a = 0; a < count; ++a) measure(A.row(a), first + a, p);
    });
  } else {
    if (std::max(shape.nq, shape.nk) > largest_dense)
      throw Skip(fmt::format("{} gives no rows of its matrix, which is read as a whole up to n = {}",
                             task.cell.method.spec(), largest_dense));
    const Matrix<double> A = attention_matrix(*method, head.view(), shape.mask, task.context);
    std::vector<double> p;
    for (Index i = 0; i < shape.nq; ++i) measure(A.row(i), i, p);
  }
  for (Index i = 0; i < shape.nq; ++i)
    if (const Index j = bad[static_cast<size_t>(i)]; j >= 0)
      throw NumericallyInvalid(fmt::format("attention matrix: not finite at row {}, column {}", i, j));
  return measured;
}

// Draws the head here: the shared `exact` would also compute the exact output, which is not needed.
std::vector<RowSparsity> measure_rows(const Task& task) {
  auto drawn = draw_cell_head(task.cell, task.replicate, 0, Purpose::measured);
  if (task.cell.problem.shape.precision == Precision::f64) return measure_rows<double>(task, drawn);
  const auto head = std::exchange(drawn, {}).cast<float>();  // frees the head in double
  return measure_rows<float>(task, head);
}

void measure(const Task& task, Recorder& record) {
  const Params& method = task.cell.method;
  const auto& shape = task.cell.problem.shape;
  const auto claims = find<MethodEntry>(method.name()).claims(method, shape);
  if (!claims.no_attention_matrix.empty())
    throw Skip(method.spec() + " has no attention matrix: " + claims.no_attention_matrix);
  const auto rows = measure_rows(task);
  using Kind = RowSparsity::Kind;
  std::vector<double> index;
  double negative = 0, zero = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    negative += rows[i].kind == Kind::negative;
    zero += rows[i].kind == Kind::zero;
    if (rows[i].kind == Kind::weights) index.push_back(static_cast<double>(i));
  }
  const auto count = static_cast<double>(rows.size());
  const Index weighed = std::ssize(index);
  const bool by_row = weighed > 0 && task.cell.experiment.flag("by_row");
  record.scalar("rows_with_negative_entries", "1", negative / count);
  record.scalar("rows_with_zero_sum", "1", zero / count);
  const bool enough = static_cast<double>(weighed) >= least_measured * count;
  if (negative > 0 || !enough)
    record.note(
        fmt::format("{}: {:.1f} % of the rows have negative entries and {:.1f} % no weight, so that they have no "
                    "entropy; {}",
                    method.spec(), 100 * negative / count, 100 * zero / count,
                    enough ? "what needs one is the mean over the others" : "the others are too few for a mean"));
  for (const Measure& m : row_measures()) {
    Moments mean;
    std::vector<double> values;
    for (const RowSparsity& row : rows) {
      if (row.kind == Kind::weights || (m.any_sign && row.kind == Kind::negative)) mean.add(row.*m.of);
      if (row.kind == Kind::weights) values.push_back(row.*m.of);
    }
    if (mean.count >= least_measured * count) record.scalar(m.name, m.unit, mean.mean);
    if (by_row) record.array(m.name + "_rows", m.unit, {weighed}, std::move(values));
  }
  if (by_row) record.array("row_index", "1", {weighed}, std::move(index));
}

const bool registered = add(ExperimentEntry{
    .text = {.name = "sparsity",
             .summary = "entropy, effective support, distance and other concentration of the attention rows",
             .formula = "exp(-sum_j A_ij log A_ij), share of |A_ij| < 1/(10 n), Gini, Hoyer, mass of the top k, "
                        "sum_j A_ij |i - j|, E|a| / sqrt(E a^2)",
             .reference = "Hurley and Rickard 2009, arXiv:0811.4706, for Gini and Hoyer; Tay et al. 2021, "
                          "arXiv:2011.04006, section 2.3; Su 2023, kexue.fm/archives/9889",
             .cost = "O(n^2) time, 4 MiB of rows for each thread; n up to 4096 without rows"},
    .parameters = {Parameter::integer("top", 32, "k of the top-k mass", 1),
                   Parameter::real_or("threshold", "auto", "what fraction_below counts entries below; auto: 1/(10 n)",
                                      0, 1),
                   Parameter::flag("by_row", true, "keep the measures of each row; false: their means alone")},
    .metrics = metrics(),
    .headline = {.metric = "effective_support", .label = "effective support exp(H)"},
    .check = refuse_threshold_below_rounding,
    // A method without row access needs its whole matrix.
    .bytes =
        [](const Cell& cell) {
          const auto& shape = cell.problem.shape;
          return std::max(shape.nq, shape.nk) <= largest_dense ? matrix_bytes(cell) : 0;
        },
    .run = measure,
});

}  // namespace
}  // namespace attnbench::sparsity_experiment
