// How far one row of an approximate attention matrix is from the exact one. methods.md I.
#pragma once

#include <optional>
#include <span>

namespace attnbench {

// sum |p - q|; in [0, 2] for two stochastic rows.
double l1_distance(std::span<const double> p, std::span<const double> q);
// KL(p || q) = sum p log(p / q), nats; infinity where p > 0 = q, counted by the caller and never clipped. Empty when an
// entry of either is negative: then it is not defined.
std::optional<double> kl_divergence(std::span<const double> p, std::span<const double> q);

}  // namespace attnbench
