// Which of two numbers of a metric is better.
#pragma once

#include <functional>
#include <set>
#include <string>

namespace attnbench {

enum class Better { unstated, less, more };

// Says which direction is better for a metric, given its name and unit. Experiments state it and results files do not
// hold it: callers pass better_of (harness/experiment/experiment.hpp).
using WhichIsBetter = std::function<Better(const std::string& metric, const std::string& unit)>;

// The direction of a metric that declares none: less time, memory, work and bits are better, and more per second. For
// other units (an entropy, a rank, a prediction of theory) neither direction is better.
inline Better better_by_unit(const std::string& /*metric*/, const std::string& unit) {
  static const std::set<std::string> less{"s", "B", "FLOP", "bit"};
  return less.contains(unit) ? Better::less : unit == "1/s" ? Better::more : Better::unstated;
}

}  // namespace attnbench
