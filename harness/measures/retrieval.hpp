// Whether an approximate row of attention still points at the keys that the exact one does. methods.md I.
#pragma once

#include <span>
#include <vector>

#include "harness/linalg/matrix.hpp"

namespace attnbench {

// The key with the largest weight; of equal ones the lowest. -1 when no weight is above zero.
Index top_key(std::span<const double> p);
// The keys with the k largest weights, ascending; of equal ones the lowest. Fewer where fewer weights are above zero: a
// key without weight is not found.
std::vector<Index> top_keys(std::span<const double> p, Index k);
// |top_keys(p, k) and top_keys(exact, k)| / |top_keys(exact, k)|, so that a row which sees fewer than k keys can reach
// 1. exact has a weight above zero.
double top_recall(std::span<const double> p, std::span<const double> exact, Index k);

}  // namespace attnbench
