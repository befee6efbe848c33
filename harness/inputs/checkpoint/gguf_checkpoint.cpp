// Names and layouts of GGUF (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md). Sizes are metadata under the
// architecture's name, "llama.embedding_length". Files of the architecture llama hold the rows of every query and key
// head in another order than Hugging Face's: rotation acts on channels 2 c and 2 c + 1 where `Transformer` turns c and
// d/2 + c. read() puts them into the order of Transformer.
#include "harness/inputs/checkpoint/gguf_checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "harness/errors/error.hpp"
#include "harness/inputs/transformer.hpp"

namespace attnbench {

namespace {

const std::map<std::string, std::string> names{
    {"embedding", "token_embd.weight"},   {"output_norm", "output_norm.weight"},
    {"unembedding", "output.weight"},     {"attention_norm", "attn_norm.weight"},
    {"queries", "attn_q.weight"},         {"keys", "attn_k.weight"},
    {"values", "attn_v.weight"},          {"query_shift", "attn_q.bias"},
    {"key_shift", "attn_k.bias"},         {"value_shift", "attn_v.bias"},
    {"query_norm", "attn_q_norm.weight"}, {"key_norm", "attn_k_norm.weight"},
    {"out", "attn_output.weight"},        {"feed_forward_norm", "ffn_norm.weight"},
    {"gate", "ffn_gate.weight"},          {"up", "ffn_up.weight"},
    {"down", "ffn_down.weight"}};
constexpr const char* rotary_factors = "rope_freqs.weight";  // d/2 numbers that divide the frequencies (Llama 3)

std::string tensor_name(const ModelWeight& weight) {
  return (weight.layer < 0 ? "" : fmt::format("blk.{}.", weight.layer)) + names.at(weight.name);
}

std::vector<double> frequencies_of(const GgufFile& file, const std::string& path, const std::string& prefix, Index d) {
  if (const Index turned = file.metadata_if_there<Index>(prefix + "rope.dimension_count").value_or(d); turned != d)
    throw Misuse(fmt::format("{}: rotary positions turn {} of {} channels; attnbench turns all", path, turned, d));
  std::vector<double> frequencies =
      rotary_frequencies(d, file.metadata_if_there<double>(prefix + "rope.freq_base").value_or(10'000));
  const auto scaling = file.metadata_if_there<std::string>(prefix + "rope.scaling.type").value_or("none");
  if (scaling == "linear") {
    const double factor = file.metadata<double>(prefix + "rope.scaling.factor");
    for (double& frequency : frequencies) frequency /= factor;
  } else if (scaling != "none") {
    throw Misuse(
        fmt::format("{}: rotary positions are scaled by '{}'; attnbench knows none and linear", path, scaling));
  }
  if (file.has(rotary_factors)) {
    std::vector<float> factors(frequencies.size());
    file.read(rotary_factors, factors);
    for (size_t c = 0; c < factors.size(); ++c) frequencies[c] /= static_cast<double>(factors[c]);
  }
  return frequencies;
}

ModelSizes sizes_of(const GgufFile& file, const std::string& path, const std::string& prefix) {
  const auto size = [&](const std::string& key) { return file.metadata<Index>(prefix + key); };
  const auto size_or = [&](const std::string& key, Index otherwise) {
    return file.metadata_if_there<Index>(prefix + key).value_or(otherwise);
  };
  if (size_or("expert_count", 0) > 0)
    throw Misuse(fmt::format("{}: a mixture of {} experts; attnbench knows {}", path, size("expert_count"),
                             known_architectures));
  ModelSizes sizes{.layers = size("block_count"), .width = size("embedding_length")};
  sizes.heads = size("attention.head_count");
  sizes.key_heads = size_or("attention.head_count_kv", sizes.heads);
  sizes.d = size_or("attention.key_length", sizes.width / std::max<Index>(1, sizes.heads));
  sizes.dv = size_or("attention.value_length", sizes.d);
  sizes.hidden = size("feed_forward_length");
  sizes.context = size("context_length");
  sizes.context = std::min(sizes.context, size_or("attention.sliding_window", sizes.context));
  sizes.norm_epsilon = file.metadata<double>(prefix + "attention.layer_norm_rms_epsilon");
  sizes.vocabulary = file.tensor(names.at("embedding")).shape.front();
  refuse_senseless_sizes(path, sizes);
  sizes.rotary_frequencies = frequencies_of(file, path, prefix, sizes.d);
  return sizes;
}

// Rows 2 c and 2 c + 1 of each head become rows c and d/2 + c.
void halves_of_pairs(std::span<float> numbers, Index d, Index columns) {
  const std::vector<float> pairs(numbers.begin(), numbers.end());
  const Index rows = std::ssize(numbers) / columns;
  for (Index row = 0; row < rows; ++row) {
    const Index channel = row % d, to = row - channel + (channel % 2) * (d / 2) + channel / 2;
    std::copy_n(pairs.begin() + row * columns, columns, numbers.begin() + to * columns);
  }
}

}  // namespace

Checkpoint gguf_checkpoint(const std::shared_ptr<const GgufFile>& file, const std::string& path) {
  const auto architecture = file->metadata<std::string>("general.architecture");
  if (architecture != "llama" && architecture != "qwen2" && architecture != "qwen3")
    throw Misuse(
        fmt::format("{}: the architecture is '{}'; attnbench knows {}", path, architecture, known_architectures));
  const ModelSizes sizes = sizes_of(*file, path, architecture + ".");
  std::set<std::string> used{rotary_factors};
  for (const ModelWeight& weight : weights_of(sizes)) used.insert(tensor_name(weight));
  for (const auto& [name, tensor] : file->tensors())
    if (!used.contains(name))
      throw Misuse(
          fmt::format("{}: attnbench has no use for the tensor '{}', so its numbers would not be the model's; "
                      "it knows {}",
                      path, name, known_architectures));
  const bool paired = architecture == "llama";
  return {.title = file->metadata_if_there<std::string>("general.name").value_or(std::filesystem::path(path).stem()),
          .sizes = sizes,
          .has = [file](const ModelWeight& weight) { return file->has(tensor_name(weight)); },
          .read =
              [file, path, paired, d = sizes.d](const ModelWeight& weight, std::span<float> out) {
                const std::string name = tensor_name(weight);
                std::vector<Index> shape = file->tensor(name).shape;
                if (shape.size() == 1) shape.insert(shape.begin(), 1);
                if (shape != std::vector<Index>{weight.rows, weight.columns})
                  throw Misuse(fmt::format("{}: tensor '{}' is {}; expected {} x {}, by the sizes in its metadata",
                                           path, name, fmt::join(shape, " x "), weight.rows, weight.columns));
                file->read(name, out);
                if (paired && (weight.name == "queries" || weight.name == "keys"))
                  halves_of_pairs(out, d, weight.columns);
              }};
}

}  // namespace attnbench
