#include "harness/runner/cost_model.hpp"

#include <algorithm>
#include <map>

#include "harness/experiment/work.hpp"
#include "harness/timing/turns.hpp"

namespace attnbench {

namespace {

constexpr double overhead = 5e-3;  // seconds per replicate beside its work: a transaction, a message to a worker
constexpr double of_the_peak = 2;  // the peak rate over the rate that matrix products reach

// Drawing the heads, and the experiment's own work.
Work work_of_replicate(const Cell& cell) {
  const auto& shape = cell.problem.shape;
  const auto nq = static_cast<double>(shape.nq), nk = static_cast<double>(shape.nk), d = static_cast<double>(shape.d),
             dv = static_cast<double>(shape.dv);
  Work work{0, exponentials_of_a_normal * (nq * d + nk * (d + dv))};
  work += find<ExperimentEntry>(cell.experiment.name()).work(cell);
  return work;
}

double seconds_of(const Work& work, const Rates& rates) {
  return of_the_peak * work.flops / rates.fma_peak + work.exps / rates.exp_rate;
}

// The blocks of turns, a few calls before them, and the experiment's own work.
double seconds_of_turns(const Cell& cell, const Rates& rates) {
  const auto heads = static_cast<double>(cell.problem.heads);
  const double call = heads * seconds_of(work_of_call(cell), rates);
  const double turn = std::max(call, cell.experiment.real("turn") / 1000) + (call < warmed_below ? call : 0);
  return static_cast<double>(cell.experiment.integer("blocks")) * turn + 5 * call +
         heads * seconds_of(work_of_replicate(cell), rates);
}

}  // namespace

Rates rates_by_one_product(Precision precision) {
  static std::map<Precision, double> known;  // kept, because a plan of many requests asks for it repeatedly
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
