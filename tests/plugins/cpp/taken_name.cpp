// Registers a name that is a built-in method's.
#include "misbehaving.hpp"

namespace attnbench {
namespace {
const bool registered = add(misbehaving("performer", [](const auto&, auto) {}));
}  // namespace
}  // namespace attnbench
