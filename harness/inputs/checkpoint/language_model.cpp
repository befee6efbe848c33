#include "harness/inputs/checkpoint/language_model.hpp"

#include <fmt/format.h>

#include "harness/errors/error.hpp"
#include "harness/inputs/captured_heads.hpp"
#include "harness/inputs/checkpoint/cached_weights.hpp"
#include "harness/inputs/checkpoint/gguf_checkpoint.hpp"
#include "harness/inputs/checkpoint/hugging_face_checkpoint.hpp"
#include "harness/random/streams.hpp"

namespace attnbench {

namespace {

// Part of the key of a converted file: a new number for another order or meaning of its numbers.
constexpr const char* conversion = "1";

bool is_folder(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

std::vector<std::filesystem::path> files_of(const std::filesystem::path& path) {
  return is_folder(path) ? hugging_face_files(path) : std::vector{path};
}

Transformer<float> transformer_of(const Checkpoint& checkpoint, const std::string& key, Weights<float>& embedding) {
  const ModelSizes& sizes = checkpoint.sizes;
  const auto weights = cached_weights(checkpoint, key);
  const auto matrix = [&](const char* name, Index layer) {
    const auto found = weights.find({name, layer});
    return found == weights.end() ? Weights<float>() : found->second;
  };
  const auto vector = [&](const char* name, Index layer) -> Matrix<float> {
    const Weights<float> found = matrix(name, layer);
    return found.size() == 0 ? Matrix<float>() : Matrix<float>(found.view());
  };
  embedding = matrix("embedding", -1);
  Transformer<float> transformer{.heads = sizes.heads,
                                 .d = sizes.d,
                                 .dv = sizes.dv,
                                 .key_heads = sizes.key_heads,
                                 .rotary_frequencies = sizes.rotary_frequencies,
                                 .layers = {},
                                 .output_norm = {vector("output_norm", -1)},
                                 .unembedding = matrix("unembedding", -1),
                                 .norm_epsilon = sizes.norm_epsilon};
  if (transformer.unembedding.size() == 0) transformer.unembedding = embedding;  // tied
  for (Index l = 0; l < sizes.layers; ++l)
    transformer.layers.push_back({.attention_norm = {vector("attention_norm", l)},
                                  .feed_forward_norm = {vector("feed_forward_norm", l)},
                                  .queries = matrix("queries", l),
                                  .keys = matrix("keys", l),
                                  .values = matrix("values", l),
                                  .out = matrix("out", l),
                                  .up = matrix("up", l),
                                  .down = matrix("down", l),
                                  .gate = matrix("gate", l),
                                  .query_shift = vector("query_shift", l),
                                  .key_shift = vector("key_shift", l),
                                  .value_shift = vector("value_shift", l),
                                  .query_norm = {vector("query_norm", l)},
                                  .key_norm = {vector("key_norm", l)}});
  return transformer;
}

}  // namespace

Matrix<double> LanguageModel::embedded(std::span<const Index> tokens) const {
  Matrix<double> X(std::ssize(tokens), embedding.cols());
  for (Index i = 0; i < X.rows(); ++i) X.row(i) = embedding.view().row(tokens[static_cast<size_t>(i)]).cast<double>();
  return X;
}

std::shared_ptr<const LanguageModel> read_language_model(const std::filesystem::path& path) {
  const auto model = std::make_shared<LanguageModel>();
  Checkpoint checkpoint;
  if (is_folder(path)) {
    hugging_face_files(path);  // refuses what is missing before anything is read
    checkpoint = hugging_face_checkpoint(path);
    model->tokeniser = std::make_shared<const Tokeniser>(read_tokeniser(path / "tokenizer.json"));
  } else {
    const auto file = std::make_shared<const GgufFile>(path);
    checkpoint = gguf_checkpoint(file, path.string());
    model->tokeniser = std::make_shared<const Tokeniser>(
        tokeniser_of_gguf(file->metadata<std::string>("tokenizer.ggml.model"),
                          file->metadata_if_there<std::string>("tokenizer.ggml.pre").value_or("default"),
                          file->metadata<std::vector<std::string>>("tokenizer.ggml.tokens"),
                          file->metadata<std::vector<std::string>>("tokenizer.ggml.merges"), path.string()));
  }
  if (model->tokeniser->size() > checkpoint.sizes.vocabulary)
    throw Misuse(fmt::format("{}: the tokeniser has {} tokens and the embedding {}; expected as many or fewer",
                             path.string(), model->tokeniser->size(), checkpoint.sizes.vocabulary));
  model->title = checkpoint.title;
  model->context = checkpoint.sizes.context;
  model->transformer = std::make_shared<const Transformer<float>>(
      transformer_of(checkpoint, fmt::format("{}-{}", content_of_language_model(path), conversion), model->embedding));
  return model;
}

std::string content_of_language_model(const std::filesystem::path& path) {
  std::string hashes;
  for (const auto& file : files_of(path)) hashes += content_hash(file);
  return fmt::format("{:016x}", hash_bytes(hashes));
}

}  // namespace attnbench
