// Where sampling beats selection: keys drawn from the softmax row, and MagicPIG's keys, against the keys with the
// largest logits, over the entropy of heads. methods.md S. Top-k drops the rest of the mass, an error that no draw
// averages out: large where a head attends broadly. Draws have a variance, which is small there.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "experiments/recipes/equal_keys.hpp"
#include "experiments/recipes/real_heads.hpp"
#include "harness/statistics/rank_correlation.hpp"

namespace attnbench::magicpig_against_top_k_recipe {
namespace {

const std::string magicpig = "magicpig:bits=6,tables=32,sinks=4,window=0";
const std::string paper = "Chen et al. 2024, arXiv:2410.16179, abstract";
const std::string error = "relative_output_error";

std::string top_k(Index k) { return fmt::format("top-k:k={}", k); }
std::string oracle(Index s) { return fmt::format("sampled:law=oracle,s={}", s); }

// Spearman's correlation over heads, text by text, of their relative entropy and the logarithm of the ratio of errors.
Samples correlations(const Cells& entropies, const Cells& all, const std::vector<RealHead>& heads, Index k) {
  std::map<Index, std::vector<double>> entropy, ratio;
  for (const RealHead& head : heads) {
    const Samples of_head = entropies.input(head.input()).scalar("relative_entropy");
    const Cells cells = all.input(head.input());
    for (const auto& [text, value] :
         quotients(cells.method(oracle(k)).scalar(error), cells.method(top_k(k)).scalar(error)))
      if (of_head.contains(text)) {
        entropy[text].push_back(of_head.at(text));
        ratio[text].push_back(std::log(value));
      }
  }
  Samples of_texts;
  for (const auto& [text, values] : ratio)
    if (values.size() == heads.size()) of_texts[text] = rank_correlation(entropy.at(text), values);
  return of_texts;
}

Panel panel(const Cells& cells, const std::string& title) {
  return {.title = title,
          .cells = cells,
          .x = {"k", "s"},
          .x_label = "keys of a row: k, or draws s",
          .x_scale = "log2",
          .y = error,
          .y_label = "|A'V - AV| / |AV|  (Frobenius)",
          .y_scale = "log10",
          .interval = "median",
          .references = {magicpig}};
}

void write(Recipe& recipe) {
  const auto sizes = recipe.sized<std::vector<Index>>({4, 16}, {4, 8, 16, 32, 64, 128}, {4, 8, 16, 32, 64, 128, 256});
  const Index k = recipe.sized<Index>(4, 32, 32);
  const Index n = recipe.sized<Index>(64, 512, 1024), replicates = recipe.sized<Index>(2, 18, texts);
  RunRequest request{.experiment = "dropped-keys", .methods = {magicpig}, .n = {n}, .replicates = replicates};
  for (const Index size : sizes) request.methods.insert(request.methods.end(), {top_k(size), oracle(size)});
  RunRequest rows = request;
  rows.experiment = "sparsity:by_row=false,top=1";
  rows.methods = {"softmax"};
  std::vector<RealHead> heads = all_heads();
  const std::vector<RealHead> of_byte_model = heads;
  for (const RealHead& head : pretrained_heads(recipe)) heads.push_back(head);
  const Cells all = run_on(recipe, request, heads), entropies = run_on(recipe, rows, of_byte_model);

  recipe.headline(8, "Is it better to sample keys or to select them?");
  std::vector<Panel> panels;
  for (const RealHead& head : {dense_head, typical_head, concentrated_head})
    panels.push_back(panel(all.input(head.input()), head.name()));
  for (const RealHead& head : pretrained_heads(recipe)) panels.push_back(panel(all.input(head.input()), head.name()));
  recipe.figure("magicpig-against-top-k", "Keys drawn from the softmax row, and the keys with the largest logits",
                fmt::format("Medians with 95 % intervals over texts, or over draws on one text. Three heads of the "
                            "byte-level model, causal, n = {}: broad, typical and concentrated; and captured ones of "
                            "others. Dotted: MagicPIG with 6 bits, 32 tables and 4 sinks, which reads as many keys as "
                            "collide.",
                            n),
                panels);

  const std::string where = heads_in_words(heads, n);
  std::vector<std::string> selections;
  for (const Index size : sizes) selections.push_back(top_k(size));
  const auto ratios = [=, &recipe](const auto& ratio_of) {
    std::vector<Region> regions;
    for (const RealHead& head : heads)
      region(regions, head.part())
          .comparisons.push_back(
              {head.name(), median_of(ratio_of(all.input(head.input())), recipe.error_rate(heads.size()))});
    return regions;
  };
  recipe.judge(
      {.text = "Keys drawn from the softmax row give a smaller error than as many keys of largest logits",
       .source = paper,
       .quotation = "Rather than selecting the keys and values with the highest attention scores, sampling with "
                    "theoretical guarantees can provide a better estimation for attention output.",
       .definition = fmt::format("the relative Frobenius error of the output of sampled:law=oracle,s={} over that of "
                                 "top-k:k={}, text by text or draw by draw. {}",
                                 k, k, where),
       .threshold = "1: equal errors; intervals that hold 1 and lie within a factor of 1.05 of it count as equal",
       .expected = Ruling::open,
       .because = "it depends on the mass that the largest keys leave: selection wins on concentrated heads"},
      [=] {
        return below_where(1, ratios([=](const Cells& head) {
                             return quotients(head.method(oracle(k)).scalar(error),
                                              head.method(top_k(k)).scalar(error));
                           }),
                           {}, 1.05);
      });
  recipe.judge(
      {.text = "MagicPIG errs less than the keys of largest logits, as many as it reads",
       .source = paper,
       .quotation = "Rather than selecting the keys and values with the highest attention scores, sampling with "
                    "theoretical guarantees can provide a better estimation for attention output.",
       .definition = fmt::format("the relative Frobenius error of the output of {} over that of top-k at the same mean "
                                 "number of keys read by a row, by power laws between k = {}. {}",
                                 magicpig, fmt::join(sizes, ", "), where),
       .threshold = "1: equal errors; intervals that hold 1 and lie within a factor of 1.05 of it count as equal",
       .expected = Ruling::open,
       .because = "its keys are drawn by angles, which is a worse law than the softmax row's"},
      [=] {
        return below_where(1, ratios([=](const Cells& head) {
                             const Cells of_method = head.method(magicpig);
                             return quotients(of_method.scalar(error),
                                              at_equal_keys(head, selections, error, of_method.scalar("keys_read")));
                           }),
                           {}, 1.05);
      });
  recipe.judge(
      {.text = "The more broadly a head attends, the better sampled keys do beside the largest ones",
       .source = paper,
       .quotation =
           "However, we show that TopK attention itself suffers from quality degradation in certain downstream "
           "tasks because attention is not always as sparse as expected.",
       .definition = fmt::format("Spearman's correlation over the {} heads of the byte-level model, text by text, of a "
                                 "head's mean relative entropy and the logarithm of the ratio of errors at k = s = {}; "
                                 "n = {}, causal, the median over texts",
                                 of_byte_model.size(), k, n),
       .threshold = "0: no relation",
       .because = "selection errs by the mass that it drops, sampling by the spread of the values over the root of s"},
      [=, &recipe] {
        return all_below(
            0, {{"correlation", median_of(correlations(entropies, all, of_byte_model, k), recipe.error_rate(1))}});
      });
}

const bool registered =
    add(RecipeEntry{.text = {.name = "magicpig-against-top-k",
                             .summary = "Sampled keys against selected ones, over the entropy of heads",
                             .formula = "Where does sampling keys beat selecting the largest?",
                             .reference = "Chen et al. 2024, arXiv:2410.16179"},
                    .write = write});

}  // namespace
}  // namespace attnbench::magicpig_against_top_k_recipe
