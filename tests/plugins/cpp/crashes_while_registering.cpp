// Dies while it is loaded.
#include <csignal>

#include "misbehaving.hpp"

namespace attnbench {
namespace {
const bool registered = std::raise(SIGSEGV) == 0;
}  // namespace
}  // namespace attnbench
