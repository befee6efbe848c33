// What approximations make of the attention of real heads, to be looked at: exact beside approximate beside their
// difference.
#include <fmt/format.h>

#include "harness/runner/recipe.hpp"

namespace attnbench {
namespace {

struct Looked {
  const char *input, *what, *why;
};
// By recipe entropy-per-head and the mean weight of the previous token: the sharpest of layer 0, the broadest of all,
// and one between them of the last layer.
const std::vector<Looked> heads{
    {"model:layer=0,head=0", "layer 0, head 0", "It looks at the previous token, with 0.8 of the weight. "},
    {"model:layer=1,head=0", "layer 1, head 0", "It looks farther than any other, at many keys. "},
    {"model:layer=3,head=1", "layer 3, head 1", "It looks at single tokens, near and far. "}};

// One of each idea; nystrom and linformer have no causal form.
const std::vector<std::string> causal{"performer", "linear", "vq:codes=32", "local:window=16", "top-k:k=8"},
    bidirectional{"performer:features=trig", "nystrom:landmarks=16", "linformer:r=32", "clustered:clusters=16"};

constexpr double floor_of_weights = 1e-4;

const Description text{.name = "attention-maps",
                       .summary = "Attention of real heads: exact, approximate, and their difference",
                       .formula = "A, A' and A' - A of one input: what a method keeps of a head, and what it smears.",
                       .reference = "none: for the eye"};

Index tokens(RecipeSize size) { return size == RecipeSize::smoke ? 32 : size == RecipeSize::quick ? 64 : 128; }

RunRequest request(const std::vector<std::string>& methods, RecipeSize size, bool is_causal) {
  RunRequest run{.experiment = "attention-map",
                 .methods = methods,
                 .inputs = {},
                 .n = {tokens(size)},
                 .causal = is_causal,
                 .replicates = 1};
  run.methods.push_back("softmax");
  return run;
}

std::vector<RunRequest> runs(RecipeSize size) {
  RunRequest of_the_model = request(causal, size, true), of_both_sides = request(bidirectional, size, false);
  for (const Looked& head : heads) of_the_model.inputs.push_back(head.input);
  of_both_sides.inputs = {heads[1].input};
  return {of_the_model, of_both_sides};
}

std::vector<Panel> panels(const std::string& input, const std::vector<std::string>& methods, bool is_causal) {
  std::vector<Panel> all;
  const auto image = [&](const std::string& title, const std::string& method, const std::string& metric) {
    const bool weights = metric == "attention";
    all.push_back({.title = title,
                   .kind = "image",
                   .where = {{"experiment", "attention-map"},
                             {"method", method},
                             {"input", input},
                             {"causal", is_causal ? 1 : 0}},
                   .x_label = "key (token)",
                   .y = metric,
                   .y_label = "query (token)",
                   .value_label = weights ? "weight" : "A' - A",
                   .floor = weights ? floor_of_weights : 0});
  };
  for (const auto& method : methods) {
    image("softmax (exact)", "softmax", "attention");
    image(method, method, "attention");
    image("difference", method, "difference");
  }
  return all;
}

std::vector<Figure> figures(RecipeSize size) {
  std::vector<Figure> all;
  const std::string how = fmt::format(
      "The first {} tokens of the held-out text; rows are queries, downwards. One draw of each method. ", tokens(size));
  for (const Looked& head : heads) {
    std::string name = std::string("attention-maps-") + head.what;
    for (char& c : name)
      if (c == ' ') c = '-';
    std::erase(name, ',');
    all.push_back(figure(name, text, fmt::format("Attention of {}", head.what),
                         how + head.why + "Causal, as the model was trained.", panels(head.input, causal, true)));
  }
  all.push_back(figure("attention-maps-bidirectional", text,
                       fmt::format("Attention of {} without its mask", heads[1].what),
                       how + "Without the causal mask: methods that have no causal form, and trigonometric features, "
                             "whose weights can be negative.",
                       panels(heads[1].input, bidirectional, false)));
  return all;
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures});

}  // namespace
}  // namespace attnbench
