// How concentrated each head of the real model is: the entropy of every row, layer by layer.
#include <fmt/format.h>

#include "harness/runner/recipe.hpp"

namespace attnbench {
namespace {

constexpr int layers = 4, heads = 3;  // of the byte-level transformer

const Description text{.name = "entropy-per-head",
                       .summary = "Entropy of the attention rows, per layer and head of the real model",
                       .formula = "Heads differ in kind: some are near average pooling, some look at few keys.",
                       .reference = "Zhai et al. 2023, arXiv:2303.06296, for entropy per layer as a quantity to watch"};

std::vector<RunRequest> runs(RecipeSize size) {
  RunRequest request{.experiment = "sparsity",
                     .methods = {"softmax"},
                     .inputs = {},
                     .n = {size == RecipeSize::smoke ? 64 : 1024},
                     .replicates = 1};
  for (int layer = 0; layer < layers; ++layer)
    for (int head = 0; head < heads; ++head)
      request.inputs.push_back(fmt::format("model:layer={},head={}", layer, head));
  return {request};
}

std::vector<Figure> figures(RecipeSize size) {
  const Index n = runs(size).front().n.front();
  std::vector<Panel> entropies, distances;
  for (int layer = 0; layer < layers; ++layer) {
    Panel panel{.title = fmt::format("layer {}", layer),
                .kind = "histogram",
                .where = {{"experiment", "sparsity"}, {"method", "softmax"}, {"layer", layer}, {"n", n}, {"causal", 1}},
                .x_label = "relative entropy H_i / log(i + 1)",
                .y = "relative_entropy_rows",
                .y_label = "share of rows",
                .series = {"head"},
                .range = {0, 1},
                .mark = 1,
                .mark_label = "uniform: log(i + 1)"};
    entropies.push_back(panel);
    panel.x_label = "sum_j A_ij |i - j|";
    panel.x_scale = "log2";
    panel.y = "attention_distance_rows";
    panel.range = {0.0625, static_cast<double>(n)};
    panel.mark = static_cast<double>(n - 1) / 4;
    panel.mark_label = "uniform, mean";
    distances.push_back(panel);
  }
  const std::string how = fmt::format("All {} rows of each head, causal, on the held-out text. ", n);
  return {
      figure("entropy-per-head", text, "Entropy of each row, per layer and head",
             how + "Row i sees i + 1 keys, so its entropy is shown over its bound log(i + 1), which the mean of V "
                   "reaches; row 0, which sees one key, counts as 1.",
             entropies),
      figure("distance-per-head", text, "How far each row looks, per layer and head",
             how + "The mean of V looks i / 2 tokens back, (n - 1) / 4 in the mean over rows. Row 0 has no distance.",
             distances)};
}

std::vector<Verdict> judge(const Results& results, RecipeSize) {
  std::vector<Region> regions;
  for (int layer = 0; layer < layers; ++layer)
    for (int head = 0; head < heads; ++head) {
      Region region{fmt::format("layer {}, head {}", layer, head), {}};
      // Nothing is drawn: one model and one text.
      const nlohmann::json where{{"input", fmt::format("model:layer={},head={}", layer, head)}};
      for (const auto& [replicate, entropy] : results.scalar(where, "relative_entropy"))
        region.comparisons.push_back({"", certain(entropy)});
      regions.push_back(region);
    }
  Verdict verdict =
      below_where(0.5,
                  {"The rows of an attention head have less than half of the entropy of average pooling, on average",
                   Verdict::Outcome::conditional,
                   "Clark et al. 2019, arXiv:1906.04341, section 3.3: some heads attend broadly, others to few tokens"},
                  regions);
  verdict.numbers = "entropy over that of average pooling, " + verdict.numbers;
  return {verdict};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
