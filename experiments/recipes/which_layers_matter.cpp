// In which layers of a trained model attention can be replaced: bits per byte that are lost layer by layer and head by
// head, and whether these losses add up.
#include <fmt/format.h>

#include "experiments/recipes/real_heads.hpp"

namespace attnbench::which_layers_matter_recipe {
namespace {

Index layers() { return all_heads().back().layer + 1; }
std::string place_of(const RealHead& head) { return fmt::format("{}.{}", head.layer, head.head); }

// By the experiment's spec: as numbers, head 10 of a layer would be its head 1. The name alone would stand for all.
Cells with_replaced(const Cells& cells, const Specs& places) {
  if (places == Specs{"all"}) return cells.where({{"replaced", "all"}});
  Specs experiments;
  for (const auto& place : places) experiments.push_back("model-loss:replaced=" + place);
  return cells.where({{"experiment", experiments}});
}

struct Measured {
  Specs methods, by_layer;
  Cells cells;

  Samples excess(const std::string& method, const std::string& replaced) const {
    return with_replaced(cells.method(method), {replaced}).scalar("excess_bits");
  }
};

Measured run(Recipe& recipe) {
  Measured all{.methods = recipe.sized<Specs>({"local:window=16", "uniform"}, {"local:window=16", "linear", "uniform"},
                                              {"local:window=16", "top-k:k=8", "linear", "performer", "uniform"}),
               .by_layer = {},
               .cells = {}};
  for (Index layer = 0; layer < layers(); ++layer) all.by_layer.push_back(std::to_string(layer));
  Specs replaced = all.by_layer;
  replaced.push_back("all");
  for (const RealHead& head : telling_heads(recipe)) replaced.push_back(place_of(head));
  all.cells = recipe.run({.experiment = "model-loss",
                          .methods = all.methods,
                          .inputs = {"model"},
                          .n = {recipe.sized<Index>(64, 256, 1024)},
                          .precision = Precision::f32,
                          .sweep = {{"replaced", replaced}},
                          .replicates = recipe.sized<Index>(2, 20, texts)});
  return all;
}

void draw(Recipe& recipe, const Measured& all) {
  const Panel by_layer{.title = "one layer replaced",
                       .cells = with_replaced(all.cells, all.by_layer),
                       .x = {"replaced"},
                       .x_label = "layer, from 0",
                       .y = "excess_bits",
                       .y_label = "bits per byte above exact attention",
                       .y_scale = "log10",
                       .interval = "median"};
  std::vector<Panel> panels{by_layer};
  if (recipe.size() == RecipeSize::full) {
    Specs places;
    for (const RealHead& head : all_heads()) places.push_back(place_of(head));
    Panel by_head = by_layer;
    by_head.title = "one head replaced";
    by_head.cells = with_replaced(all.cells, places);
    by_head.x_label = "layer.head";
    panels.push_back(by_head);
  }
  const RecipeCell cell = all.cells.all().front();
  recipe.figure("which-layers-matter", "Bits per byte lost, layer by layer",
                fmt::format("The project's byte-level model with a method in place of softmax in one layer or one "
                            "head, n = {}, float, medians over {} texts. A logarithmic axis has no place for a median "
                            "that is not above 0.",
                            cell.asked.problem.shape.nk, cell.replicates),
                panels);
}

void write(Recipe& recipe) {
  const Measured all = run(recipe);
  draw(recipe, all);
  const RecipeCell cell = all.cells.all().front();
  const std::string measured = fmt::format(
      "bits per byte of this project's byte-level model above those of the same model with exact softmax, position by "
      "position, n = {}, float, {} texts that the model was not trained on",
      cell.asked.problem.shape.nk, cell.replicates);
  recipe.judge(
      {.text = "Replacing attention in the last layer of this project's byte-level model loses fewer bits per byte "
               "than replacing it in the first",
       .source = "Wang et al. 2020, arXiv:2006.04768, section 4, nonuniform projected dimension",
       .paraphrase = "attention in higher layers has lower rank, so a smaller projected dimension is enough there",
       .definition = measured + "; the difference of last and first layer, text by text, median over texts; one "
                                "region a method. The source speaks of Linformer, which has no causal form",
       .threshold = "0: both layers lose as much",
       .expected = Ruling::open,
       .because = "the source's models have 12 and 24 layers, and nothing is known of a model with 4"},
      [=, &recipe] {
        std::vector<Region> regions;
        for (const auto& method : all.methods) {
          Samples difference = all.excess(method, all.by_layer.back());
          for (const auto& [text, first] : all.excess(method, all.by_layer.front())) difference[text] -= first;
          regions.push_back({method, {{method, median_of(difference, recipe.error_rate(all.methods.size()))}}});
        }
        return below_where(0, regions);
      });
  recipe.judge(
      {.text =
           "By how many bits per byte the loss of a method in all layers of this project's byte-level model exceeds "
           "the sum of its losses in single layers",
       .definition = measured + "; the loss with all layers replaced minus the sum over layers of the loss with that "
                                "layer alone replaced, text by text, median over texts; one number a method",
       .threshold = "none is claimed: at 0 losses add up, and a plan made layer by layer would lose what it says",
       .expected = Ruling::measured,
       .because = "no source gives the number"},
      [=, &recipe] {
        std::vector<Comparison> differences;
        for (const auto& method : all.methods) {
          Samples difference = all.excess(method, "all");
          for (const auto& layer : all.by_layer)
            for (const auto& [text, loss] : all.excess(method, layer)) difference[text] -= loss;
          differences.push_back({method, median_of(difference, recipe.error_rate(all.methods.size()))});
        }
        return values_of(differences, {0});
      });
}

const bool registered = add(RecipeEntry{
    .text = {.name = "which-layers-matter",
             .summary = "Bits per byte lost by a method in one layer or one head of a trained model",
             .formula = "In which layers can the attention of a trained model be replaced, and do the losses add up?",
             .reference = "Wang et al. 2020, arXiv:2006.04768, section 4"},
    .write = write});

}  // namespace
}  // namespace attnbench::which_layers_matter_recipe
