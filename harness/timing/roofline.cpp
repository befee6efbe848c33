#include "harness/timing/roofline.hpp"

#include <algorithm>

#include "harness/statistics/intervals.hpp"

namespace attnbench {

double roofline_seconds(const Demand& demand, const Rates& rates) {
  return std::max(demand.work.flops / rates.fma_peak + demand.work.exps / rates.exp_rate,
                  demand.bytes / rates.bandwidth);
}

Rates rates_of_block(const Member& member, size_t block) {
  if (member.arithmetic.empty()) return member.rates;
  Rates rates = member.arithmetic.at(block);
  rates.bandwidth = member.rates.bandwidth;
  return rates;
}

Rates typical_rates(const Member& member) {
  std::vector<double> fma_peaks, exp_rates;
  for (size_t block = 0; block < member.seconds.size(); ++block) {
    fma_peaks.push_back(rates_of_block(member, block).fma_peak);
    exp_rates.push_back(rates_of_block(member, block).exp_rate);
  }
  return {median(fma_peaks), median(exp_rates), member.rates.bandwidth};
}

void record_roofline(const Member& member, const Demand& demand, Recorder& record) {
  const Rates ceiling = typical_rates(member);
  const double seconds = median(member.seconds);
  std::vector<double> fractions;
  for (size_t block = 0; block < member.seconds.size(); ++block)
    fractions.push_back(roofline_seconds(demand, rates_of_block(member, block)) / member.seconds[block]);
  record.scalar("flops", "1", demand.work.flops);
  record.scalar("exps", "1", demand.work.exps);
  record.scalar("gflops", "GFLOP/s", 1e-9 * demand.work.flops / seconds);
  record.array("roofline_fraction", "1", {std::ssize(fractions)}, fractions);
  record.scalar("fma_peak", "FLOP/s", ceiling.fma_peak);
  record.scalar("exp_rate", "1/s", ceiling.exp_rate);
  record.scalar("bandwidth", "B/s", ceiling.bandwidth);
}

std::vector<Metric> roofline_metrics() {
  return {
      {"flops", "1", "FLOPs of a call by the method's cost formula"},
      {"exps", "1", "exponentials of a call by the method's cost formula"},
      {"gflops", "GFLOP/s", "those FLOPs over the median of the times"},
      by_block({"roofline_fraction",
                "1",
                "max(FLOPs / fma_peak + exps / exp_rate, bytes of inputs and results / bandwidth) over the time, one "
                "sample a "
                "block, with the rates of arithmetic after that block's turn; above 1 when those bytes stay in a cache",
                {},
                "least time by the machine's rates / time",
                "log10"}),
      {"fma_peak", "FLOP/s", "multiply-adds on registers, the median of the moments after the turns"},
      {"exp_rate", "1/s", "exponentials in cache, likewise"},
      {"bandwidth", "B/s", "memory read and written, as attnbench machine measures it; once per run"}};
}

}  // namespace attnbench
