// Causal language models on disk: a GGUF file, or a folder in Hugging Face's form.
#pragma once

#include "harness/inputs/checkpoint/tokeniser.hpp"
#include "harness/inputs/transformer.hpp"

namespace attnbench {

struct LanguageModel {
  std::string title;  // "SmolLM2 135M Instruct"
  std::shared_ptr<const Transformer<float>> transformer;
  Weights<float> embedding;  // vocabulary x width
  std::shared_ptr<const Tokeniser> tokeniser;
  Index context = 0;  // most tokens of a text

  // The rows of the embedding for these tokens.
  Matrix<double> embedded(std::span<const Index> tokens) const;
};

// Reads a .gguf file, or config.json, model.safetensors (or its index and parts) and tokenizer.json of a folder. The
// weights are converted to float once and mapped from the cache folder. Throws Misuse: what is wrong, where, and what
// was expected.
std::shared_ptr<const LanguageModel> read_language_model(const std::filesystem::path& path);

// Hash of all files that decide the model's numbers, 16 hexadecimal digits.
std::string content_of_language_model(const std::filesystem::path& path);

}  // namespace attnbench
