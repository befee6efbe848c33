// A method whose name no spec can write.
#include "misbehaving.hpp"

namespace attnbench {
namespace {

const bool registered = add(misbehaving("my method", [](const auto&, auto) {}));

}  // namespace
}  // namespace attnbench
