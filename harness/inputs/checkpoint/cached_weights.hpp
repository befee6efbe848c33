// The weights of a checkpoint in float, in one file of the cache folder that all processes map: they share its pages.
#pragma once

#include <filesystem>
#include <map>

#include "harness/inputs/checkpoint/architecture.hpp"
#include "harness/inputs/transformer.hpp"

namespace attnbench {

// $ATTNBENCH_CACHE, or $XDG_CACHE_HOME/attnbench, or ~/.cache/attnbench; `attnbench fetch` writes there too.
std::filesystem::path cache_folder();

// Converts the checkpoint unless the cache has it under that key, which must change whenever its numbers do. Throws
// Misuse if a weight is missing or of another shape, or if the cache cannot be written; nothing half-written remains.
// Weights by name and layer.
std::map<std::pair<std::string, Index>, Weights<float>> cached_weights(const Checkpoint& checkpoint,
                                                                       const std::string& key);

}  // namespace attnbench
