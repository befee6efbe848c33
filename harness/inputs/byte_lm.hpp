// The project's own byte-level transformer (scripts/train_byte_lm.py): its weights from a file, and the bytes that it
// read, recovered from its captured values.
#pragma once

#include <filesystem>

#include "harness/inputs/tensor_file.hpp"
#include "harness/inputs/transformer.hpp"

namespace attnbench {

struct ByteModel {
  Matrix<double> embedding;  // 256 x width
  std::shared_ptr<const Transformer> transformer;
};

// Reads weights.safetensors or initial.safetensors. Sizes are those of the tensors; heads and context are the
// capture's. Throws Misuse when a tensor is missing or of another size than its neighbours ask for.
ByteModel read_byte_model(const std::filesystem::path& path, Index heads);

// The bytes of a captured text. In the first layer a token's values are a function of its byte alone (no positions, no
// attention before): each token is the byte whose values, by the trained model, are nearest. Throws Misuse unless the
// nearest is so by far, since the capture is then not of this model.
std::vector<Index> bytes_of(Context& context, const ByteModel& trained, const AttentionFile& capture);

// The texts of texts.safetensors: tensor `bytes`, a text a row. Throws Misuse when it is missing, of another form, or
// holds what is no byte.
std::vector<std::vector<Index>> read_texts(const std::filesystem::path& path);

// Rows of the embedding.
Matrix<double> embedded(const ByteModel& model, const std::vector<Index>& bytes);

// q, k and v of every layer and head, causal exact attention throughout: what train_byte_lm.py captures, in double.
AttentionFile heads_of(Context& context, const ByteModel& model, const std::vector<Index>& bytes);

}  // namespace attnbench
