// Images of attention matrices of the byte-level model's heads: exact, approximate and their difference.
#include <fmt/format.h>

#include "harness/figures/looks.hpp"
#include "harness/runner/recipe.hpp"

namespace attnbench::attention_maps_recipe {
namespace {

struct Looked {
  std::string input, head, why;
};
// Chosen by their statistics on text 0: the head that looks at the previous token, the broadest one, and one with a
// large distance between query and key, but few keys.
const std::vector<Looked> heads{
    {"model:layer=1,head=1", "layer 1, head 1", "It looks at the previous token, with 0.9 of the weight. "},
    {"model:layer=0,head=2", "layer 0, head 2", "It looks at many keys, farther away than any other head. "},
    {"model:layer=3,head=0", "layer 3, head 0", "It looks at few tokens, near and far. "}};
// One method for each idea; nystrom and linformer have no causal form.
const std::vector<std::string> causal{"performer", "linear", "vq:codes=32", "local:window=16", "top-k:k=8"},
    without_mask{"performer:features=trig", "nystrom:landmarks=16", "linformer:r=32", "clustered:clusters=16"};

Panel image(const std::string& title, const Cells& cell, const std::string& metric) {
  const bool weights = metric == "attention";
  return {.title = title,
          .kind = "image",
          .cells = cell,
          .x_label = "key (token)",
          .y = metric,
          .y_label = "query (token)",
          .value_label = weights ? "weight" : "A' - A",
          .floor = weights ? 1e-4 : 0};
}

// Exact attention once, then each method beside its difference.
std::vector<Panel> panels(const Cells& cells, const std::vector<std::string>& methods) {
  std::vector<Panel> all{image(printed_spec("methods", "softmax"), cells.method("softmax"), "attention")};
  for (const auto& method : methods) {
    const std::string name = printed_spec("methods", method);
    all.push_back(image(name, cells.method(method), "attention"));
    all.push_back(image(name + " less exact", cells.method(method), "difference"));
  }
  return all;
}

void write(Recipe& recipe) {
  const Index tokens = recipe.sized<Index>(32, 64, 128);
  const auto run = [&](std::vector<std::string> methods, const std::vector<std::string>& inputs, bool is_causal) {
    methods.push_back("softmax");
    return recipe.run({.experiment = "attention-map",
                       .methods = std::move(methods),
                       .inputs = inputs,
                       .n = {tokens},
                       .causal = is_causal});
  };
  const Cells as_trained = run(causal, {heads[0].input, heads[1].input, heads[2].input}, true);
  const Cells both_sides = run(without_mask, {heads[1].input}, false);
  const std::string how = fmt::format(
      "The first {} bytes of a held-out text; rows are queries, downwards. One draw of each method. ", tokens);
  for (const auto& [input, head, why] : heads) {
    std::string name = "attention-maps-" + head;
    for (char& c : name)
      if (c == ' ') c = '-';
    std::erase(name, ',');
    recipe.figure(name, "Attention of " + head, how + why + "Causal, as the model was trained.",
                  panels(as_trained.input(input), causal));
  }
  recipe.figure("attention-maps-bidirectional", "Attention of " + heads[1].head + " without its mask",
                how +
                    "Without the causal mask: methods that have no causal form, and trigonometric features, whose "
                    "weights can be negative.",
                panels(both_sides, without_mask));
}

const bool registered = add(RecipeEntry{
    .text = {.name = "attention-maps",
             .summary = "Attention of the byte-level model's heads: exact, approximate, and their difference",
             .formula = "Which parts of a head's attention does a method keep, and which does it smear?",
             .reference = "none: for the eye"},
    .write = write});

}  // namespace
}  // namespace attnbench::attention_maps_recipe
