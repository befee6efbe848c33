// Compares times with the ceilings of the machine (Williams et al. 2009, CACM 52:65).
#pragma once

#include "harness/machine/rates.hpp"
#include "harness/timing/turns.hpp"

namespace attnbench {

// The least that a call must do: the operations by the method's cost formula, reading each input once, and writing each
// result once.
struct Demand {
  Work work;
  double bytes = 0;
};

// max(FLOPs / peak + exponentials / rate, bytes / bandwidth): multiply-adds and exponentials use the same units one
// after the other, while memory works in parallel.
double roofline_seconds(const Demand& demand, const Rates& rates);

// The rates of one block: those of arithmetic are of the moment after its turn.
Rates rates_of_block(const Member& member, size_t block);
// The medians over the blocks.
Rates typical_rates(const Member& member);

// Records roofline_metrics(): the demand, the machine's rates, and the fraction of them that each turn reaches.
void record_roofline(const Member& member, const Demand& demand, Recorder& record);
std::vector<Metric> roofline_metrics();

}  // namespace attnbench
