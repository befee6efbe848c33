// Numbers derived from the singular values of an attention matrix. methods.md I. Every function takes sigma, largest
// first.
#pragma once

#include <span>
#include <vector>

#include "harness/linalg/matrix.hpp"

namespace attnbench {

// sigma_1 max(rows, columns) epsilon: the size to which rounding raises a zero singular value of a double matrix.
double rank_tolerance(std::span<const double> sigma, Index rows, Index columns);
// Singular values above the tolerance.
Index numerical_rank(std::span<const double> sigma, double tolerance);
// |A|_F^2 / |A|_2^2. 0 for the zero matrix, like all ranks here.
double stable_rank(std::span<const double> sigma);
// (sum sigma^2)^2 / sum sigma^4.
double participation_ratio(std::span<const double> sigma);
// exp of the entropy of sigma^power / sum sigma^power: power 1 is Roy and Vetterli's effective rank.
double effective_rank(std::span<const double> sigma, double power = 1);
// c_k = sum_{i <= k} sigma_i / sum sigma_i: Linformer's normalised cumulative spectrum (of sigma, not of its square).
std::vector<double> cumulative_spectrum(std::span<const double> sigma);

// The fewest k with sum_{i <= k} sigma_i^2 >= share sum sigma^2. 0 for the zero matrix.
Index principal_dimensions(std::span<const double> sigma, double share);

}  // namespace attnbench
