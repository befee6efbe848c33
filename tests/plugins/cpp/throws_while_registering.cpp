// Throws while it is loaded.
#include "misbehaving.hpp"

namespace attnbench {
namespace {
bool fail() { throw std::runtime_error("no registration today"); }
const bool registered = fail();
}  // namespace
}  // namespace attnbench
