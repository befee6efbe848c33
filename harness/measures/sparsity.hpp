// How concentrated one row of an attention matrix is. methods.md I. p is a row with non-negative entries that sum to
// one, unless said otherwise.
#pragma once

#include <span>

#include "harness/linalg/matrix.hpp"

namespace attnbench {

// -sum p log p, nats; 0 log 0 = 0.
double entropy(std::span<const double> p);
// exp(entropy): the number of keys that a row attends to. n for the uniform row, 1 for a one-hot one.
double effective_support(std::span<const double> p);
// 1 / sum p^2 <= effective support.
double inverse_participation(std::span<const double> p);
// The share of entries with |p| < threshold; any sign.
double fraction_below(std::span<const double> p, double threshold);
// The sum of the k largest entries.
double top_mass(std::span<const double> p, Index k);
// 2 sum_i i p_(i) / (n sum p) - (n + 1) / n over ascending p: 0 for the uniform row, 1 - 1/n for a one-hot one.
double gini(std::span<const double> p);
// (sqrt n - |p|_1 / |p|_2) / (sqrt n - 1): 0 uniform, 1 one-hot; 0 for n = 1. Any sign.
double hoyer(std::span<const double> p);

}  // namespace attnbench
