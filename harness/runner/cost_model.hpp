// Estimates the cost of a replicate from formulas alone.
#pragma once

#include "harness/experiment/experiment.hpp"
#include "harness/machine/rates.hpp"

namespace attnbench {

// About one core of a current machine. Use it for ratios between cells, which must not depend on the machine at hand.
inline constexpr Rates nominal_rates{.fma_peak = 5e10, .exp_rate = 5e8, .bandwidth = 1e10};

// One thread's rates on this machine, estimated from a single 20 ms matrix product; the other rates are scaled by the
// same factor. Measured once per process.
Rates rates_by_one_product(Precision precision);

// Seconds of one replicate of a cell on a machine with these rates. Uses the work that the experiment's entry declares
// and, for timings, the numbers of blocks and turns. Right within a factor of about ten.
double seconds_by_model(const Cell& cell, const Rates& rates);

// Bytes at the peak of one replicate: cell_bytes plus the memory that the method takes beyond its inputs.
double peak_bytes_of(const Cell& cell);

}  // namespace attnbench
