// The heads that recipes measure. On the project's byte-level model replicates are texts, each from a different
// held-out file. The other models have few texts, so their heads are measured on text 0, and replicates are draws of
// the method on it.
#pragma once

#include <string>
#include <vector>

#include "harness/runner/recipe.hpp"

namespace attnbench {

// All texts that come with the model. A median over 32 texts has an interval down to an error rate of 2^-31.
constexpr Index texts = 32;

struct HeadModel {
  const char *title, *input;  // its inputs begin so
};
inline constexpr HeadModel byte_model{"the byte-level model", "model:"}, minilm{"MiniLM", "pretrained:model=minilm,"},
    whisper_encoder{"Whisper's encoder", "pretrained:model=whisper-encoder,"},
    whisper_decoder{"Whisper's decoder", "pretrained:model=whisper-decoder,"};
// The models of telling_heads_of_models, as statements name them.
inline const std::string three_models = "this project's byte-level model, of MiniLM and of Whisper's encoder";

struct RealHead {
  Index layer, head;
  const HeadModel* model = &byte_model;

  std::string input() const;
  std::string place() const;  // "layer 0, head 2"
  std::string name() const;   // with the model, unless it is the byte-level model
  std::string part() const;   // its region: the heads of its model
  // That many tokens, or all that the model has.
  Shape shape(Index n) const;
};

// Three heads of the model by softmax attention on text 0, as the model computes it (model.json): the one with the
// largest effective support and the least effective rank, one in between, and the one with the smallest support, which
// looks at the previous token.
inline constexpr RealHead dense_head{0, 2}, typical_head{2, 0}, concentrated_head{1, 1};

// Every head of every layer.
std::vector<RealHead> all_heads();
// These three, one in a smoke run, and all heads at full size.
std::vector<RealHead> telling_heads(const Recipe& recipe);
// The captured heads of another model.
std::vector<RealHead> captured_heads_of(const HeadModel& model);
// Of MiniLM and of Whisper's encoder one captured head in a smoke run, two, and all at full size. They are
// bidirectional.
std::vector<RealHead> pretrained_heads(const Recipe& recipe);
std::vector<RealHead> telling_heads_of_models(const Recipe& recipe);  // both of these
// One list for each model.
std::vector<std::vector<RealHead>> by_model(const std::vector<RealHead>& heads);
// Of each model the first and the last of these heads: what a figure with a curve for each head has room for.
std::vector<RealHead> first_and_last(const std::vector<RealHead>& heads);
// Runs the request on these heads, with no more tokens than a model has.
Cells run_on(Recipe& recipe, const RunRequest& request, const std::vector<RealHead>& heads);
// For definitions: how many heads of which models, n, d, and of which replicates medians are. The mask is left out if
// the recipe sets one for all.
std::string heads_in_words(const std::vector<RealHead>& heads, Index n, bool own_masks = true);
std::vector<std::string> inputs_of(const std::vector<RealHead>& heads);

// The settings of a statement: some random inputs, then heads.
struct LawOrHead {
  std::string name, input;
  std::string part = name;  // its region: one of its own, or the one of the heads of its model
  Index d = 64;

  // The name of a comparison within that region.
  std::string within(const std::string& more = {}) const;
};
std::vector<LawOrHead> laws_and_heads(std::vector<LawOrHead> laws, const std::vector<RealHead>& heads);
std::vector<std::string> inputs_of(const std::vector<LawOrHead>& all);
// The least and the greatest of several numbers. The interval runs from the extreme lower end to the extreme upper end,
// which is valid because the intervals hold simultaneously.
Estimate least_of(const std::vector<Estimate>& all);
Estimate greatest_of(const std::vector<Estimate>& all);
// The region of that name; it is added if missing.
Region& region(std::vector<Region>& regions, const std::string& name);

}  // namespace attnbench
