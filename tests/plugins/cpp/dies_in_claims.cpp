// A method whose claims cannot be asked for.
#include <csignal>

#include "misbehaving.hpp"

namespace attnbench {
namespace {
MethodEntry dying() {
  MethodEntry entry = misbehaving("dies-in-claims", [](const auto&, auto) {});
  entry.claims = [](const Params&, const Shape&) {
    std::raise(SIGSEGV);
    return Claims{};
  };
  return entry;
}
const bool registered = add(dying());
}  // namespace
}  // namespace attnbench
