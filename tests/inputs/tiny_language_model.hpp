// A language model of two layers over bytes, as a GGUF file and as a folder in Hugging Face's form, both with the same
// numbers: a Llama, or a Qwen 3 with norms and shifts of queries and keys.
#pragma once

#include <nlohmann/json.hpp>

#include "harness/inputs/checkpoint/byte_alphabet.hpp"
#include "harness/inputs/write_safetensors.hpp"
#include "harness/random/streams.hpp"
#include "tests/inputs/gguf_bytes.hpp"

namespace attnbench {

struct TinyLanguageModel {
  static constexpr Index layers = 2, width = 8, heads = 4, key_heads = 2, d = 4, hidden = 12, vocabulary = 258;
  static constexpr Index context = 32;

  std::string architecture = "llama";  // or "qwen3"
  nlohmann::json config = {};          // replaces keys of config.json
  std::string left_out = {};           // a tensor by Hugging Face's name
  NamedTensors more = {};              // further tensors of the folder
  bool tied = true;

  bool of_qwen() const { return architecture == "qwen3"; }

  struct Tensor2 {
    std::string folder_name, gguf_name;
    Matrix<double> numbers;
  };

  std::vector<Tensor2> tensors() const {
    std::vector<Tensor2> all;
    const auto add = [&](const std::string& folder_name, const std::string& gguf_name, Index rows, Index columns,
                         double mean) {
      Generator generator = Streams(3).stream("tiny language model", folder_name);
      const Matrix<double> drawn = (standard_normal(generator, rows, columns).array() * 0.4 + mean).matrix();
      if (folder_name != left_out) all.push_back({folder_name, gguf_name, drawn.cast<float>().cast<double>()});
    };
    add("model.embed_tokens.weight", "token_embd.weight", vocabulary, width, 0);
    for (Index l = 0; l < layers; ++l) {
      const std::string here = "model.layers." + std::to_string(l) + ".", there = "blk." + std::to_string(l) + ".";
      add(here + "input_layernorm.weight", there + "attn_norm.weight", 1, width, 1);
      add(here + "self_attn.q_proj.weight", there + "attn_q.weight", heads * d, width, 0);
      add(here + "self_attn.k_proj.weight", there + "attn_k.weight", key_heads * d, width, 0);
      add(here + "self_attn.v_proj.weight", there + "attn_v.weight", key_heads * d, width, 0);
      add(here + "self_attn.o_proj.weight", there + "attn_output.weight", width, heads * d, 0);
      if (of_qwen()) {
        add(here + "self_attn.q_norm.weight", there + "attn_q_norm.weight", 1, d, 1);
        add(here + "self_attn.k_norm.weight", there + "attn_k_norm.weight", 1, d, 1);
        add(here + "self_attn.v_proj.bias", there + "attn_v.bias", 1, key_heads * d, 0);
      }
      add(here + "post_attention_layernorm.weight", there + "ffn_norm.weight", 1, width, 1);
      add(here + "mlp.gate_proj.weight", there + "ffn_gate.weight", hidden, width, 0);
      add(here + "mlp.up_proj.weight", there + "ffn_up.weight", hidden, width, 0);
      add(here + "mlp.down_proj.weight", there + "ffn_down.weight", width, hidden, 0);
    }
    add("model.norm.weight", "output_norm.weight", 1, width, 1);
    if (!tied) add("lm_head.weight", "output.weight", vocabulary, width, 0);
    return all;
  }

  // The 256 bytes, then "th" and "the".
  static std::vector<std::string> tokens() {
    std::vector<std::string> all;
    for (int byte = 0; byte < 256; ++byte) all.push_back(character_of_byte(static_cast<unsigned char>(byte)));
    all.insert(all.end(), {"th", "the"});
    return all;
  }
  static std::vector<std::string> merges() { return {"t h", "th e"}; }

  // GGUF's Llama has the rows of each query and key head in pairs: row 2 c is row c here, row 2 c + 1 row d/2 + c.
  Matrix<double> rows_of_gguf(const Tensor2& tensor) const {
    const bool paired =
        !of_qwen() && (tensor.gguf_name.ends_with("attn_q.weight") || tensor.gguf_name.ends_with("attn_k.weight"));
    if (!paired) return tensor.numbers;
    Matrix<double> turned = tensor.numbers;
    for (Index row = 0; row < turned.rows(); ++row)
      turned.row(row) = tensor.numbers.row(row - row % d + (row % 2) * (d / 2) + row % d / 2);
    return turned;
  }

  GgufBytes gguf() const {
    constexpr std::uint32_t uint32 = 4, float32 = 6, text = 8, array = 9;
    GgufBytes file;
    const auto texts = [](const std::vector<std::string>& all) {
      std::vector<std::string> elements;
      for (const auto& one : all) elements.push_back(gguf_text(one));
      return gguf_array(text, elements);
    };
    file.entry("general.architecture", text, gguf_text(architecture)).entry("general.name", text, gguf_text("Tiny"));
    for (const auto& [key, size] :
         std::initializer_list<std::pair<const char*, Index>>{{"block_count", layers},
                                                              {"embedding_length", width},
                                                              {"feed_forward_length", hidden},
                                                              {"attention.head_count", heads},
                                                              {"attention.head_count_kv", key_heads},
                                                              {"attention.key_length", d},
                                                              {"attention.value_length", d},
                                                              {"context_length", context}})
      file.entry(architecture + "." + key, uint32, encoded(static_cast<std::uint64_t>(size), 4));
    file.entry(architecture + ".attention.layer_norm_rms_epsilon", float32, float32_bytes({1e-5}));
    file.entry(architecture + ".rope.freq_base", float32, float32_bytes({1000}));
    file.entry("tokenizer.ggml.model", text, gguf_text("gpt2")).entry("tokenizer.ggml.pre", text, gguf_text("gpt-2"));
    file.entry("tokenizer.ggml.tokens", array, texts(tokens())).entry("tokenizer.ggml.merges", array, texts(merges()));
    for (const Tensor2& tensor : tensors()) {
      const Matrix<double> rows = rows_of_gguf(tensor);
      std::vector<std::uint64_t> axes{static_cast<std::uint64_t>(rows.cols())};
      if (rows.rows() > 1) axes.push_back(static_cast<std::uint64_t>(rows.rows()));
      file.tensor(tensor.gguf_name, axes, 0, float32_bytes({rows.data(), rows.data() + rows.size()}));
    }
    return file;
  }

  nlohmann::json whole_config() const {
    nlohmann::json all{{"model_type", architecture},
                       {"hidden_size", width},
                       {"num_hidden_layers", layers},
                       {"num_attention_heads", heads},
                       {"num_key_value_heads", key_heads},
                       {"head_dim", d},
                       {"intermediate_size", hidden},
                       {"vocab_size", vocabulary},
                       {"max_position_embeddings", context},
                       {"rms_norm_eps", 1e-5},
                       {"rope_theta", 1000.0},
                       {"hidden_act", "silu"},
                       {"tie_word_embeddings", tied}};
    for (const auto& [key, value] : config.items()) all[key] = value;
    return all;
  }

  static nlohmann::json tokenizer() {
    nlohmann::json vocab = nlohmann::json::object();
    const auto all = tokens();
    for (size_t id = 0; id < all.size(); ++id) vocab[all[id]] = id;
    return {{"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", merges()}}},
            {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}}};
  }

  // `parts` files of weights with an index, or one without.
  void write_folder(const std::filesystem::path& folder, size_t parts = 1) const {
    std::filesystem::create_directories(folder);
    write_bytes(folder / "config.json", whole_config().dump());
    write_bytes(folder / "tokenizer.json", tokenizer().dump());
    std::vector<NamedTensors> files(parts);
    nlohmann::json map = nlohmann::json::object();
    const auto name = [&](size_t part) {
      return parts == 1 ? "model.safetensors" : "model-" + std::to_string(part) + ".safetensors";
    };
    size_t next = 0;
    for (const Tensor2& tensor : tensors()) {
      const size_t part = next++ % parts;
      map[tensor.folder_name] = name(part);
      attnbench::Tensor as_file = as_tensor(tensor.numbers);
      if (tensor.numbers.rows() == 1) as_file.shape = {tensor.numbers.cols()};
      files[part][tensor.folder_name] = std::move(as_file);
    }
    files[0].insert(more.begin(), more.end());
    for (size_t part = 0; part < parts; ++part) write_safetensors(folder / name(part), files[part], Precision::f32);
    if (parts > 1) write_bytes(folder / "model.safetensors.index.json", nlohmann::json{{"weight_map", map}}.dump());
  }
};

}  // namespace attnbench
