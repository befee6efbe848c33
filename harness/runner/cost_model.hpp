// What a replicate of a cell takes, from formulas alone.
#pragma once

#include "harness/experiment/experiment.hpp"
#include "harness/machine/rates.hpp"

namespace attnbench {

// About one core of a current machine. For ratios between cells, which must not depend on the machine at hand.
inline constexpr Rates nominal_rates{.fma_peak = 5e10, .exp_rate = 5e8, .bandwidth = 1e10};

// Those of one thread of this machine, as far as a product that takes 20 ms tells them: exponentials in proportion.
// Measured once a process.
Rates rates_by_one_product(Precision precision);

// Seconds of one replicate of a cell on machines of those rates, by what the experiment's entry says of its work, and
// by the blocks and turns of timings. It is right within a factor of about ten.
double seconds_by_model(const Cell& cell, const Rates& rates);

// Bytes at the peak of one replicate: cell_bytes and what the method takes beyond its inputs.
double peak_bytes_of(const Cell& cell);

}  // namespace attnbench
