// A method that dies when it is asked what users should know of it.
#include <csignal>

#include "misbehaving.hpp"

namespace attnbench {
namespace {
MethodEntry dying() {
  MethodEntry entry = misbehaving("dies-when-asked", [](const auto&, auto) {});
  entry.caveats = [](const Params&, const Shape&) {
    std::raise(SIGSEGV);
    return std::vector<std::string>();
  };
  return entry;
}
const bool registered = add(dying());
}  // namespace
}  // namespace attnbench
