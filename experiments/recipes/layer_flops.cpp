// From which length attention costs more than the rest of its layer. With h heads of d channels, D = h d, and FLOPs of
//   projections 8 n D^2,  feed-forward part 16 n D^2,  softmax attention 4 n^2 D
// attention with its projections costs the feed-forward part at n = 2 D, and attention all of the rest at n = 6 D: 1536
// and 4608 of a base model (h = 12, d = 64). Linear attention with heads four times as wide costs 4 n (4 d) (4 d + 1) a
// head, softmax's 4 n^2 d at n = 16 d + 4 (the 4 is of the normaliser).
#include <fmt/format.h>

#include <cmath>

#include "harness/runner/recipe.hpp"

namespace attnbench::layer_flops_recipe {
namespace {

const std::string source = "Su 2021, kexue.fm/archives/8610, ";

Cells count(Recipe& recipe, const std::vector<std::string>& methods, const std::vector<Index>& n, Index d,
            Index heads) {
  return recipe.run({.experiment = fmt::format("layer-flops:layer_heads={}", heads),
                     .methods = methods,
                     .inputs = {"gaussian"},
                     .n = n,
                     .d = {d},
                     .causal = false,
                     .precision = Precision::f32});
}

void draw(Recipe& recipe) {
  const Panel share{
      .title = "attention over all the rest",
      .cells = count(
          recipe, {"softmax", "performer", "linear", "local:window=128", "linformer", "uniform"},
          recipe.sized<std::vector<Index>>({256, 1024}, {128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768}), 64, 12),
      .x = {"n"},
      .x_label = "sequence length n",
      .x_scale = "log2",
      .y = "over_rest",
      .y_label = "FLOPs of attention / of the rest",
      .y_scale = "log10"};
  Panel with_projections = share;
  with_projections.title = "attention and projections over the feed-forward part";
  with_projections.y = "with_projections_over_feed_forward";
  with_projections.y_label = "FLOPs / those of the feed-forward part";
  recipe.figure(
      "layer-flops", "FLOPs of attention in a layer",
      "A base model, 12 heads of 64 channels, feed-forward part four times as wide; bidirectional. Computed "
      "from cost formulas: nothing is measured. An approximation saves a layer's FLOPs only where the softmax "
      "curve is above 1: at n = 512 attention is a ninth of the rest.",
      {share, with_projections});
}

void judge_shares(Recipe& recipe) {
  struct Model {
    std::string name;
    Index width;
    Cells cells;
  };
  std::vector<Model> models;
  for (const auto& [name, heads] :
       {std::pair<std::string, Index>{"small, h = 4", 4}, {"base, h = 12", 12}, {"large, h = 16", 16}}) {
    const Index width = 64 * heads;
    models.push_back({name, width, count(recipe, {"softmax"}, {2 * width, 6 * width}, 64, heads)});
  }
  recipe.judge(
      {.text = "By FLOPs, softmax attention with its projections costs as much as the feed-forward part at n = 2 h d, "
               "and attention alone as much as projections and feed-forward part together at n = 6 h d",
       .source = source + "section on the amount of computation (评估计算量)",
       .quotation =
           "然而二次项占主导的条件是 $2n^2 hd > 12nh^2 d^2 \\Leftrightarrow n > 6hd$。对于base版来说，这意味着$n > "
           "4608$！"
           " (But the condition for the quadratic term to dominate is n > 6hd. For the base version this means "
           "n > 4608!)",
       .paraphrase = "likewise attention with its projections costs more than the feed-forward part for n > 2 h "
                     "d, 1536 for the base version",
       .definition =
           "FLOPs by formulas, of a layer of h heads of d channels with a feed-forward part four times as wide, no "
           "mask: how far from 1 are attention with projections over feed-forward part at n = 2 h d, and attention "
           "over projections with feed-forward part at n = 6 h d; d = 64, h = 4, 12 and 16. An addition counts as a "
           "multiplication does, exponentials do not count; the source counts multiplications",
       .threshold = "1e-12: an identity, to rounding",
       .because = "4 n h^2 d^2 + 2 n^2 h d = 8 n h^2 d^2 at n = 2 h d, and 2 n^2 h d = 12 n h^2 d^2 at n = 6 h "
                  "d; this tests that the cost formulas count as the source does"},
      [=] {
        std::vector<Bounded> all;
        const auto off = [&](const Model& model, Index n, const std::string& metric) {
          const double ratio = model.cells.n(n).scalar(metric).at(0);
          all.push_back({fmt::format("{}, n = {}", model.name, n), std::abs(ratio - 1), 1e-12});
        };
        for (const Model& model : models) {
          off(model, 2 * model.width, "with_projections_over_feed_forward");
          off(model, 6 * model.width, "over_rest");
        }
        return all_at_most(all);
      });
}

void judge_wide_heads(Recipe& recipe) {
  struct Heads {
    Index d;
    Cells exact, wide;
  };
  std::vector<Heads> all;
  for (const Index d : {32, 64, 128})
    all.push_back({d, count(recipe, {"softmax"}, {16 * d}, d, 1), count(recipe, {"linear"}, {16 * d}, 4 * d, 1)});
  recipe.judge(
      {.text = "Linear attention with heads four times as wide takes as many FLOPs as softmax attention at n = 16 d, "
               "to within 1 / (4 d) of that length",
       .source = source + "section on the meaning of linear (“线性”含义)",
       .quotation = "如果要保留大致相同的效果，那么线性Attention要用更大的$d$（一般是原来的4倍左右）。这样一来，"
                    "线性Attention的计算量应该是$2n(4d)^2$，如果线性Attention要比标准Attention快，那么就要$n > 16d$ "
                    "(To keep about the same quality linear attention must use a larger d, in general about 4 "
                    "times the original. Then the computation of linear attention should be 2n(4d)^2, and if "
                    "linear attention is to be faster than standard attention, then n > 16d)",
       .definition =
           "the n at which the FLOPs of linear attention with d and dv four times as large equal those of softmax "
           "attention, over 16 d: how far it is from 1, to either side; by formulas, in which feature maps and "
           "exponentials do not count, one head, d = dv = 32, 64 and 128 of softmax, no mask",
       .threshold = "1 / (4 d): the source leaves the normaliser out, which is one more channel beside 4 d",
       .because = "4 n (4 d) (4 d + 1) = 4 n^2 d at n = 16 d + 4"},
      [=] {
        // One side's FLOPs are proportional to n, the other's to n^2.
        std::vector<Bounded> distances;
        for (const auto& [d, exact, wide] : all) {
          const double over_16d = wide.scalar("attention_flops").at(0) / exact.scalar("attention_flops").at(0);
          distances.push_back({fmt::format("break-even at {:g} times 16 d, d = {}", over_16d, d),
                               std::abs(over_16d - 1), 1 / (4 * static_cast<double>(d))});
        }
        return all_at_most(distances);
      });
}

void write(Recipe& recipe) {
  draw(recipe);
  judge_shares(recipe);
  judge_wide_heads(recipe);
}

const bool registered =
    add(RecipeEntry{.text = {.name = "layer-flops",
                             .summary = "From which length attention costs more than the rest of its layer",
                             .formula = "From which length does attention cost more FLOPs than the rest of its layer, "
                                        "and linear attention of four times the width fewer than softmax?",
                             .reference = "Su 2021, kexue.fm/archives/8610"},
                    .write = write});

}  // namespace
}  // namespace attnbench::layer_flops_recipe
