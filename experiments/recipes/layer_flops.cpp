// From which length attention costs more than the rest of its layer. With h heads of d channels, D = h d, and FLOPs of
//   projections 8 n D^2,  feed-forward part 16 n D^2,  softmax attention 4 n^2 D
// attention with its projections costs the feed-forward part at n = 2 D, and attention all of the rest at n = 6 D: 1536
// and 4608 of a base model (h = 12, d = 64). Linear attention with heads four times as wide costs 4 n (4 d) (4 d + 1) a
// head, softmax's 4 n^2 d at n = 16 d + 4 (the 4 is of the normaliser).
#include <fmt/format.h>

#include "harness/runner/recipe.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;

struct Model {
  std::string name;
  Index heads, d;
  Index width() const { return heads * d; }
};
const std::vector<Model> models{
    {"small (h = 4, d = 64)", 4, 64}, {"base (h = 12, d = 64)", 12, 64}, {"large (h = 16, d = 64)", 16, 64}};
constexpr size_t base = 1;

const Specs drawn{"softmax", "performer", "linear", "local:window=128", "linformer"};

const Description text{.name = "layer-flops",
                       .summary = "From which length attention costs more than the rest of its layer",
                       .formula =
                           "With softmax, attention and its projections cost more than the feed-forward part from "
                           "n = 2 h d on and attention dominates from n = 6 h d on; linear attention of four times the "
                           "width is worth it from n = 16 d on.",
                       .reference = "Su 2021, kexue.fm/archives/8610"};

std::vector<Index> lengths(RecipeSize size) {
  if (size == RecipeSize::smoke) return {256, 1024};
  return {128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768};
}

RunRequest request_of(const Specs& methods, const std::vector<Index>& n, Index d, Index heads) {
  return {.experiment = fmt::format("layer-flops:layer_heads={}", heads),
          .methods = methods,
          .inputs = {"gaussian"},
          .n = n,
          .d = {d},
          .causal = false,
          .precision = Precision::f32};
}

// The heads of the models, and four times as wide.
constexpr Index d = 64, wide = 4 * d, at_16d = 16 * d, at_17d = 17 * d;

std::vector<RunRequest> runs(RecipeSize size) {
  std::vector<RunRequest> all;
  for (const Model& model : models)
    all.push_back(request_of({"softmax"}, {2 * model.width(), 6 * model.width()}, model.d, model.heads));
  all.push_back(request_of(drawn, lengths(size), models[base].d, models[base].heads));
  all.push_back(request_of({"softmax"}, {at_16d, at_17d}, d, 1));
  all.push_back(request_of({"linear"}, {at_16d, at_17d}, wide, 1));
  return all;
}

std::vector<Figure> figures(RecipeSize) {
  const Panel share{.title = "attention over all the rest",
                    .where = {{"experiment", "layer-flops"},
                              {"input", "gaussian"},
                              {"d", models[base].d},
                              {"layer_heads", models[base].heads},
                              {"method", drawn}},
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
  return {figure("layer-flops", text, "What attention costs in a layer",
                 "A base model, 12 heads of 64 channels, feed-forward part four times as wide; bidirectional, by cost "
                 "formulas. What saves attention's FLOPs saves a layer's only where the softmax curve is above 1: at "
                 "n = 512 attention is a ninth of the rest.",
                 {share, with_projections})};
}

std::vector<Verdict> judge(const Results& results, RecipeSize) {
  const auto number = [&](const std::string& method, Index n, Index channels, Index heads, const std::string& metric) {
    return results.scalar({{"method", method}, {"n", n}, {"d", channels}, {"layer_heads", heads}}, metric).at(0);
  };
  std::vector<Comparison> feed_forward, rest;
  for (const Model& model : models) {
    const auto ratio_at = [&](Index n, const std::string& metric) {
      return Comparison{fmt::format("{}, n = {}", model.name, n),
                        certain(number("softmax", n, model.d, model.heads, metric))};
    };
    feed_forward.push_back(ratio_at(2 * model.width(), "with_projections_over_feed_forward"));
    rest.push_back(ratio_at(6 * model.width(), "over_rest"));
  }
  const auto linear_over_softmax = [&](Index n) {
    return number("linear", n, wide, 1, "attention_flops") / number("softmax", n, d, 1, "attention_flops");
  };
  return {
      all_contain(1, 0, "Attention with its projections costs as much as the feed-forward part at n = 2 h d (ratio)",
                  feed_forward),
      all_contain(1, 0, "Attention costs as much as projections and feed-forward part together at n = 6 h d (ratio)",
                  rest),
      all_below(1,
                "Linear attention with heads four times as wide costs fewer FLOPs than softmax from n = 16 d on, and "
                "not before (softmax over linear at 16 d, linear over softmax at 17 d, d = 64)",
                {{"n = 16 d", certain(1 / linear_over_softmax(at_16d))},
                 {"n = 17 d", certain(linear_over_softmax(at_17d))}})};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
