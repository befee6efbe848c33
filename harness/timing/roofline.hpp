// Times held against the ceilings of the machine (Williams et al. 2009, CACM 52:65).
#pragma once

#include "harness/machine/rates.hpp"
#include "harness/timing/turns.hpp"

namespace attnbench {

// What a call has to do at least: operations by the method's cost formula, and each input read and each result written
// once.
struct Demand {
  Work work;
  double bytes = 0;
};

// max(FLOPs / peak + exponentials / rate, bytes / bandwidth): multiply-adds and exponentials take the same units one
// after the other, memory works beside them.
double roofline_seconds(const Demand& demand, const Rates& rates);

// Records roofline_metrics(): the demand, the rates that the member is held against, and what the median of its times
// makes of them.
void record_roofline(const Member& member, const Demand& demand, Recorder& record);
std::vector<Metric> roofline_metrics();

}  // namespace attnbench
