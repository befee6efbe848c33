#include "harness/runner/cost_model.hpp"

#include <algorithm>
#include <map>

#include "harness/runner/plan.hpp"
#include "harness/timing/turns.hpp"

namespace attnbench {

namespace {

constexpr double overhead = 5e-3;  // seconds of a replicate beside its work: a transaction, a message to a worker
constexpr double of_the_peak = 2;  // the peak over what products reach
constexpr double per_normal = 10;  // exponentials that a normal random number costs

Work work_of_call(const Cell& cell, Shape shape) {
  return find<MethodEntry>(cell.method.name()).cost(cell.method, shape);
}

Work operator*(double times, const Work& work) { return {times * work.flops, times * work.exps}; }

// Draws of the method, each applied to some pairs: random vectors, made orthogonal, and their features.
Work work_of_draws(const Cell& cell) {
  Shape shape = cell.problem.shape;
  const auto features = static_cast<double>(
      find<MethodEntry>(cell.method.name()).claims(cell.method, shape).rank_at_most.value_or(shape.d));
  const auto d = static_cast<double>(shape.d);
  shape.nq = shape.nk = cell.experiment.has("pairs") ? cell.experiment.integer("pairs") : 1;
  Work draw = work_of_call(cell, shape);
  draw += {4 * features * d * d, per_normal * features * d};
  return static_cast<double>(cell.experiment.integer("draws")) * draw;
}

// What is held beside the heads is decomposed: of nk x k numbers, nk k min(nk, k) multiply-adds. A matrix as large as A
// is A, read off as a call with V = I.
Work work_of_matrices(const Cell& cell) {
  Shape shape = cell.problem.shape;
  const auto n = static_cast<double>(shape.nk);
  const double columns = find<ExperimentEntry>(cell.experiment.name()).bytes(cell) / (sizeof(double) * n);
  Work work{n * columns * std::min(n, columns), n * columns};
  if (columns >= n) {
    shape.dv = shape.nk;
    work += work_of_call(cell, shape);
  }
  return work;
}

Work work_of_replicate(const Cell& cell) {
  const auto& shape = cell.problem.shape;
  const auto nq = static_cast<double>(shape.nq), nk = static_cast<double>(shape.nk), d = static_cast<double>(shape.d),
             dv = static_cast<double>(shape.dv);
  Work work{0, per_normal * (nq * d + nk * (d + dv))};
  if (cell.experiment.has("draws")) {
    work += work_of_draws(cell);
    return work;
  }
  const double layers = cell.experiment.has("layers") ? cell.experiment.real("layers") : 1;
  work += layers * work_of_call(cell, shape);
  work += layers * Work{2 * nq * nk * (d + dv), nq * nk};  // the exact counterpart
  work += layers * work_of_matrices(cell);
  return work;
}

double seconds_of(const Work& work, const Rates& rates) {
  return of_the_peak * work.flops / rates.fma_peak + work.exps / rates.exp_rate;
}

// Turns of the method and of the softmax that it is paired with, and a few calls before them.
double seconds_of_turns(const Cell& cell, const Rates& rates) {
  const auto heads = static_cast<double>(cell.problem.heads);
  const double call = heads * seconds_of(work_of_call(cell, cell.problem.shape), rates);
  const double turn = std::max(call, cell.experiment.real("turn") / 1000) + (call < warmed_below ? call : 0);
  return static_cast<double>(cell.experiment.integer("blocks")) * turn + 5 * call +
         heads * seconds_of(work_of_replicate(cell), rates);
}

}  // namespace

Rates rates_by_one_product(Precision precision) {
  static std::map<Precision, double> known;  // a plan of many requests asks again and again
  const auto [place, fresh] = known.try_emplace(precision, 0);
  if (fresh) place->second = of_the_peak * product_rate(precision, 1, Product::multiply, 256, 256, 256);
  const double rate = place->second;
  const double times = rate / nominal_rates.fma_peak;
  return {rate, times * nominal_rates.exp_rate, times * nominal_rates.bandwidth};
}

double seconds_by_model(const Cell& cell, const Rates& rates) {
  if (find<ExperimentEntry>(cell.experiment.name()).timing()) return overhead + seconds_of_turns(cell, rates);
  return overhead + seconds_of(work_of_replicate(cell), rates);
}

double peak_bytes_of(const Cell& cell) {
  return cell_bytes(cell) + find<MethodEntry>(cell.method.name()).memory(cell.method, cell.problem.shape);
}

}  // namespace attnbench
