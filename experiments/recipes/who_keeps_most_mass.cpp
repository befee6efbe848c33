// Which score of a key keeps most of the softmax weight when a cache keeps so many keys for all rows; whether the
// answer is the same on all heads and at all lengths; and how much more methods keep that choose as many keys for each
// row.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/recipes/field.hpp"
#include "experiments/recipes/real_heads.hpp"
#include "harness/core/key_score.hpp"
#include "harness/statistics/rank_correlation.hpp"

namespace attnbench::who_keeps_most_mass_recipe {
namespace {

const std::string kept = "mass_recall";
const std::string null = "random";

std::vector<std::string> scores() {
  std::vector<std::string> all = catalogue("key-scores").names();
  std::erase(all, null);
  return all;
}

// Methods that choose as many keys for each row, and read all keys, or a score of each, to do so.
std::vector<std::string> choosers(Index keys) {
  const Index pages = std::max<Index>(1, keys / 16), blocks = std::max<Index>(1, keys / 64);
  return {fmt::format("quest:page=16,keep={}", pages), fmt::format("moba:block=64,keep={}", blocks),
          fmt::format("loki:k={}", keys), fmt::format("sparq:k={},local=0,mean=false", keys)};
}

std::string evict(const std::string& score, Index keys) { return fmt::format("evict:score={},keep={}", score, keys); }

// For each replicate, the rank correlation of the scores' order on a head with their order by the mean over all heads.
Samples agreement(const Cells& cells, const std::vector<RealHead>& heads, const RealHead& head, Index keys) {
  const auto of = [&](const RealHead& one, const std::string& score) {
    return cells.input(one.input()).method(evict(score, keys)).scalar(kept);
  };
  std::map<Index, std::vector<double>> here, everywhere;
  for (const auto& score : scores()) {
    std::map<Index, double> sums;
    for (const RealHead& one : heads)
      for (const auto& [replicate, value] : of(one, score)) sums[replicate] += value;
    for (const auto& [replicate, value] : of(head, score)) {
      here[replicate].push_back(value);
      everywhere[replicate].push_back(sums[replicate]);
    }
  }
  Samples all;
  for (const auto& [replicate, values] : here)
    if (const double found = rank_correlation(values, everywhere[replicate]); std::isfinite(found))
      all[replicate] = found;
  return all;
}

// A prompt of half of the tokens, of which later rows see an eighth.
std::string evict_prompt(const std::string& score, Index n, const std::string& allocation = "uniform") {
  // SnapKV keeps the keys of its last queries first: 64 of them would be all that it keeps.
  return fmt::format("evict:score={},{}keep={},prompt={},allocation={}", score, score == "snapkv" ? "rows=16," : "",
                     n / 16, n / 2, allocation);
}
// Scores whose numbers can be compared over heads: weights of softmax, and norms.
const std::vector<std::string> shared_scores{"snapkv", "tova", "accumulated", "knorm"};

// A law whose neighbours are alike, as tokens of a text: the models have no longer texts.
const std::string long_input = "ar1";

// For each replicate, the rank correlation of the scores' order at one length with their order at another.
Samples agreement_of_lengths(const Cells& cells, Index one, Index other) {
  std::map<Index, std::vector<double>> of_one, of_other;
  for (const auto& score : scores())
    for (const auto& [n, values] : {std::pair{one, &of_one}, {other, &of_other}})
      for (const auto& [replicate, value] : cells.method(evict(score, n / 8)).n(n).scalar(kept))
        (*values)[replicate].push_back(value);
  Samples all;
  for (const auto& [replicate, values] : of_one)
    if (const double found = rank_correlation(values, of_other[replicate]); std::isfinite(found))
      all[replicate] = found;
  return all;
}

void write(Recipe& recipe) {
  const Index n = recipe.sized<Index>(64, 512, 1024), keys = n / 8;
  const auto heads = telling_heads_of_models(recipe);
  Cells cells;
  for (const auto& of_model : by_model(heads)) {
    RunRequest request{.experiment = "dropped-keys",
                       .methods = {evict(null, keys)},
                       .n = {n},
                       .replicates = recipe.sized<Index>(2, 24, texts)};
    for (const auto& score : scores()) request.methods.push_back(evict(score, keys));
    for (const auto& method : choosers(keys)) request.methods.push_back(method);
    cells = cells + run_on(recipe, request, of_model);
  }
  const Index draws = recipe.sized<Index>(2, 16);
  const auto lengths = recipe.sized<std::vector<Index>>({32, 64}, {256, 1024}, {1024, 4096, 16384});
  Cells at_lengths;
  for (const Index length : lengths) {
    RunRequest request{.experiment = "dropped-keys",
                       .methods = {evict(null, length / 8)},
                       .inputs = {long_input},
                       .n = {length},
                       .causal = true,
                       .replicates = draws};
    for (const auto& score : scores()) request.methods.push_back(evict(score, length / 8));
    for (const auto& method : choosers(length / 8)) request.methods.push_back(method);
    at_lengths = at_lengths + recipe.run(request);
  }
  RunRequest replaced{.experiment = "model-loss",
                      .methods = {evict_prompt(null, n)},
                      .inputs = {"model"},
                      .n = {n},
                      .precision = Precision::f32,
                      .replicates = recipe.sized<Index>(2, 24, texts)};
  for (const auto& score : scores()) replaced.methods.push_back(evict_prompt(score, n));
  for (const auto& score : shared_scores)
    for (const char* allocation : {"adaptive", "pyramid"})
      replaced.methods.push_back(evict_prompt(score, n, allocation));
  const Cells losses = recipe.run(replaced);
  std::vector<Panel> panels;
  for (const auto& of_model : by_model(heads)) {
    Cells here;
    for (const auto& input : inputs_of(of_model)) here = here + cells.input(input);
    panels.push_back(
        table_column(here, kept, fmt::format("weight kept, of what as many keys can have, {}", of_model.front().part()),
                     "median", "linear"));
  }
  recipe.figure(
      "who-keeps-most-mass", "Softmax weight that is kept by the score of a key",
      fmt::format("Eviction: one set of {} keys for all rows, and each row's own. The others choose about as many for "
                  "each row. 1 is the weight of the heaviest keys of each row. Medians over heads and texts. {}.",
                  keys, heads_in_words(heads, n)),
      panels);
  std::vector<Panel> of_lengths;
  for (const Index length : lengths)
    of_lengths.push_back(table_column(at_lengths.n(length), kept,
                                      fmt::format("weight kept, of what as many keys can have, n = {}", length),
                                      "median", "linear"));
  recipe.figure(
      "who-keeps-most-mass-lengths", "Softmax weight that is kept by the score of a key, at several lengths",
      fmt::format("An eighth of the keys, of normal tokens that resemble their neighbours ({}), causal; medians "
                  "over {} draws.",
                  long_input, draws),
      of_lengths);
  recipe.figure(
      "who-keeps-most-mass-bits", "Bits per byte that a model loses when its cache keeps an eighth of a prompt",
      fmt::format("This project's byte-level model, {} tokens, the first half of them the prompt; medians over {} "
                  "texts. By head: budgets by the scores of all heads of a layer; by layer: a pyramid.",
                  n, replaced.replicates),
      {table_column(losses, "excess_bits", "bits per byte above exact softmax", "median", "linear")});
  const std::string measured = fmt::format(
      "the softmax weight of the keys that evict keeps, over the weight of as many "
      "heaviest keys of the row, mean over rows, {} keys for all rows. {}",
      keys, heads_in_words(heads, n));
  recipe.judge(
      {.text = "A score of keys keeps more of the softmax weight than as many random keys, on heads of " + three_models,
       .definition = measured + ". Divided by that of random keys, text by text, a region for each score",
       .threshold = "1: as much as random keys. Ratios within a factor of 1.1 count as equal, which is not more",
       .expected = Ruling::open,
       .because = "each score was proposed for other models, and some for prompts whose last rows ask"},
      [=, &recipe] {
        std::vector<Region> regions;
        const double rate = recipe.error_rate(heads.size() * scores().size());
        for (const auto& score : scores())
          for (const RealHead& head : heads) {
            const Cells here = cells.input(head.input());
            region(regions, score)
                .comparisons.push_back({head.name(), median_ratio(here.method(evict(score, keys)).scalar(kept),
                                                                  here.method(evict(null, keys)).scalar(kept), rate)});
          }
        return above_where(1, regions, {}, equal_within);
      });
  recipe.judge(
      {.text = "How far a head orders the scores of keys by the weight that they keep as the mean over heads "
               "does, on heads of " +
               three_models,
       .definition = measured + ". The rank correlation over scores of a head's order with that of the mean over "
                                "all heads, text by text; medians",
       .threshold = "none: the values. At 0 the order of one head says nothing about the others, at 1 all",
       .expected = Ruling::measured,
       .because = "papers compare scores on one model and report one order"},
      [=, &recipe] {
        std::vector<Comparison> found;
        for (const RealHead& head : heads)
          found.push_back(
              {head.name(), median_of(agreement(cells, heads, head, keys), recipe.error_rate(heads.size()))});
        return values_of(found, {0, 0.5});
      });
  recipe.judge(
      {.text = fmt::format("How far the scores of keys are in the same order at {} tokens as at {}, by the weight that "
                           "they keep of tokens that resemble their neighbours",
                           lengths.front(), lengths.back()),
       .definition = fmt::format(
           "the softmax weight of the keys that evict keeps, an eighth, over that of as many heaviest keys of the row, "
           "mean over rows; {}, d = 64, causal. The rank correlation over scores of the two orders, draw by draw; "
           "median over {} draws",
           long_input, draws),
       .threshold = "none: the value. At 1 a short sequence says all about a long one",
       .expected = Ruling::measured,
       .because = "papers choose a score at one length"},
      [=, &recipe] {
        return values_of({{"order", median_of(agreement_of_lengths(at_lengths, lengths.front(), lengths.back()),
                                              recipe.error_rate(1))}},
                         {0, 0.5});
      });
  const std::string lost = fmt::format(
      "bits per byte of the byte-level model with the method in every head above those with exact softmax, position by "
      "position, in float, median over {} texts of {} tokens; the first {} are a prompt, of which later rows see {}",
      replaced.replicates, n, n / 2, n / 16);
  recipe.judge(
      {.text =
           "How many bits per byte this project's byte-level model loses when its cache keeps an eighth of a prompt",
       .definition = lost,
       .threshold = "none: the values. 0.01, 0.1 and 1 bit are there to be read off",
       .expected = Ruling::measured,
       .because = "scores differ"},
      [=, &recipe] {
        std::vector<Comparison> found;
        for (const auto& method : replaced.methods)
          found.push_back({method, median_of(losses.method(method).scalar("excess_bits"),
                                             recipe.error_rate(replaced.methods.size()))});
        return values_of(found, {0.01, 0.1, 1});
      });
  struct Divided {
    std::string allocation, text, source;
  };
  const std::vector<Divided> divided{
      {"adaptive", "A budget that the heads of a layer divide by their scores", "Feng et al. 2024, arXiv:2407.11550"},
      {"pyramid", "A budget that falls from layer to layer", "Cai et al. 2024, arXiv:2406.02069"}};
  for (const Divided& one : divided)
    recipe.judge({.text = one.text + " loses fewer bits per byte than equal budgets, at as many kept tokens, on this "
                                     "project's byte-level model",
                  .source = one.source,
                  .paraphrase = "such budgets keep the quality of a model at smaller caches",
                  .definition =
                      lost + ". With the divided budget less those with equal budgets, text by text, a region for each "
                             "score",
                  .threshold = "0: as many bits",
                  .expected = Ruling::open,
                  .because = "the papers tested large language models; this one has 4 layers of 3 heads"},
                 [=, &recipe] {
                   std::vector<Region> regions;
                   for (const auto& score : shared_scores) {
                     Samples less = losses.method(evict_prompt(score, n, one.allocation)).scalar("excess_bits");
                     for (const auto& [replicate, bits] : losses.method(evict_prompt(score, n)).scalar("excess_bits"))
                       less[replicate] -= bits;
                     region(regions, score)
                         .comparisons.push_back({"", median_of(less, recipe.error_rate(shared_scores.size()))});
                   }
                   return below_where(0, regions);
                 });
  recipe.judge(
      {.text = "Methods that choose keys for each row keep more of the softmax weight than the best score of keys that "
               "all rows share, at as many keys read, on heads of " +
               three_models,
       .definition = measured + ". quest, moba, loki and sparq read about as many keys in each row; their weight is "
                                "over that of as many heaviest keys. Divided by that of the score of evict that keeps "
                                "most on the text, text by text; a region for each method",
       .threshold = "1: as much as the best score. " + fmt::format("Ratios within a factor of {:g} count as equal, "
                                                                   "which is not more",
                                                                   equal_within),
       .expected = Ruling::open,
       .because = "rows look at different keys, but a cache that all rows share is the one that saves memory"},
      [=, &recipe] {
        std::vector<Region> regions;
        const double rate = recipe.error_rate(heads.size() * choosers(keys).size());
        for (const auto& method : choosers(keys))
          for (const RealHead& head : heads) {
            const Cells here = cells.input(head.input());
            Samples best;
            for (const auto& score : scores())
              for (const auto& [replicate, value] : here.method(evict(score, keys)).scalar(kept))
                best[replicate] = std::max(best[replicate], value);
            region(regions, method)
                .comparisons.push_back({head.name(), median_ratio(here.method(method).scalar(kept), best, rate)});
          }
        return above_where(1, regions, {}, equal_within);
      });
}

const bool registered = add(
    RecipeEntry{.text = {.name = "who-keeps-most-mass",
                         .summary = "Scores by which a cache evicts keys, by the softmax weight that is left",
                         .formula = "Which score keeps the keys that matter, and is it the same score on every head?",
                         .reference = "Li et al. 2024, arXiv:2404.14469; Oren et al. 2024, arXiv:2401.06104; Devoto et "
                                      "al. 2024, arXiv:2406.11430; Park et al. 2025, arXiv:2504.15364; Feng et al. "
                                      "2024, arXiv:2407.11550; Cai et al. 2024, arXiv:2406.02069"},
                .write = write});

}  // namespace
}  // namespace attnbench::who_keeps_most_mass_recipe
