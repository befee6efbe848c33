// The project's own byte-level transformers (scripts/train_byte_lm.py): reads their weights from a file, and recovers
// the bytes that they read from their captured values.
#pragma once

#include <filesystem>

#include "harness/inputs/tensor_file.hpp"
#include "harness/inputs/transformer.hpp"

namespace attnbench {

struct ByteModel {
  Matrix<double> embedding;  // 256 x width
  std::shared_ptr<const Transformer<double>> transformer;
  bool causal = true;  // false: a token sees the whole text
};

// Reads weights.safetensors or initial.safetensors. Sizes are those of the tensors; attention.heads and
// attention.causal are numbers. Throws Misuse if a tensor is missing or does not fit the sizes of the others.
ByteModel read_byte_model(const std::filesystem::path& path);

// The bytes of a captured text. In the first layer a token's values depend on its byte alone (no positions, no
// attention before), so each token is the byte whose values in the trained model are nearest. Throws Misuse unless the
// nearest is far closer than the next: otherwise the capture is not from this model.
std::vector<Index> bytes_of(Context& context, const ByteModel& trained, const AttentionFile& capture);

// The texts of a tensor of texts.safetensors, one per row: `bytes`, or `calibration`. Throws Misuse if it is missing,
// malformed, or holds a number that is not a byte.
std::vector<std::vector<Index>> read_texts(const std::filesystem::path& path, const std::string& tensor = "bytes");

// The rows of the embedding for these bytes.
Matrix<double> embedded(const ByteModel& model, const std::vector<Index>& bytes);

// q, k and v of every layer and head, with the model's own exact attention in every layer: the tensors that
// train_byte_lm.py captures, in double.
AttentionFile heads_of(Context& context, const ByteModel& model, const std::vector<Index>& bytes);

}  // namespace attnbench
