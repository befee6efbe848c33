// What the experiment `rank` records of a spectrum, exact or estimated.
#pragma once

#include "harness/experiment/experiment.hpp"
#include "harness/measures/linear_map.hpp"

namespace attnbench {

constexpr Index krylov_steps = 8;  // of the largest singular values

inline Index longest(const Shape& shape) { return std::max(shape.nq, shape.nk); }
inline Index shortest(const Shape& shape) { return std::min(shape.nq, shape.nk); }

// What rounding makes of zero, as a share of sigma_1: max(nq, nk) times the distance of neighbours at 1 in the format
// that the matrix is computed in.
double rounding_floor(const Cell& cell);

// sigma: all singular values, or all but those that are 0 by construction. resolution: what they are known to, at
// least; the rounding floor is never less than that.
void record_spectrum(const Task& task, std::vector<double> sigma, double resolution, Recorder& record);

// The largest singular values of A, and traces with their 95 % intervals.
void record_estimates(const Task& task, const LinearMap& A, Recorder& record);

}  // namespace attnbench
