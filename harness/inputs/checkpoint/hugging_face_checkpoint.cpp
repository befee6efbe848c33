// Names and sizes of the Hugging Face library `transformers` (models llama, mistral, qwen2 and qwen3).
#include "harness/inputs/checkpoint/hugging_face_checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numbers>
#include <set>

#include "harness/errors/error.hpp"
#include "harness/inputs/safetensors.hpp"
#include "harness/inputs/tensor_formats.hpp"
#include "harness/inputs/transformer.hpp"

namespace attnbench {

namespace {

using Json = nlohmann::json;

constexpr std::uintmax_t longest_json = 100'000'000;

const std::map<std::string, std::string> names{{"embedding", "model.embed_tokens.weight"},
                                               {"output_norm", "model.norm.weight"},
                                               {"unembedding", "lm_head.weight"},
                                               {"attention_norm", "input_layernorm.weight"},
                                               {"queries", "self_attn.q_proj.weight"},
                                               {"keys", "self_attn.k_proj.weight"},
                                               {"values", "self_attn.v_proj.weight"},
                                               {"query_shift", "self_attn.q_proj.bias"},
                                               {"key_shift", "self_attn.k_proj.bias"},
                                               {"value_shift", "self_attn.v_proj.bias"},
                                               {"query_norm", "self_attn.q_norm.weight"},
                                               {"key_norm", "self_attn.k_norm.weight"},
                                               {"out", "self_attn.o_proj.weight"},
                                               {"feed_forward_norm", "post_attention_layernorm.weight"},
                                               {"gate", "mlp.gate_proj.weight"},
                                               {"up", "mlp.up_proj.weight"},
                                               {"down", "mlp.down_proj.weight"}};

std::string tensor_name(const ModelWeight& weight) {
  return (weight.layer < 0 ? "" : fmt::format("model.layers.{}.", weight.layer)) + names.at(weight.name);
}

Json read_json(const std::filesystem::path& path) {
  if (size_of_regular_file(path) > longest_json)
    throw Misuse(
        fmt::format("{}: longer than {} bytes; expected a JSON file of that name", path.string(), longest_json));
  std::ifstream stream(path, std::ios::binary);
  const Json json = Json::parse(stream, nullptr, false);
  if (!json.is_object()) throw Misuse(fmt::format("{}: not a JSON object; copy the file again", path.string()));
  return json;
}

// config.json, with messages that name it.
class Config {
 public:
  explicit Config(const std::filesystem::path& path) : path_(path.string()), json_(read_json(path)) {}
  Config(std::string path, Json json) : path_(std::move(path)), json_(std::move(json)) {}

  const std::string& path() const { return path_; }
  bool has(const char* key) const { return json_.contains(key) && !json_.at(key).is_null(); }
  Index integer(const char* key) const {
    const Json& value = at(key);
    if (!value.is_number_integer()) refuse(key, "an integer");
    return value.get<Index>();
  }
  Index integer_or(const char* key, Index otherwise) const { return has(key) ? integer(key) : otherwise; }
  double number(const char* key) const {
    const Json& value = at(key);
    if (!value.is_number()) refuse(key, "a number");
    return value.get<double>();
  }
  double number_or(const char* key, double otherwise) const { return has(key) ? number(key) : otherwise; }
  std::string text_or(const char* key, const std::string& otherwise) const {
    if (!has(key)) return otherwise;
    if (!json_.at(key).is_string()) refuse(key, "a text");
    return json_.at(key).get<std::string>();
  }
  bool truth_or(const char* key, bool otherwise) const {
    if (!has(key)) return otherwise;
    if (!json_.at(key).is_boolean()) refuse(key, "true or false");
    return json_.at(key).get<bool>();
  }
  Config object_or_empty(const char* key) const {
    if (!has(key)) return {path_, Json::object()};
    if (!json_.at(key).is_object()) refuse(key, "an object");
    return {fmt::format("{}: {}", path_, key), json_.at(key)};
  }
  // Whether a list of texts has that one.
  bool list_has(const char* key, const std::string& text) const {
    return has(key) && json_.at(key).is_array() &&
           std::find(json_.at(key).begin(), json_.at(key).end(), Json(text)) != json_.at(key).end();
  }

 private:
  const Json& at(const char* key) const {
    if (!has(key)) throw Misuse(fmt::format("{}: there is no '{}'; expected it", path_, key));
    return json_.at(key);
  }
  [[noreturn]] void refuse(const char* key, const char* expected) const {
    throw Misuse(fmt::format("{}: '{}' is {}; expected {}", path_, key, json_.at(key).dump().substr(0, 60), expected));
  }

  std::string path_;
  Json json_;
};

// Llama 3's: frequencies that turn less often than low_freq_factor times within the original context are divided by
// factor, those that turn more often than high_freq_factor times stay, and those between are mixed linearly.
void stretch_as_llama3(std::vector<double>& frequencies, const Config& scaling) {
  const double factor = scaling.number("factor"), low = scaling.number("low_freq_factor"),
               high = scaling.number("high_freq_factor"), context = scaling.number("original_max_position_embeddings");
  for (double& frequency : frequencies) {
    const double turns = context * frequency / (2 * std::numbers::pi);
    const double kept = std::clamp((turns - low) / (high - low), 0.0, 1.0);
    frequency = (1 - kept) * frequency / factor + kept * frequency;
  }
}

std::vector<double> frequencies_of(const Config& config, Index d) {
  // transformers 5 writes rope_parameters; earlier versions write rope_theta and rope_scaling.
  const Config scaling = config.object_or_empty(config.has("rope_parameters") ? "rope_parameters" : "rope_scaling");
  const double base = scaling.number_or("rope_theta", config.number_or("rope_theta", 10'000));
  for (const Config* place : {&config, &scaling})
    if (const double turned = place->number_or("partial_rotary_factor", 1); turned != 1)
      throw Misuse(
          fmt::format("{}: rotary positions turn {} of the channels; attnbench turns all", place->path(), turned));
  std::vector<double> frequencies = rotary_frequencies(d, base);
  const std::string type = scaling.text_or("rope_type", scaling.text_or("type", "default"));
  if (type == "llama3") {
    stretch_as_llama3(frequencies, scaling);
  } else if (type == "linear") {
    for (double& frequency : frequencies) frequency /= scaling.number("factor");
  } else if (type != "default") {
    throw Misuse(fmt::format("{}: rotary positions are scaled by '{}'; attnbench knows default, linear and llama3",
                             scaling.path(), type));
  }
  return frequencies;
}

// How many keys a token sees at most, where layers have a window.
Index context_of(const Config& config, const std::string& type) {
  const Index context = config.integer("max_position_embeddings");
  const bool windows = config.has("layer_types") ? config.list_has("layer_types", "sliding_attention")
                                                 : type == "mistral" || config.truth_or("use_sliding_window", false);
  return windows ? std::min(context, config.integer_or("sliding_window", context)) : context;
}

ModelSizes sizes_of(const Config& config) {
  const std::string type = config.text_or("model_type", "");
  if (type != "llama" && type != "mistral" && type != "qwen2" && type != "qwen3")
    throw Misuse(
        fmt::format("{}: the model_type is '{}'; attnbench knows {}", config.path(), type, known_architectures));
  if (const std::string activation = config.text_or("hidden_act", "silu"); activation != "silu")
    throw Misuse(fmt::format("{}: hidden_act is '{}'; attnbench knows silu", config.path(), activation));
  ModelSizes sizes{.layers = config.integer("num_hidden_layers"), .width = config.integer("hidden_size")};
  sizes.heads = config.integer("num_attention_heads");
  sizes.key_heads = config.integer_or("num_key_value_heads", sizes.heads);
  sizes.d = config.integer_or("head_dim", sizes.width / std::max<Index>(1, sizes.heads));
  sizes.dv = sizes.d;
  sizes.hidden = config.integer("intermediate_size");
  sizes.vocabulary = config.integer("vocab_size");
  sizes.context = context_of(config, type);
  sizes.norm_epsilon = config.number_or("rms_norm_eps", 1e-6);
  refuse_senseless_sizes(config.path(), sizes);
  sizes.rotary_frequencies = frequencies_of(config, sizes.d);
  return sizes;
}

// The safetensors files of the folder, without those that an index does not name.
std::vector<std::filesystem::path> weight_files(const std::filesystem::path& folder) {
  const auto whole = folder / "model.safetensors", index = folder / "model.safetensors.index.json";
  std::error_code error;
  if (std::filesystem::exists(whole, error)) return {whole};
  if (!std::filesystem::exists(index, error)) {
    for (const char* pickled : {"pytorch_model.bin", "pytorch_model.bin.index.json", "consolidated.00.pth"})
      if (std::filesystem::exists(folder / pickled, error)) refuse_file_of_pytorch((folder / pickled).string());
    throw Misuse(
        fmt::format("{}: there is no model.safetensors and no model.safetensors.index.json; expected a folder "
                    "as save_pretrained of transformers writes it",
                    folder.string()));
  }
  const Json map = read_json(index).value("weight_map", Json());
  if (!map.is_object() || map.empty())
    throw Misuse(fmt::format("{}: there is no 'weight_map'; copy the file again", index.string()));
  std::set<std::filesystem::path> files;
  for (const auto& [tensor, file] : map.items()) {
    if (!file.is_string() || file.get<std::string>().find('/') != std::string::npos)
      throw Misuse(fmt::format("{}: tensor '{}' is in {}; expected the name of a file beside it", index.string(),
                               shown(tensor), shown(file.dump())));
    files.insert(folder / file.get<std::string>());
  }
  for (const auto& file : files)
    if (!std::filesystem::exists(file, error))
      throw Misuse(fmt::format("{}: it names {}, which is not there; copy that file too", index.string(),
                               file.filename().string()));
  return {files.begin(), files.end()};
}

}  // namespace

std::vector<std::filesystem::path> hugging_face_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files = weight_files(folder);
  std::error_code error;
  for (const char* name : {"config.json", "tokenizer.json"}) {
    if (!std::filesystem::exists(folder / name, error))
      throw Misuse(fmt::format("{}: there is no {}; expected a folder as save_pretrained of transformers writes it",
                               folder.string(), name));
    files.push_back(folder / name);
  }
  return files;
}

Checkpoint hugging_face_checkpoint(const std::filesystem::path& folder) {
  const Config config(folder / "config.json");
  const ModelSizes sizes = sizes_of(config);
  const auto where = std::make_shared<std::map<std::string, std::shared_ptr<const SafetensorsFile>>>();
  std::set<std::string> used;
  for (const ModelWeight& weight : weights_of(sizes)) used.insert(tensor_name(weight));
  for (const auto& path : weight_files(folder)) {
    const auto file = std::make_shared<const SafetensorsFile>(path);
    for (const auto& [name, shape] : file->shapes()) {
      if (!used.contains(name) && !name.ends_with("rotary_emb.inv_freq"))
        throw Misuse(
            fmt::format("{}: attnbench has no use for the tensor '{}', so its numbers would not be the "
                        "model's; it knows {}",
                        path.string(), shown(name), known_architectures));
      (*where)[name] = file;
    }
  }
  const bool tied = config.truth_or("tie_word_embeddings", false);
  if (!tied && !where->contains(names.at("unembedding")))
    throw Misuse(fmt::format("{}: there is no tensor '{}', and tie_word_embeddings of config.json is not true",
                             folder.string(), names.at("unembedding")));
  const auto absolute = std::filesystem::absolute(folder);
  return {.title = (absolute.has_filename() ? absolute : absolute.parent_path()).filename().string(),
          .sizes = sizes,
          .has =
              [where, tied](const ModelWeight& weight) {
                return where->contains(tensor_name(weight)) && !(tied && weight.name == "unembedding");
              },
          .read =
              [where](const ModelWeight& weight, std::span<float> out) {
                const std::string name = tensor_name(weight);
                const SafetensorsFile& file = *where->at(name);
                std::vector<Index> shape = file.shapes().at(name);
                if (shape.size() == 1) shape.insert(shape.begin(), 1);
                if (shape != std::vector<Index>{weight.rows, weight.columns})
                  throw Misuse(fmt::format("{}: tensor '{}' is {}; expected {} x {}, by the sizes of config.json",
                                           file.path().string(), name, shown(shape), weight.rows, weight.columns));
                file.read(name, out);
              }};
}

}  // namespace attnbench
