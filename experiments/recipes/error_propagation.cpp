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

Specs performers(RecipeSize size) {
  const char* most = size == RecipeSize::smoke ? "32" : "256";
  const char* few = size == RecipeSize::smoke ? "8" : "64";
  Specs all;
  for (const char* m : {few, most})
    for (const char* projection : {"orthogonal", "iid"})
      all.push_back(fmt::format("performer:m={},projection={}", m, projection));
  return all;
}

Specs others(RecipeSize size, bool causal) {
  const char* budget = size == RecipeSize::smoke ? "8" : "64";
  Specs all{"linear", fmt::format("vq:codes={}", budget), fmt::format("local:window={}", budget), "uniform"};
  if (!causal) all.push_back(fmt::format("nystrom:landmarks={}", budget));
  return all;
}

Specs methods(RecipeSize size, bool causal) {
  Specs all = performers(size);
  for (const auto& method : others(size, causal)) all.push_back(method);
  return all;
}

size_t law_layers(RecipeSize size) { return size == RecipeSize::full ? 12 : size == RecipeSize::quick ? 8 : 4; }

std::vector<RunRequest> runs(RecipeSize size) {
  const auto request = [&](const Specs& inputs, size_t layers, bool causal) {
    return RunRequest{.experiment = fmt::format("depth:layers={},matrix=false", layers),
                      .methods = methods(size, causal),
                      .inputs = inputs,
                      .n = {size == RecipeSize::smoke   ? 32
                            : size == RecipeSize::quick ? 256
                                                        : 512},
                      .causal = causal,
                      .replicates = size == RecipeSize::smoke   ? 2
                                    : size == RecipeSize::quick ? 8
                                                                : 10};
  };
  return {request({"model", "model:weights=initial"}, model_layers, true), request({"model"}, model_layers, false),
          request({"gaussian"}, law_layers(size), true)};
}

Panel errors(RecipeSize size, const std::string& title, const std::string& input, bool causal) {
  return through_layers(
      title, {{"method", methods(size, causal)}, {"input", input}, {"causal", causal ? 1 : 0}, {"matrix", "false"}},
      "output_error", "|X' - X| / |X|  (Frobenius)", 1);
}

std::vector<Figure> figures(RecipeSize size) {
  return {figure("error-propagation", text, "Error of the hidden state through layers",
                 "Against the same weights with softmax in every layer (error 0). The byte-level transformer as it is, "
                 "before training, and read in both directions, which it was not trained for (Nystroem has no causal "
                 "form); gaussian: random layers with LayerNorm, MLP and skip connections. A head that returns the "
                 "mean of V (uniform) is the null: what errs more would better not look at the keys.",
                 {errors(size, "trained model, causal", "model", true),
                  errors(size, "untrained model, causal", "model:weights=initial", true),
                  errors(size, "trained model, bidirectional", "model", false),
                  errors(size, "gaussian, causal", "gaussian", true)})};
}

struct Setting {
  std::string name, input;
  bool causal;
};
const std::vector<Setting> settings{{"trained model", "model", true},
                                    {"untrained model", "model:weights=initial", true},
                                    {"trained model, bidirectional", "model", false},
                                    {"gaussian layers", "gaussian", true}};

nlohmann::json cell(const Setting& setting, const std::string& method) {
  return {{"method", method}, {"input", setting.input}, {"causal", setting.causal ? 1 : 0}};
}

size_t layers_of(const Setting& setting, RecipeSize size) {
  return setting.input == "gaussian" ? law_layers(size) : model_layers;
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
      const auto where = cell(setting, method);
      region.comparisons.push_back({method, ratio(element(results, where, "output_error", layers, 0),
                                                  element(results, where, "output_error", layers, layers - 1),
                                                  share_of_error_rate(comparisons))});
    }
    regions.push_back(std::move(region));
  }
  return regions;
}

// The error after the last layer, method over other, for pairs of specs.
std::vector<Region> against(const Results& results, const std::vector<std::pair<std::string, std::string>>& pairs) {
  const double rate = share_of_error_rate(settings.size() * pairs.size());
  std::vector<Region> regions;
  for (const Setting& setting : settings)
    for (const auto& [method, other] : pairs)
      regions.push_back({setting.name + ", " + method,
                         {{"", ratio(results.scalar(cell(setting, method), "final_output_error"),
                                     results.scalar(cell(setting, other), "final_output_error"), rate)}}});
  return regions;
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  const Specs random = performers(size);  // orthogonal and iid of few features, then of many
  return {below_where(1, "The error after the first layer is less than after the last", growth(results, size)),
          below_where(1, "Orthogonal features err less than independent ones after all layers",
                      against(results, {{random[0], random[1]}, {random[2], random[3]}})),
          below_where(1, "Performer errs less than the mean of V after all layers",
                      against(results, {{random[0], "uniform"}, {random[2], "uniform"}}))};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
