// Linformer's Fig. 1 on the project's own transformer: the normalised cumulative spectrum of softmax attention, layer
// by layer and head by head, and its value at index 128 of 512. The paper has RoBERTa on Wiki103 and IMDB, averaged
// over ten thousand sentences; here it is one text of 512 bytes and a causal model, whose heads are seen as the model
// computes them, without the mask, and before training.
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

struct Seen {
  const char* name;
  bool causal, trained;

  std::string input(const RealHead& head) const { return head.input() + (trained ? "" : ",weights=initial"); }
  std::vector<std::string> inputs() const {
    std::vector<std::string> all;
    for (const RealHead& head : all_heads()) all.push_back(input(head));
    return all;
  }
};
constexpr Seen as_computed{"as the model computes it (causal)", true, true},
    without_mask{"without the mask", false, true}, before_training{"before training (causal)", true, false};
constexpr Seen all_seen[] = {as_computed, without_mask, before_training};

// The heads of the whole model at every size: without one of them the map has a hole.
std::vector<RunRequest> runs(RecipeSize size) {
  std::vector<RunRequest> all;
  for (const Seen& seen : all_seen)
    all.push_back({.experiment = experiment,
                   .methods = {"softmax"},
                   .inputs = seen.inputs(),
                   .n = {length(size)},
                   .causal = seen.causal});
  return all;
}

std::vector<Figure> figures(RecipeSize size) {
  std::vector<Panel> curves, maps;
  const auto add = [&](std::vector<Panel>& panels, Panel panel, const Seen& seen) {
    panel.where = {{"experiment", experiment}, {"of", "attention"}, {"logit_scale", 1},
                   {"method", "softmax"},      {"n", length(size)}, {"causal", seen.causal ? 1 : 0}};
    panel.where["input"] = seen.inputs();
    panel.title = seen.name;
    panels.push_back(panel);
  };
  for (const Seen& seen : all_seen) {
    add(curves,
        {.kind = "profile",
         .x_label = "index k",
         .y = "cumulative_spectrum",
         .y_label = "sum of the first k singular values / all",
         .interval = "median",
         .series = {"layer"}},
        seen);
    add(maps,
        {.kind = "map",
         .x = {"layer"},
         .x_label = "layer",
         .y = "cumulative_at",
         .y_label = "head",
         .y_axis = {"head"},
         .value_label = "share of the first 128 singular values"},
        seen);
  }
  return {
      figure(
          "linformer-fig1", text, "Cumulative spectrum, layer by layer",
          fmt::format("Softmax attention over the first {} bytes of the held-out text. Medians over the three heads of "
                      "a layer; the map has each head.",
                      length(size)),
          curves),
      figure("linformer-fig1-map", text, fmt::format("The share of the first 128 of {} singular values", length(size)),
             fmt::format("Head by head. {:.2f} is a flat spectrum, 1 a matrix of rank 128 or less.",
                         128 / static_cast<double>(length(size))),
             maps)};
}

double share(const Results& results, const RealHead& head, const Seen& seen) {
  return results.scalar({{"input", seen.input(head)}, {"causal", seen.causal ? 1 : 0}}, "cumulative_at").at(0);
}

// Heads of a layer, averaged. One text: numbers without an interval.
double skew(const Results& results, Index layer, const Seen& seen) {
  Moments heads;
  for (const RealHead& head : all_heads())
    if (head.layer == layer) heads.add(share(results, head, seen));
  return heads.mean;
}

std::string skews(const Results& results, const Seen& seen) {
  std::string numbers;
  for (Index layer = 0; layer < layers; ++layer)
    numbers += fmt::format("{}{:.3f}", layer ? ", " : "", skew(results, layer, seen));
  return numbers;
}

Verdict judge_layers(const Results& results, const Seen& seen) {
  std::vector<Region> regions;
  const auto add = [&](Index upper, Index lower) {
    regions.push_back({fmt::format("layer {} over layer {}", upper, lower),
                       {{"", certain(skew(results, lower, seen) / skew(results, upper, seen))}}});
  };
  for (Index layer = 1; layer < layers; ++layer) add(layer, layer - 1);
  add(layers - 1, 0);
  Verdict verdict = below_where(
      1,
      {fmt::format("The spectra of each layer of the byte-level transformer are more skewed than those of the layer "
                   "below, {}",
                   seen.name),
       Verdict::Outcome::ambiguous},
      regions);
  verdict.numbers = "share of the first 128 singular values, layers from 0, means of 3 heads: " + skews(results, seen);
  return verdict;
}

Verdict judge_training(const Results& results) {
  std::vector<Region> regions;
  for (Index layer = 0; layer < layers; ++layer)
    regions.push_back({fmt::format("layer {}", layer),
                       {{"", certain(skew(results, layer, as_computed) / skew(results, layer, before_training))}}});
  Verdict verdict = below_where(
      1, {"Training makes the spectra of a layer less skewed (causal)", Verdict::Outcome::ambiguous}, regions);
  verdict.numbers = fmt::format("share of the first 128 singular values, layers from 0: {} before and {} after",
                                skews(results, before_training), skews(results, as_computed));
  return verdict;
}

Verdict judge_skew(const Results& results, RecipeSize size) {
  Region region{fmt::format("{} heads, with and without the mask", all_heads().size()), {}};
  double least = 1, greatest = 0;
  for (const Seen& seen : {as_computed, without_mask})
    for (const RealHead& head : all_heads()) {
      const double here = share(results, head, seen);
      least = std::min(least, here);
      greatest = std::max(greatest, here);
      region.comparisons.push_back({head.name(), certain(0.9 / here)});
    }
  Verdict verdict = below_where(
      1,
      {fmt::format("The first 128 of {} singular values of a head's attention hold nine tenths of their sum",
                   length(size)),
       Verdict::Outcome::ambiguous},
      {region});
  verdict.numbers = fmt::format("shares from {:.3f} to {:.3f}", least, greatest);
  return verdict;
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  return {judge_skew(results, size), judge_layers(results, as_computed), judge_layers(results, without_mask),
          judge_training(results)};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
