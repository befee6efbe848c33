// Distances between a row of an approximate attention matrix and the exact row. methods.md I.
#pragma once

#include <optional>
#include <span>

namespace attnbench {

// sum |p - q|; in [0, 2] for two stochastic rows.
double l1_distance(std::span<const double> p, std::span<const double> q);
// KL(p || q) = sum p log(p / q), nats. Infinity if p > 0 = q anywhere; the caller counts these, and nothing is clipped.
// nullopt if an entry of either is negative, since KL is undefined then.
std::optional<double> kl_divergence(std::span<const double> p, std::span<const double> q);

}  // namespace attnbench
