// A method in float alone.
#include "misbehaving.hpp"

namespace attnbench {
namespace {
MethodEntry in_float() {
  MethodEntry entry = misbehaving("in-float", [](const auto&, auto) {});
  entry.f64 = nullptr;
  return entry;
}
const bool registered = add(in_float());
}  // namespace
}  // namespace attnbench
