#include "experiments/rank_records.hpp"

#include <cmath>
#include <numeric>

#include "harness/measures/randomised_spectrum.hpp"
#include "harness/measures/spectrum.hpp"

namespace attnbench {

double rounding_floor(const Cell& cell) {
  const Precision precision = cell.problem.shape.precision;
  double spacing = precision == Precision::f32 ? 0x1p-23 : precision == Precision::f64 ? 0x1p-52 : 0x1p-7;
  if (cell.problem.rounding == Rounding::f16) spacing = 0x1p-10;
  if (cell.problem.rounding == Rounding::bf16) spacing = 0x1p-7;
  return static_cast<double>(longest(cell.problem.shape)) * spacing;
}

void record_spectrum(const Task& task, std::vector<double> sigma, double resolution, Recorder& record) {
  const auto& options = task.cell.experiment;
  const double largest = sigma.front(), floor = std::max(resolution, rounding_floor(task.cell) * largest);
  const double tolerance =
      options.text("threshold") == "auto" ? floor : std::max(floor, options.real("threshold") * largest);
  if (tolerance < largest || largest == 0) {
    record.scalar("numerical_rank", "1", static_cast<double>(numerical_rank(sigma, tolerance)));
    record.scalar("rank_tolerance", "1", tolerance);
  } else {
    record.note("numerical rank is left out where the rounding of the matrix is as large as sigma_1");
  }
  const bool all = std::ssize(sigma) == shortest(task.cell.problem.shape);
  if (all && sigma.back() > floor)
    record.scalar("condition", "1", largest / sigma.back());
  else
    record.note("condition is left out where the least singular value is 0, or not above rounding");
  record.scalar("stable_rank", "1", stable_rank(sigma));
  record.scalar("participation_ratio", "1", participation_ratio(sigma));
  record.scalar("effective_rank", "1", effective_rank(sigma));
  record.scalar("effective_rank_squared", "1", effective_rank(sigma, 2));
  record.scalar("principal_dimensions", "1", static_cast<double>(principal_dimensions(sigma, options.real("share"))));
  record.scalar("spectral_norm", "1", largest);
  record.scalar("trace_norm", "1", std::accumulate(sigma.begin(), sigma.end(), 0.0));
  record.scalar("frobenius_norm", "1", largest * std::sqrt(stable_rank(sigma)));
  const auto n = static_cast<Index>(sigma.size());
  auto cumulative = cumulative_spectrum(sigma);
  record.scalar("cumulative_at", "1", cumulative[static_cast<size_t>(std::min(options.integer("index"), n) - 1)]);
  if (!options.flag("by_index")) return;
  record.array("cumulative_spectrum", "1", {n}, std::move(cumulative));
  record.array("singular_values", "1", {n}, std::move(sigma));
}

namespace {

constexpr double error_rate = 0.05;

void record_bracketed(Recorder& record, const std::string& metric, const Bracketed& estimate) {
  record.scalar(metric, "1", estimate.value);
  record.scalar(metric + "_low", "1", estimate.interval.low);
  record.scalar(metric + "_high", "1", estimate.interval.high);
}

}  // namespace

void record_estimates(const Task& task, const LinearMap& A, Recorder& record) {
  const auto& options = task.cell.experiment;
  const Streams streams(task.cell.seed);
  auto start = streams.stream("rank", "start", task.replicate), signs = streams.stream("rank", "signs", task.replicate);
  auto top = top_singular_values(A, options.integer("values"), krylov_steps, start, task.context);
  const auto estimate =
      estimate_spectrum(A, top, random_signs(signs, A.columns, options.integer("probes")), error_rate, task.context);
  record.note("numerical rank and condition take all singular values: random probes leave them out");
  const double largest = top.sigma.front(), bound = top.bounds.front(), squares = A.frobenius_squared;
  record.scalar("frobenius_norm", "1", std::sqrt(squares));
  record.scalar("spectral_norm", "1", largest);
  const auto k = static_cast<Index>(top.sigma.size());
  if (squares > 0) {
    record_bracketed(record, "stable_rank",
                     {squares / (largest * largest),
                      {squares / ((largest + bound) * (largest + bound)), squares / (largest * largest)}});
    std::vector<double> cumulative(top.sigma.size());
    std::partial_sum(top.sigma.begin(), top.sigma.end(), cumulative.begin());
    if (const Index index = options.integer("index"); index <= k) {
      const auto last = static_cast<size_t>(index - 1);
      const double slack = std::accumulate(top.bounds.begin(), top.bounds.begin() + index, 0.0);
      const auto& total = estimate.trace_norm;
      record_bracketed(
          record, "cumulative_at",
          {cumulative[last] / total.value,
           {cumulative[last] / total.interval.high, std::min(1.0, (cumulative[last] + slack) / total.interval.low)}});
    }
    for (double& c : cumulative) c /= estimate.trace_norm.value;
    record.array("cumulative_spectrum", "1", {k}, std::move(cumulative));
  }
  record_bracketed(record, "trace_norm", estimate.trace_norm);
  record_bracketed(record, "participation_ratio", estimate.participation_ratio);
  record_bracketed(record, "effective_rank", estimate.effective_rank);
  record_bracketed(record, "effective_rank_squared", estimate.effective_rank_squared);
  record.array("singular_values", "1", {k}, std::move(top.sigma));
  record.array("singular_value_bounds", "1", {k}, std::move(top.bounds));
}

}  // namespace attnbench
