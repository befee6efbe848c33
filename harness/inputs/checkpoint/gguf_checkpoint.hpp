// Models in GGUF files, which llama.cpp and its kin read.
#pragma once

#include <memory>

#include "harness/inputs/checkpoint/architecture.hpp"
#include "harness/inputs/checkpoint/gguf.hpp"
#include "harness/inputs/checkpoint/tokeniser.hpp"

namespace attnbench {

// The model in an open file. Throws Misuse for another architecture, and for what attnbench does not compute, such as
// experts, other rotary scalings, or a tensor that it would not use.
Checkpoint gguf_checkpoint(const std::shared_ptr<const GgufFile>& file, const std::string& path);

}  // namespace attnbench
