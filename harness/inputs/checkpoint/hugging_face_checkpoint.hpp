// Models in Hugging Face's form: a folder with config.json and model.safetensors, or the parts that
// model.safetensors.index.json names.
#pragma once

#include <filesystem>

#include "harness/inputs/checkpoint/architecture.hpp"

namespace attnbench {

// The files of the folder whose numbers the model depends on: config.json, tokenizer.json, the weights and their index.
// Throws Misuse if one is missing.
std::vector<std::filesystem::path> hugging_face_files(const std::filesystem::path& folder);

// The model in that folder. Throws Misuse for another architecture, and for what attnbench does not compute.
Checkpoint hugging_face_checkpoint(const std::filesystem::path& folder);

}  // namespace attnbench
