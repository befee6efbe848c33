// Budgets of equal cost. Parameters such as m, r, codes and window are not comparable; the cost of a call is.
#pragma once

#include <string>
#include <vector>

#include "harness/core/approximation.hpp"

namespace attnbench {

// The cost that methods shall share. flops, bytes and features follow the entries' formulas (bytes: memory beyond
// inputs and output; features: the bound on the rank). seconds are measured by calls on a gaussian head with one
// thread. keys, the mean number of keys that a row reads, are counted in patterns on a gaussian head, and kv-bytes are
// those that a decoder keeps after the tokens of such a head.
struct Match {
  enum class Cost { flops, bytes, features, keys, kv_bytes, seconds };
  Cost cost;
  double value;
};

// "flops=1e8". Throws Misuse.
Match parse_match(const std::string& text);

// The cost of one call of that method at that shape; nullopt where nothing gives it, as for the keys of a method
// without a pattern.
std::optional<double> cost_of(const Params& method, const Shape& shape, Match::Cost cost);

// Sets the method's budget parameter (Parameter::budget) so that the ratio of its cost to the target is as near to 1 as
// possible. For specs in brackets (combine, per-head) each gets an equal share. Returns methods without such a
// parameter unchanged, such as softmax, linear and uniform. Measured times are cached while the program runs.
Params matched(const Params& method, const Shape& shape, const Match& match);

// Names of the methods' budget parameters, which the names of curves leave out.
std::vector<std::string> budget_names();

}  // namespace attnbench
