// Linformer's Fig. 1 on the project's own transformer: the normalised cumulative spectrum of softmax attention, layer
// by layer and head by head, and its value at index 128 of 512. The paper uses RoBERTa on Wiki103 and IMDB, averaged
// over ten thousand sentences; here a causal model reads 32 texts of 512 bytes, and its heads are measured as computed,
// without the mask, and before training. Captured heads of two pretrained encoders, which have no mask, are measured as
// well. The recipe also judges Theorem 2: a fixed budget at any length.
#include <fmt/format.h>

#include "experiments/recipes/real_heads.hpp"

namespace attnbench::linformer_fig1_recipe {
namespace {

constexpr Index layers = 4, heads_of_a_layer = 3;
const std::string paper = "Wang et al. 2020, arXiv:2006.04768";

struct Seen {
  std::string name;
  bool causal, trained;
  std::string input(const RealHead& head) const { return head.input() + (trained ? "" : ",weights=initial"); }
};
const std::vector<Seen> all_seen{{"as the model computes it (causal)", true, true},
                                 {"without the mask", false, true},
                                 {"before training (causal)", true, false}};

// For each text, the mean over the heads of a layer.
Samples skew(const Cells& seen_cells, const Seen& seen, Index layer) {
  Samples sum;
  for (const RealHead& head : all_heads()) {
    if (head.layer != layer) continue;
    for (const auto& [text, share] : seen_cells.input(seen.input(head)).scalar("cumulative_at"))
      sum[text] += share / static_cast<double>(heads_of_a_layer);
  }
  return sum;
}

void draw(Recipe& recipe, const std::vector<Cells>& cells, Index n) {
  std::vector<Panel> curves, maps;
  for (size_t i = 0; i < all_seen.size(); ++i) {
    curves.push_back({.title = all_seen[i].name,
                      .kind = "profile",
                      .cells = cells[i],
                      .x_label = "index k",
                      .y = "cumulative_spectrum",
                      .y_label = "sum of the first k singular values / all",
                      .interval = "median",
                      .series = {"layer"}});
    maps.push_back({.title = all_seen[i].name,
                    .kind = "map",
                    .cells = cells[i],
                    .x = {"layer"},
                    .x_label = "layer",
                    .y = "cumulative_at",
                    .y_label = "head",
                    .y_axis = {"head"},
                    .value_label = "share of the first 128 singular values"});
  }
  recipe.figure("linformer-fig1", "Cumulative spectrum, layer by layer",
                fmt::format("Softmax attention over the first {} bytes of held-out texts. Medians over the three heads "
                            "of a layer and over texts; the map has each head.",
                            n),
                curves);
  recipe.figure(
      "linformer-fig1-map", fmt::format("The share of the first 128 of {} singular values", n),
      fmt::format("Head by head, means over texts. {:.2f} is a flat spectrum, 1 a matrix of rank 128 or less.",
                  128 / static_cast<double>(n)),
      maps);
}

void state_spectra(Recipe& recipe) {
  const Index n = recipe.sized<Index>(256, 256, 512), read = recipe.sized<Index>(1, 20, texts);
  std::vector<Cells> cells;
  for (const Seen& seen : all_seen) {
    RunRequest request{.experiment = "rank:index=128",
                       .methods = {"softmax"},
                       .inputs = {},
                       .n = {n},
                       .causal = seen.causal,
                       .replicates = read};
    for (const RealHead& head : all_heads()) request.inputs.push_back(seen.input(head));
    cells.push_back(recipe.run(request));
  }
  const std::vector<RealHead> encoders = pretrained_heads(recipe);
  const Cells on_encoders =
      run_on(recipe, {.experiment = "rank:index=128", .methods = {"softmax"}, .n = {n}, .replicates = 1}, encoders);
  draw(recipe, cells, n);

  const std::string share = fmt::format(
      "the share that the largest 128 of {} singular values have of the sum of all (of the values, not of their "
      "squares)",
      n);
  const std::string measured =
      share + fmt::format(
                  ", softmax attention of heads of this project's byte-level model over the first {} bytes of "
                  "{} texts",
                  n, read);
  recipe.judge(
      {.text = fmt::format("How large a share of the sum of the {} singular values of attention the largest "
                           "128 hold, on heads of {}",
                           n, three_models),
       .source = paper + ", section 3, Fig. 1",
       .paraphrase = "the spectrum is long-tailed: most of a matrix P can be recovered from the first few "
                     "largest singular values",
       .definition = measured + ", each head with its causal mask and without, medians over texts; and of heads of the "
                                "two encoders, which have no mask, on one text each. The source's models are RoBERTas "
                                "without a mask, n = 512",
       .threshold = fmt::format("none in the source (\"most\", \"first few\"): 0.5, 0.75 and 0.9 are there to "
                                "be read off; a flat spectrum has {:g}",
                                128 / static_cast<double>(n)),
       .expected = Ruling::measured,
       .because = "the source gives no number"},
      [=, &recipe] {
        std::vector<Comparison> shares;
        for (size_t i = 0; i < 2; ++i)
          for (const RealHead& head : all_heads())
            shares.push_back({fmt::format("{}, {}", head.name(), all_seen[i].name),
                              median_of(cells[i].input(all_seen[i].input(head)).scalar("cumulative_at"),
                                        recipe.error_rate(2 * all_heads().size()))});
        for (const RealHead& head : encoders)
          shares.push_back({head.name(), certain(on_encoders.input(head.input()).scalar("cumulative_at").at(0))});
        return values_of(shares, {0.5, 0.75, 0.9});
      });
  recipe.judge(
      {.text = "In this project's byte-level model of 4 layers the spectrum of attention is more skewed in the last "
               "layer than in the first",
       .source = paper + ", section 3, Fig. 1 (right)",
       .quotation = "We observe that the spectrum distribution in higher layers is more skewed than in lower "
                    "layers, meaning that, in higher layers, more information is concentrated in the largest "
                    "singular values and the rank of P is lower.",
       .definition = measured +
                     ": the first layer's mean over its three heads, over that of the last layer, text by text, the "
                     "median over texts; below 1 where the last layer is more skewed. With the causal mask and without",
       .threshold =
           "1: equal shares. The source's models have 12 and 24 layers and no mask, this one 4 and a causal mask",
       .expected = Ruling::open,
       .because = "nothing is known of a model with 4 layers"},
      [=, &recipe] {
        std::vector<Region> regions;
        for (size_t i = 0; i < 2; ++i)
          regions.push_back({all_seen[i].name,
                             {{"", median_ratio(skew(cells[i], all_seen[i], 0), skew(cells[i], all_seen[i], layers - 1),
                                                recipe.error_rate(2))}}});
        return below_where(1, regions);
      });
  recipe.judge(
      {.text = "Training makes the spectra of attention in a layer of this project's byte-level model less skewed",
       .definition =
           measured +
           ", causal: a layer's mean over its three heads after training, over that of the model before training, text "
           "by text, the median over texts; below 1 where training makes the spectra less skewed",
       .threshold = "1: equal shares",
       .expected = Ruling::open,
       .because = "nothing is known beforehand"},
      [=, &recipe] {
        std::vector<Region> regions;
        for (Index layer = 0; layer < layers; ++layer)
          regions.push_back({fmt::format("layer {}", layer),
                             {{"", median_ratio(skew(cells[0], all_seen[0], layer), skew(cells[2], all_seen[2], layer),
                                                recipe.error_rate(layers))}}});
        return below_where(1, regions);
      });
}

void state_theorem_2(Recipe& recipe) {
  const auto lengths = recipe.sized<std::vector<Index>>({64, 128}, {512, 1024, 2048}, {1024, 2048, 4096, 8192, 16384});
  const Cells all = recipe.run({.experiment = "attention-error:matrix=false",
                                .methods = {"linformer:r=256", "uniform"},
                                .inputs = {"gaussian:scale=0.5"},
                                .n = lengths,
                                .causal = false,
                                .replicates = recipe.sized<Index>(2, 16, 32)});
  recipe.figure("linformer-theorem-2", "Linformer's error at a fixed budget",
                "Linformer with 256 random projections, normal queries and keys of scale 0.5, d = 64, no mask; medians "
                "with 95 % intervals over inputs and draws. The theorem says that some projections of a size that does "
                "not depend on n keep the error bounded; these are the ones that its proof begins with.",
                {{.title = "normal inputs, scale 0.5",
                  .cells = all,
                  .x = {"n"},
                  .x_label = "sequence length n",
                  .x_scale = "log2",
                  .y = "relative_output_error",
                  .y_label = "|A'V - AV| / |AV|  (Frobenius)",
                  .y_scale = "log10",
                  .interval = "median",
                  .references = {"uniform"}}});
  recipe.judge(
      {.text = fmt::format("By what factor the relative error of Linformer's output with 256 random projections grows "
                           "from n = {} to n = {}",
                           lengths.front(), lengths.back()),
       .source = paper + ", section 4, Theorem 2 and the sentence before it",
       .quotation = "The following theorem states that, when k = O(d/ε^2) (independent of n), one can "
                    "approximate P·VW^V_i using linear self-attention (7) with ε error.",
       .definition = fmt::format("|A'V - AV| / |AV| (Frobenius) at n = {} over the same at n = {}, 256 projections "
                                 "with entries N(0, 1/256), d = 64, no mask, Q and K with entries of standard "
                                 "deviation 0.5 (logits are q.k / sqrt(d)); the median over {} inputs and draws",
                                 lengths.back(), lengths.front(), recipe.sized<Index>(2, 16, 32)),
       .threshold = "none: the theorem says that projections exist and bounds the error by |softmax(w)| |V|, not "
                    "by the output; random ones are its proof's first step. A factor of 1 is an error that "
                    "does not depend on n",
       .expected = Ruling::measured,
       .because = "the theorem gives no law for these projections"},
      [=, &recipe] {
        const Cells cells = all.method("linformer:r=256");
        const auto at = [&](Index n) { return cells.n(n).scalar("relative_output_error"); };
        return values_of({{"error at the longest over that at the shortest",
                           median_ratio(at(lengths.back()), at(lengths.front()), recipe.error_rate(1))}});
      });
}

void write(Recipe& recipe) {
  state_spectra(recipe);
  state_theorem_2(recipe);
}

const bool registered = add(RecipeEntry{
    .text = {.name = "linformer-fig1",
             .summary = "Cumulative spectra of attention layer by layer, and a fixed budget at any length",
             .formula =
                 "Is attention of low rank, more so in higher layers, and is a fixed budget enough at any length?",
             .reference = "Wang et al. 2020, arXiv:2006.04768, Fig. 1 and Theorem 2"},
    .write = write});

}  // namespace
}  // namespace attnbench::linformer_fig1_recipe
