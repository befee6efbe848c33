// Linformer's Fig. 1 on the project's own transformer: the normalised cumulative spectrum of softmax attention, layer
// by layer and head by head, and its value at index 128 of 512. The paper has RoBERTa on Wiki103 and IMDB, averaged
// over ten thousand sentences; here it is one text of 512 bytes and a causal model, whose heads are seen as the model
// computes them and without the mask.
#include <fmt/format.h>

#include "experiments/recipes/real_heads.hpp"
#include "harness/statistics/moments.hpp"

namespace attnbench {
namespace {

constexpr Index layers = 4;
const std::string experiment = "rank:index=128";

Index length(RecipeSize size) { return size == RecipeSize::smoke ? 256 : 512; }

const Description text{.name = "linformer-fig1",
                       .summary = "Cumulative spectra of real heads, layer by layer",
                       .formula =
                           "Self-attention is of low rank: most of the spectrum lies in the first singular values, and "
                           "higher layers are more skewed than lower ones.",
                       .reference = "Wang et al. 2020, arXiv:2006.04768, Fig. 1"};

// The heads of the whole model at every size: without one of them the map has a hole.
std::vector<RunRequest> runs(RecipeSize size) {
  std::vector<RunRequest> both;
  for (const bool causal : {true, false})
    both.push_back({.experiment = experiment,
                    .methods = {"softmax"},
                    .inputs = inputs_of(all_heads()),
                    .n = {length(size)},
                    .causal = causal});
  return both;
}

std::vector<Figure> figures(RecipeSize size) {
  std::vector<Panel> curves, maps;
  const auto add = [&](std::vector<Panel>& panels, Panel panel, bool causal) {
    panel.where = {{"experiment", experiment}, {"of", "attention"}, {"logit_scale", 1},
                   {"method", "softmax"},      {"n", length(size)}, {"causal", causal ? 1 : 0}};
    panel.where["input"] = inputs_of(all_heads());
    panel.title = causal ? "as the model computes it (causal)" : "without the mask";
    panels.push_back(panel);
  };
  for (const bool causal : {true, false}) {
    add(curves,
        {.kind = "profile",
         .x_label = "index k",
         .y = "cumulative_spectrum",
         .y_label = "sum of the first k singular values / all",
         .series = {"layer"}},
        causal);
    add(maps,
        {.kind = "map",
         .x = {"layer"},
         .x_label = "layer",
         .y = "cumulative_at",
         .y_label = "head",
         .y_axis = {"head"},
         .value_label = "share of the first 128 singular values"},
        causal);
  }
  return {
      figure(
          "linformer-fig1", text, "Cumulative spectrum, layer by layer",
          fmt::format("Softmax attention over the first {} bytes of the held-out text. Means over the three heads of "
                      "a layer, with 95 % intervals over heads.",
                      length(size)),
          curves),
      figure("linformer-fig1-map", text, fmt::format("The share of the first 128 of {} singular values", length(size)),
             fmt::format("Head by head. {:.2f} is a flat spectrum, 1 a matrix of rank 128 or less.",
                         128 / static_cast<double>(length(size))),
             maps)};
}

// Heads of a layer, averaged. One text: numbers without an interval.
double skew(const Results& results, Index layer, bool causal) {
  Moments heads;
  for (const RealHead& head : all_heads())
    if (head.layer == layer)
      heads.add(results.scalar({{"input", head.input()}, {"causal", causal ? 1 : 0}}, "cumulative_at").at(0));
  return heads.mean;
}

Verdict judge_layers(const Results& results, bool causal) {
  std::vector<Region> regions;
  std::vector<std::string> shares;
  for (Index layer = 1; layer < layers; ++layer)
    regions.push_back({fmt::format("layer {} over layer {}", layer, layer - 1),
                       {{"", certain(skew(results, layer - 1, causal) / skew(results, layer, causal))}}});
  regions.push_back({fmt::format("layer {} over layer 0", layers - 1),
                     {{"", certain(skew(results, 0, causal) / skew(results, layers - 1, causal))}}});
  Verdict verdict = below_where(1,
                                fmt::format("Each layer of the model is more skewed than the one below it, {}",
                                            causal ? "as the model computes it" : "without the mask"),
                                regions);
  std::string numbers;
  for (Index layer = 0; layer < layers; ++layer)
    numbers += fmt::format("{}{:.3f}", layer ? ", " : "", skew(results, layer, causal));
  verdict.numbers = "share of the first 128 singular values, layers from 0, means of 3 heads: " + numbers;
  return verdict;
}

Verdict judge_skew(const Results& results, RecipeSize size) {
  Region region{"", {}};
  double least = 1, greatest = 0;
  for (const bool causal : {true, false})
    for (const RealHead& head : all_heads()) {
      const double share = results.scalar({{"input", head.input()}, {"causal", causal ? 1 : 0}}, "cumulative_at").at(0);
      least = std::min(least, share);
      greatest = std::max(greatest, share);
      region.comparisons.push_back({head.name(), certain(share)});
    }
  region.name = fmt::format("{} heads, with and without the mask", all_heads().size());
  for (auto& c : region.comparisons) c.estimate = certain(0.9 / c.estimate.value);
  Verdict verdict = below_where(
      1, fmt::format("The first 128 of {} singular values hold nine tenths of their sum", length(size)), {region});
  verdict.numbers = fmt::format("shares from {:.3f} to {:.3f}", least, greatest);
  return verdict;
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  return {judge_skew(results, size), judge_layers(results, true), judge_layers(results, false)};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
