// Whether an approximate row of attention still points at the keys of the exact row. methods.md I.
#pragma once

#include <span>
#include <vector>

#include "harness/linalg/matrix.hpp"

namespace attnbench {

// The key with the largest weight; among equal ones the lowest. -1 if no weight is above zero.
Index top_key(std::span<const double> p);
// The keys with the k largest weights, ascending; among equal ones the lowest. Returns fewer if fewer weights are above
// zero, because a key without weight does not count as found.
std::vector<Index> top_keys(std::span<const double> p, Index k);
// |top_keys(p, k) and top_keys(exact, k)| / |top_keys(exact, k)|, so that a row that sees fewer than k keys can reach
// 1. exact must have a weight above zero.
double top_recall(std::span<const double> p, std::span<const double> exact, Index k);

}  // namespace attnbench
