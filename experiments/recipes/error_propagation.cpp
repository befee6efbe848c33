// How an approximation's error grows through layers: Performer's Fig. 14, on the weights of a real model and on random
// ones. The same weights, the method in every layer; hidden states against those of softmax.
#include <fmt/format.h>

#include "experiments/recipes/through_layers.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;

const Description text{
    .name = "error-propagation",
    .summary = "Error of hidden states against depth, at a model's own weights",
    .formula =
        "An approximation in every layer of a network errs more with every layer, and orthogonal features err "
        "less than independent ones.",
    .reference = "Choromanski et al. 2020, arXiv:2009.14794, Fig. 14"};

constexpr size_t model_layers = 4;

Specs budgets(RecipeSize size) { return size == RecipeSize::smoke ? Specs{"8", "32"} : Specs{"64", "256"}; }

// Orthogonal and iid of each budget.
Specs performers(RecipeSize size) {
  Specs all;
  for (const auto& m : budgets(size))
    for (const char* projection : {"orthogonal", "iid"})
      all.push_back(fmt::format("performer:m={},projection={}", m, projection));
  return all;
}

Specs others(RecipeSize size, bool causal) {
  const char* budget = size == RecipeSize::smoke ? "8" : "64";
  Specs all{"linear", "uniform"};
  if (size != RecipeSize::quick)
    all.insert(all.end(), {fmt::format("vq:codes={}", budget), fmt::format("local:window={}", budget)});
  if (!causal) all.push_back(fmt::format("nystrom:landmarks={}", budget));
  return all;
}

Specs methods(RecipeSize size, bool causal) {
  Specs all = performers(size);
  for (const auto& method : others(size, causal)) all.push_back(method);
  return all;
}

struct Setting {
  std::string name, input;
  bool causal;
  double logit_scale = 1;
};
// Random layers have logits of unit size, too large for random features at d = 64: the relative error of a weight is
// sqrt((e^|z|^2 - 1) / m), |z|^2 about 16. Over 32 it is 5 % at m = 256.
const std::vector<Setting> settings{{"trained model", "model", true},
                                    {"untrained model", "model:weights=initial", true},
                                    {"trained model bidirectional", "model", false},
                                    {"random layers", "gaussian", true},
                                    {"random layers with logits over 32", "gaussian", true, 1.0 / 32}};

size_t layers_of(const Setting& setting, RecipeSize size) {
  if (setting.input.starts_with("model")) return model_layers;
  return size == RecipeSize::full ? 12 : size == RecipeSize::quick ? 8 : 4;
}

Index tokens(RecipeSize size) { return size == RecipeSize::smoke ? 32 : size == RecipeSize::quick ? 128 : 512; }

std::vector<RunRequest> runs(RecipeSize size) {
  std::vector<RunRequest> all;
  for (const Setting& setting : settings)
    all.push_back({.experiment = fmt::format("depth:layers={},matrix=false", layers_of(setting, size)),
                   .methods = methods(size, setting.causal),
                   .inputs = {setting.input},
                   .n = {tokens(size)},
                   .causal = setting.causal,
                   .logit_scale = setting.logit_scale,
                   .replicates = size == RecipeSize::smoke   ? 2
                                 : size == RecipeSize::quick ? 8
                                                             : 16});
  return all;
}

nlohmann::json where(const Setting& setting, RecipeSize size) {
  return {{"input", setting.input},
          {"causal", setting.causal ? 1 : 0},
          {"logit_scale", setting.logit_scale},
          {"n", tokens(size)},
          {"matrix", "false"},
          {"skip", "true"}};
}

std::vector<Figure> figures(RecipeSize size) {
  std::vector<Panel> panels;
  for (const Setting& setting : settings) {
    nlohmann::json cells = where(setting, size);
    cells["method"] = methods(size, setting.causal);
    panels.push_back(through_layers(setting.name, std::move(cells), "output_error", "|X' - X| / |X|  (Frobenius)", 1));
  }
  return {figure("error-propagation", text, "Error of the hidden state through layers",
                 "Against the same weights with softmax in every layer (error 0). The byte-level transformer as it is, "
                 "before training, and read in both directions, which it was not trained for (Nystroem has no causal "
                 "form); causal layers of random weights with LayerNorm, MLP and skip connections, as they are and "
                 "with logits over 32. A head that returns the mean of V (uniform) is the null: what errs more would "
                 "better not look at the keys.",
                 panels)};
}

nlohmann::json cell(const Setting& setting, RecipeSize size, const std::string& method) {
  nlohmann::json one = where(setting, size);
  one["method"] = method;
  return one;
}

// The error after the first layer over that after the last.
std::vector<Region> growth(const Results& results, RecipeSize size) {
  std::vector<Region> regions;
  size_t comparisons = 0;
  for (const Setting& setting : settings) comparisons += methods(size, setting.causal).size();
  for (const Setting& setting : settings) {
    Region region{setting.name, {}};
    const size_t layers = layers_of(setting, size);
    for (const auto& method : methods(size, setting.causal)) {
      const auto one = cell(setting, size, method);
      region.comparisons.push_back(
          {method, ratio(element(results, one, "output_error", layers, 0),
                         element(results, one, "output_error", layers, layers - 1), share_of_error_rate(comparisons))});
    }
    regions.push_back(std::move(region));
  }
  return regions;
}

// The error after the last layer, that of `first` over that of `second`; each pair with a name.
struct Pair {
  std::string name, first, second;
};
std::vector<Region> against(const Results& results, RecipeSize size, const std::vector<Pair>& pairs) {
  const double rate = share_of_error_rate(settings.size() * pairs.size());
  std::vector<Region> regions;
  for (const Setting& setting : settings)
    for (const Pair& pair : pairs)
      regions.push_back({setting.name + " " + pair.name,
                         {{"", ratio(results.scalar(cell(setting, size, pair.first), "final_output_error"),
                                     results.scalar(cell(setting, size, pair.second), "final_output_error"), rate)}}});
  return regions;
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  const Specs random = performers(size);
  const std::string few = "at m = " + budgets(size)[0], many = "at m = " + budgets(size)[1];
  // What orthogonality saves of a kernel estimate's MSE falls as |z|^4 e^-|z|^2 (methods.md B; recipe orthogonal-gain):
  // nothing at a trained model's logits.
  std::vector<Comparison> alike;
  for (const Region& region : against(results, size, {{many, random[2], random[3]}, {many, random[3], random[2]}}))
    if (region.name.starts_with("trained")) alike.push_back({region.name, region.comparisons[0].estimate});
  return {below_where(
              1,
              {"The error of the hidden state is greater after the last layer than after the first, for every method",
               Verdict::Outcome::ambiguous},
              growth(results, size)),
          all_below(1.1,
                    {"In the trained model orthogonal and independent features err alike after all layers, to a tenth: "
                     "its logits are too large for orthogonality to save anything"},
                    alike),
          below_where(1, {"The mean of V errs less than Performer after all layers", Verdict::Outcome::ambiguous},
                      against(results, size, {{few, "uniform", random[0]}, {many, "uniform", random[2]}}))};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
