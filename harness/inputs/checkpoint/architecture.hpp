// A model as a checkpoint describes it: sizes, rotary positions, and its weights by attnbench's own names.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "harness/linalg/matrix.hpp"

namespace attnbench {

// A weight of a Llama-like model, as `Transformer` names it: "queries" of a layer, or "embedding" of none (layer -1).
// Vectors have one row.
struct ModelWeight {
  std::string name;
  Index layer = -1;
  Index rows = 0, columns = 0;
};

struct ModelSizes {
  Index layers = 0, width = 0, heads = 0, key_heads = 0, d = 0, dv = 0, hidden = 0, vocabulary = 0;
  Index context = 0;  // most tokens of a text: those that the model was trained for, or that a layer's window sees
  double norm_epsilon = 1e-5;
  std::vector<double> rotary_frequencies;  // d / 2, as Transformer has them
};

// The weights that a model of these sizes has. Those of `optional_weights` may be missing.
std::vector<ModelWeight> weights_of(const ModelSizes& sizes);
bool optional_weight(const std::string& name);

// A file or a folder with the weights of one model.
struct Checkpoint {
  std::string title;  // "SmolLM2 135M Instruct"
  ModelSizes sizes;
  std::function<bool(const ModelWeight&)> has;
  // Writes rows x columns numbers, row-major. Throws Misuse if the file has the weight in another shape.
  std::function<void(const ModelWeight&, std::span<float>)> read;
};

// Throws Misuse, which names the file, if sizes are not positive, heads cannot be shared, or angles come not in pairs.
void refuse_senseless_sizes(const std::string& file, const ModelSizes& sizes);

// "llama (Llama, SmolLM, Mistral), qwen2, qwen3": the end of a message about another architecture.
extern const char* const known_architectures;

}  // namespace attnbench
