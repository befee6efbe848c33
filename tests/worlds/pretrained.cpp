// Worlds of the recipe about heads of pretrained models.
#include "tests/worlds/worlds.hpp"

namespace attnbench::worlds {
namespace {

using enum Ruling;

const bool pretrained_heads = add({"pretrained-heads",
                                   of("effective_rank", [](const Asked& a) { return a.n() / 4; }),
                                   {{"How large a share of n the effective rank of softmax", measured, {0.25}}}});

}  // namespace
}  // namespace attnbench::worlds
