// The sets of heads that recipes measure: heads = "of-three-models". On the project's byte-level model replicates are
// texts, each from a different held-out file. The other models have few texts, so their heads are measured on text 0,
// and replicates are draws of the method on it.
#include <fmt/format.h>

#include <algorithm>

#include "harness/inputs/input.hpp"
#include "harness/runner/declared_recipe.hpp"

namespace attnbench {
namespace {

struct Head {
  Index layer, head;
};

// Three heads of the byte-level model by softmax attention on text 0, as the model computes it (model.json): the one
// with the largest effective support and the least effective rank, one in between, and the one with the smallest
// support, which looks at the previous token.
constexpr Head dense{0, 2}, typical{2, 0}, concentrated{1, 1};

const std::vector<Head> of_minilm{{0, 2}, {0, 11}, {1, 7}, {2, 2}, {2, 9}, {5, 4}},
    of_whisper_encoder{{0, 4}, {2, 2}, {2, 5}};

using Inputs = std::vector<std::string>;

Inputs of_byte_model(const std::vector<Head>& heads) {
  Inputs all;
  for (const auto& [layer, head] : heads) all.push_back(fmt::format("model:layer={},head={}", layer, head));
  return all;
}

Inputs every_head() {
  std::vector<Head> all;
  for (Index layer = 0; layer < 4; ++layer)
    for (Index head = 0; head < 3; ++head) all.push_back({layer, head});
  return of_byte_model(all);
}

Inputs telling_heads(const Recipe& recipe) {
  return recipe.sized<Inputs>(of_byte_model({typical}), of_byte_model({dense, typical, concentrated}), every_head());
}

// Heads of a captured model: the first at size smoke, the first and the last at quick, all at full.
Inputs captured(const Recipe& recipe, const char* model, const std::vector<Head>& heads) {
  const auto some = recipe.sized<std::vector<Head>>({heads.front()}, {heads.front(), heads.back()}, heads);
  Inputs all;
  for (const auto& [layer, head] : some)
    all.push_back(fmt::format("pretrained:model={},layer={},head={},repeat=true", model, layer, head));
  return all;
}

// Heads of one model, with no more tokens than it has.
Cells run_on_model(Recipe& recipe, RunRequest request, const Inputs& inputs) {
  const Params input("inputs", inputs.front());
  const InputLimits limits = find<InputEntry>(input.name()).limits(input);
  for (Index& n : request.n) n = limits.keys > 0 ? std::min(n, limits.keys) : n;
  // An interval of a median over 24 draws has an error rate down to 2^-23.
  if (place_of(input).replicate == "draw")
    request.replicates = std::min(request.replicates, recipe.sized<Index>(2, 24));
  request.inputs = inputs;
  return recipe.run(request);
}

Cells run_on_pretrained(Recipe& recipe, const RunRequest& request) {
  return run_on_model(recipe, request, captured(recipe, "minilm", of_minilm)) +
         run_on_model(recipe, request, captured(recipe, "whisper-encoder", of_whisper_encoder));
}

const bool registered[]{
    add(HeadsEntry{
        .text = {.name = "telling",
                 .summary = "three heads of the byte-level model, one in a smoke run, all twelve at full size"},
        .run = [](Recipe& recipe,
                  const RunRequest& request) { return run_on_model(recipe, request, telling_heads(recipe)); }}),
    add(HeadsEntry{
        .text = {.name = "every", .summary = "all twelve heads of the byte-level model"},
        .run = [](Recipe& recipe, const RunRequest& request) { return run_on_model(recipe, request, every_head()); }}),
    add(HeadsEntry{.text = {.name = "pretrained",
                            .summary = "of MiniLM and of Whisper's encoder one captured head in a smoke run, two, and "
                                       "all at full size"},
                   .run = run_on_pretrained}),
    add(HeadsEntry{.text = {.name = "of-three-models", .summary = "telling and pretrained"},
                   .run = [](Recipe& recipe, const RunRequest& request) {
                     return run_on_model(recipe, request, telling_heads(recipe)) + run_on_pretrained(recipe, request);
                   }})};

}  // namespace
}  // namespace attnbench
