// How concentrated heads are: the entropy of every row, layer by layer in the byte-level model, and of captured heads.
#include <fmt/format.h>

#include "experiments/recipes/real_heads.hpp"

namespace attnbench::entropy_per_head_recipe {
namespace {

const std::string clark = "Clark et al. 2019, arXiv:1906.04341, section 3.3";
const std::string broad =
    "We find that some attention heads, especially in lower layers, have very broad attention. These "
    "high-entropy attention heads typically spend at most 10% of their attention mass on any single "
    "word.";

std::vector<Panel> panels(const Cells& rows, bool of_entropy) {
  const auto n = static_cast<double>(rows.all().front().asked.problem.shape.nk);
  std::vector<Panel> all;
  for (Index layer = 0; layer < 4; ++layer) {
    Panel panel{.title = fmt::format("layer {}", layer),
                .kind = "histogram",
                .cells = rows.where({{"layer", layer}}),
                .x_label = "relative entropy H_i / log(i + 1)",
                .y = "relative_entropy_rows",
                .y_label = "share of rows",
                .series = {"head"},
                .range = {0, 1},
                .mark = 1,
                .mark_label = "uniform: log(i + 1)"};
    if (!of_entropy) {
      panel.x_label = "sum_j A_ij |i - j|";
      panel.x_scale = "log2";
      panel.y = "attention_distance_rows";
      panel.range = {0.0625, n};
      panel.mark = (n - 1) / 4;
      panel.mark_label = "uniform, mean";
    }
    all.push_back(panel);
  }
  return all;
}

void draw(Recipe& recipe, const Cells& rows) {
  const std::string how = fmt::format("All {} rows of each head of the project's byte-level model, causal, one text. ",
                                      rows.all().front().asked.problem.shape.nk);
  recipe.figure("entropy-per-head", "Entropy of each row, per layer and head",
                how +
                    "Row i sees i + 1 keys, so its entropy is shown over its bound log(i + 1), which the mean of V "
                    "reaches; row 0, which sees one key, counts as 1.",
                panels(rows, true));
  recipe.figure(
      "distance-per-head", "How far each row looks, per layer and head",
      how + "The mean of V looks i / 2 tokens back, (n - 1) / 4 in the mean over rows. Row 0 has no distance.",
      panels(rows, false));
}

// All heads of the byte-level model, and captured ones of others.
std::vector<RealHead> heads_of_models(const Recipe& recipe) {
  std::vector<RealHead> heads = all_heads();
  for (const RealHead& head : pretrained_heads(recipe)) heads.push_back(head);
  return heads;
}

Index tokens_of_byte_model(const Cells& all) {
  return all.all().front().asked.problem.shape.nk;
}  // of the byte-level model

void judge_broad(Recipe& recipe, const Cells& all) {
  const auto heads = heads_of_models(recipe);
  const double rate = recipe.error_rate(heads.size());
  recipe.judge(
      {.text = "Some heads of " + three_models +
               " attend broadly, as some of BERT's do: on average they spend at most 10 % of a row's attention on any "
               "single token",
       .source = clark,
       .quotation = broad,
       .definition = "the largest weight of a row, mean over all rows, those that see fewer than 10 keys included. A "
                     "model holds when one of its heads, on one text, lies below the threshold. " +
                     heads_in_words(heads, tokens_of_byte_model(all)) +
                     ". The source looked at BERT, which is bidirectional as MiniLM is, and at all of its heads",
       .threshold = "0.1, the source's",
       .expected = Ruling::open,
       .because = "other models: bytes, sentences and speech"},
      [=] {
        std::vector<Region> regions;
        for (const RealHead& head : heads) {
          Region& of_model = region(regions, head.part());
          of_model.rule = Region::Rule::some;
          of_model.comparisons.push_back({head.name(), median_of(all.input(head.input()).scalar("top_mass"), rate)});
        }
        return below_where(0.1, regions);
      });
}

// The mean over heads, for each text.
Samples mean_entropy(const Cells& all, Index first_layer, Index last_layer) {
  Samples sum;
  double count = 0;
  for (const RealHead& head : all_heads()) {
    if (head.layer < first_layer || head.layer > last_layer) continue;
    for (const auto& [text, entropy] : all.input(head.input()).scalar("relative_entropy")) sum[text] += entropy;
    ++count;
  }
  for (auto& [text, value] : sum) value /= count;
  return sum;
}

void judge_layers(Recipe& recipe, const Cells& all) {
  const double rate = recipe.error_rate(1);
  recipe.judge(
      {.text = "In this project's byte-level model, attention is broader in the lower two layers than in the upper two",
       .source = clark,
       .quotation = broad,
       .definition = "the relative entropy of a row is its entropy over the log of the number of keys that it sees, 1 "
                     "for a row that sees one key; its mean over rows and over the six heads of layers 0 and 1, over "
                     "the same of layers 2 and 3, text by text; " +
                     fmt::format("n = {}, causal, medians over {} texts. The source looked at BERT",
                                 tokens_of_byte_model(all), all.all().front().replicates),
       .threshold = "1: equally broad",
       .expected = Ruling::open,
       .because = "another model: the source has 12 layers"},
      [=] {
        return all_above(
            1, {{"lower over upper layers", median_ratio(mean_entropy(all, 0, 1), mean_entropy(all, 2, 3), rate)}});
      });
}

void judge_entropy(Recipe& recipe, const Cells& all) {
  const auto heads = heads_of_models(recipe);
  const double rate = recipe.error_rate(heads.size());
  recipe.judge({.text = "How large a share of the entropy of average pooling the attention rows of heads of " +
                        three_models + " have",
                .source = clark,
                .paraphrase = "entropies differ from head to head: some attend broadly and others to few tokens",
                .definition = "the entropy of a row over the log of the number of keys that it sees, which average "
                              "pooling has; 1 for a row that sees one key; mean over rows. " +
                              heads_in_words(heads, tokens_of_byte_model(all)),
                .threshold = "the source gives none: 0.25, 0.5 and 0.75 are there for the reader",
                .expected = Ruling::measured,
                .because = "heads differ"},
               [=] {
                 std::vector<Comparison> shares;
                 for (const RealHead& head : heads)
                   shares.push_back({head.name(), median_of(all.input(head.input()).scalar("relative_entropy"), rate)});
                 return values_of(shares, {0.25, 0.5, 0.75});
               });
}

void write(Recipe& recipe) {
  RunRequest request{.experiment = "sparsity:top=1",
                     .methods = {"softmax"},
                     .inputs = inputs_of(all_heads()),
                     .n = {recipe.sized<Index>(64, 512, 1024)}};
  const Cells rows = recipe.run(request);
  request.experiment = "sparsity:by_row=false,top=1";
  request.n = {recipe.sized<Index>(64, 256, 1024)};
  request.replicates = recipe.sized<Index>(2, 18, texts);
  const Cells all = run_on(recipe, request, heads_of_models(recipe));
  draw(recipe, rows);
  judge_broad(recipe, all);
  judge_layers(recipe, all);
  judge_entropy(recipe, all);
}

const bool registered =
    add(RecipeEntry{.text = {.name = "entropy-per-head",
                             .summary = "Entropy of the attention rows, per layer and head",
                             .formula = "Do heads differ in kind, some near average pooling and some on few keys?",
                             .reference = "Clark et al. 2019, arXiv:1906.04341; Zhai et al. 2023, arXiv:2303.06296"},
                    .write = write});

}  // namespace
}  // namespace attnbench::entropy_per_head_recipe
