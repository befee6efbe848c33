// How the experiment `rank` records a spectrum, exact or estimated.
#pragma once

#include "harness/experiment/experiment.hpp"
#include "harness/measures/linear_map.hpp"

namespace attnbench {

constexpr Index krylov_steps = 8;  // in the estimate of the largest singular values

inline Index longest(const Shape& shape) { return std::max(shape.nq, shape.nk); }
inline Index shortest(const Shape& shape) { return std::min(shape.nq, shape.nk); }

// The size that rounding gives to a singular value of 0, relative to sigma_1: max(nq, nk) times the machine epsilon of
// the format in which the matrix is computed.
double rounding_floor(const Cell& cell);

// sigma: all singular values, or all but those that are 0 by construction. resolution: the accuracy to which they are
// known; the rounding floor is at least that.
void record_spectrum(const Task& task, std::vector<double> sigma, double resolution, Recorder& record);

// The largest singular values of A, and traces with their 95 % intervals.
void record_estimates(const Task& task, const LinearMap& A, Recorder& record);

}  // namespace attnbench
