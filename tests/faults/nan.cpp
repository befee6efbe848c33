// Gives what is no number.
#include <limits>

#include "tests/faults/fault.hpp"

namespace attnbench {
namespace {

const bool registered = add(faulty(
    "nan", [](Out<float> out) { out(0, 0) = std::numeric_limits<float>::quiet_NaN(); },
    [](Out<double> out) { out(0, 0) = std::numeric_limits<double>::quiet_NaN(); }));

}  // namespace
}  // namespace attnbench
