#include "harness/timing/roofline.hpp"

#include <algorithm>

#include "harness/statistics/intervals.hpp"

namespace attnbench {

double roofline_seconds(const Demand& demand, const Rates& rates) {
  return std::max(demand.work.flops / rates.fma_peak + demand.work.exps / rates.exp_rate,
                  demand.bytes / rates.bandwidth);
}

void record_roofline(const Member& member, const Demand& demand, Recorder& record) {
  const Rates& ceiling = member.rates;
  const double seconds = median(member.seconds);
  record.scalar("flops", "1", demand.work.flops);
  record.scalar("exps", "1", demand.work.exps);
  record.scalar("gflops", "GFLOP/s", 1e-9 * demand.work.flops / seconds);
  record.scalar("roofline_fraction", "1", roofline_seconds(demand, ceiling) / seconds);
  record.scalar("fma_peak", "FLOP/s", ceiling.fma_peak);
  record.scalar("exp_rate", "1/s", ceiling.exp_rate);
  record.scalar("bandwidth", "B/s", ceiling.bandwidth);
}

std::vector<Metric> roofline_metrics() {
  return {{"flops", "1", "FLOPs of a call by the method's cost formula"},
          {"exps", "1", "exponentials of a call by the method's cost formula"},
          {"gflops", "GFLOP/s", "those FLOPs over the median of the times"},
          {"roofline_fraction", "1",
           "max(FLOPs / fma_peak + exps / exp_rate, bytes of inputs and results / bandwidth) over the median of the "
           "times; above 1 when those bytes stay in a cache"},
          {"fma_peak", "FLOP/s", "multiply-adds on registers, as attnbench machine measures them; once per run"},
          {"exp_rate", "1/s", "exponentials in cache, likewise"},
          {"bandwidth", "B/s", "memory read and written, likewise"}};
}

}  // namespace attnbench
