// What keys of m dimensions can do, and whether the exponential is the best activation, as source 000 says of linear
// attention. The first is an identity: a Performer of m features is linear attention with exponentials of m-dimensional
// keys. The second is no theorem: at entries of scale 1 exponentials are near to average pooling, and so err as it
// does.
#include <fmt/format.h>

#include "experiments/recipes/real_heads.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;

const Description text{.name = "wider-keys",
                       .summary = "Wider keys with an elementwise activation, and which activation",
                       .formula =
                           "Linear attention with e^x and keys of m dimensions has the capacity of a Performer with m "
                           "features, and e^x is the best activation.",
                       .reference = "Su 2021, kexue.fm/archives/8338"};

const std::string exponential = "linear:features=exp";
const Specs others{"linear", "linear:features=relu", "linear:features=relu2"};
const Specs scales{"gaussian:scale=0.25", "gaussian:scale=0.5", "gaussian", "gaussian:scale=2"};

Index length(RecipeSize size) { return size == RecipeSize::smoke ? 64 : size == RecipeSize::quick ? 256 : 1024; }

Specs performers(RecipeSize size) {
  Specs all;
  for (const Index m : size == RecipeSize::smoke ? std::vector<Index>{16} : std::vector<Index>{16, 64, 256})
    all.push_back(Params("methods", fmt::format("performer:m={}", m)).spec());
  return all;
}

Specs all_inputs(RecipeSize size) {
  Specs all = scales;
  for (const auto& head : inputs_of(telling_heads(size))) all.push_back(head);
  return all;
}

std::vector<RunRequest> runs(RecipeSize size) {
  const RunRequest same{.experiment = "wider-keys",
                        .methods = performers(size),
                        .inputs = all_inputs(size),
                        .n = {length(size)},
                        .causal = false,
                        .replicates = 2};
  RunRequest causal = same, activations = same;
  causal.causal = true;
  activations.experiment = "attention-error:matrix=false";
  activations.methods = others;
  activations.methods.insert(activations.methods.begin(), {exponential, "uniform"});
  activations.replicates = size == RecipeSize::smoke ? 2 : 6;
  return {same, causal, activations};
}

std::vector<Figure> figures(RecipeSize) {
  Specs drawn = others;
  drawn.insert(drawn.begin(), {exponential, "uniform"});
  return {figure(
      "wider-keys", text, "Elementwise activations, against exact softmax",
      "Error of the output of linear attention, d = 64, with 95 % intervals over inputs; uniform is the mean "
      "of V.",
      {{.title = "gaussian",
        .where = {{"experiment", "attention-error:matrix=false"}, {"causal", 0}, {"input", scales}, {"method", drawn}},
        .x = {"scale"},
        .x_label = "standard deviation of the entries of Q and K",
        .x_scale = "log2",
        .y = "relative_output_error",
        .y_label = "|A'V - AV| / |AV|",
        .y_scale = "log10"}})};
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  std::vector<Bounded> distances;
  std::vector<Region> regions;
  for (const auto& input : all_inputs(size)) {
    for (const auto& method : performers(size))
      for (const int causal : {0, 1})
        for (const auto& [replicate, distance] :
             results.scalar({{"method", method}, {"input", input}, {"causal", causal}}, "distance"))
          distances.push_back({fmt::format("{} on {}", method, input), distance, 1e-9});
    const auto error = [&](const std::string& method) {
      return results.scalar({{"experiment", "attention-error:matrix=false"}, {"method", method}, {"input", input}},
                            "relative_output_error");
    };
    Region region{input, {}};
    for (const auto& other : others)
      region.comparisons.push_back({other, ratio_of(error(exponential), error(other),
                                                    share_of_error_rate(others.size() * all_inputs(size).size()))});
    regions.push_back(region);
  }
  return {
      all_at_most("A Performer of m features is linear attention with exponentials of keys of m dimensions", distances),
      below_where(1,
                  {"Of elementwise activations the exponential errs least (its error over that of 1 + elu, ReLU and "
                   "squared ReLU)",
                   Verdict::Outcome::ambiguous},
                  regions)};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
