// Bits per byte that a model loses when its heads get the methods of long contexts without training: selected keys,
// quantised caches and recurrences. Methods that let rows see later tokens are left out.
#include <fmt/format.h>

#include "experiments/recipes/field.hpp"
#include "experiments/recipes/real_heads.hpp"

namespace attnbench::long_context_bits_recipe {
namespace {

using Specs = std::vector<std::string>;

const std::string lost = "excess_bits";

// Each row chooses about that many keys by a score.
Specs choosers(Index keys) {
  return {fmt::format("quest:page=16,keep={}", std::max<Index>(1, keys / 16)),
          fmt::format("moba:block=64,keep={}", std::max<Index>(1, keys / 64)), fmt::format("loki:k={}", keys),
          fmt::format("sparq:k={},local=16", keys)};
}
// About as many keys are left in a cache, or are those near the row.
Specs caches(Index keys) {
  return {fmt::format("heavy-hitter:heavy={0},recent={0}", keys / 2),
          fmt::format("sink-window:sinks=4,window={}", keys - 5), fmt::format("local:window={}", keys - 1)};
}
Specs others(Index keys) {
  return {"top-p:p=0.9", fmt::format("top-k:k={}", keys),
          fmt::format("vertical-slash:shape=a,first=4,last={}", keys - 4),
          fmt::format("transformer-xl:segment={0},memory={0}", keys * 2 / 3),
          fmt::format("adaptive-span:span={0},ramp={0}", keys / 2)};
}

// One scale for the numbers of a token: no later token moves it.
std::string rounded(Index bits) { return fmt::format("quantised:bits={0},values={0},granularity=token", bits); }
std::string turboquant(Index bits) { return fmt::format("turboquant:bits={}", bits); }
const std::vector<Index> widths{2, 3, 4, 8};
Specs quantised() {
  Specs all;
  for (const Index bits : widths) all.push_back(rounded(bits));
  for (const Index bits : {2, 3, 4}) all.push_back(turboquant(bits));
  all.push_back("qjl:m=256");
  return all;
}

Specs recurrences() {
  Specs all{"linear"};
  for (const std::string name : {"retnet", "mamba2", "gla", "deltanet", "gated-deltanet", "log-linear", "mesanet"})
    all.push_back(name);
  return all;
}

Specs joined(const std::vector<Specs>& groups) {
  Specs all;
  for (const Specs& group : groups) all.insert(all.end(), group.begin(), group.end());
  return all;
}

struct Measured {
  Cells cells;
  std::string definition;

  Samples bits(const std::string& method) const { return cells.method(method).scalar(lost); }
  Cells of(const Specs& methods) const { return cells.where({{"method", methods}}); }
};

void judge_values(Recipe& recipe, const Measured& all, const std::string& group, const Specs& methods) {
  recipe.judge({.text = "How many bits per byte this project's byte-level model loses with " + group,
                .definition = all.definition,
                .threshold = "none: the values. 0.01, 0.1 and 1 bit are there to be read off",
                .expected = Ruling::measured,
                .because = "methods differ"},
               [=, &recipe] {
                 std::vector<Comparison> found;
                 for (const auto& method : methods)
                   found.push_back({method, median_of(all.bits(method), recipe.error_rate(methods.size()))});
                 return values_of(found, {0.01, 0.1, 1});
               });
}

void judge_choice(Recipe& recipe, const Measured& all, Index keys) {
  recipe.judge(
      {.text = fmt::format("Keys that each row chooses by a score lose fewer bits per byte than a cache from which as "
                           "many keys are left, on this project's byte-level model ({} keys)",
                           keys),
       .source = "Tang et al. 2024, arXiv:2406.10774, section 4",
       .paraphrase =
           "at equal budgets, pages that are chosen for each query keep more of a model's quality than caches "
           "that evict by accumulated weights or keep a window",
       .definition = all.definition +
                     ". With the method less with heavy-hitter and with sink-window, text by text; a region for each "
                     "method that chooses",
       .threshold = "0: as many bits",
       .expected = Ruling::open,
       .because = "a row that chooses may return to a key that an evicting cache has lost; this model has short texts"},
      [=, &recipe] {
        const Specs choosing = choosers(keys), left = caches(keys);
        std::vector<Region> regions;
        for (const auto& method : choosing)
          for (const auto& cache : {left[0], left[1]}) {
            Samples less = all.bits(method);
            for (const auto& [text, bits] : all.bits(cache)) less[text] -= bits;
            region(regions, method)
                .comparisons.push_back({"against " + cache, median_of(less, recipe.error_rate(2 * choosing.size()))});
          }
        return below_where(0, regions);
      });
}

void judge_turboquant(Recipe& recipe, const Measured& all) {
  recipe.judge(
      {.text = "With keys of 4 bits TurboQuant loses less than 0.01 bits per byte, on this project's byte-level model",
       .source = "Zandieh et al. 2025, arXiv:2504.19874, abstract",
       .paraphrase = "quality is neutral with 3.5 bits a channel, and degrades marginally with 2.5",
       .definition = all.definition + ". Keys alone are quantised",
       .threshold = "0.01, our own: the source gives no number for neutral",
       .expected = Ruling::holds,
       .because = "the error of a logit falls fourfold with each bit"},
      [=, &recipe] {
        return all_below(0.01, {{"4 bits", median_of(all.bits(turboquant(4)), recipe.error_rate(1))}});
      });
}

void write(Recipe& recipe) {
  const Index n = recipe.sized<Index>(64, 512, 1024), keys = n / 8;
  const Specs selecting = joined({choosers(keys), caches(keys), others(keys)});
  const RunRequest request{.experiment = "model-loss",
                           .methods = joined({selecting, quantised(), recurrences(), {"uniform"}}),
                           .inputs = {"model"},
                           .n = {n},
                           .precision = Precision::f32,
                           .replicates = recipe.sized<Index>(2, 24, texts)};
  const Measured all{
      recipe.run(request),
      fmt::format("bits per byte of the byte-level model with the method in every head above those with exact softmax, "
                  "position by position, in float, median over {} texts of {} tokens; the model was trained with exact "
                  "attention",
                  request.replicates, n)};
  std::vector<Panel> columns;
  const auto column = [&](const std::string& title, const Specs& methods) {
    columns.push_back(table_column(all.of(joined({methods, {"uniform"}})), lost,
                                   fmt::format("bits per byte above exact softmax, {}", title), "median", "linear"));
  };
  column("selected keys", selecting);
  column("quantised keys", quantised());
  column("recurrences", recurrences());
  recipe.figure("long-context-bits", "Bits per byte that a model loses with methods of long contexts",
                fmt::format("The method in every head of this project's byte-level model, not trained with it, and the "
                            "mean of V; about {} of {} keys in a row where keys are selected; medians over {} texts.",
                            keys, n, request.replicates),
                columns);
  judge_values(recipe, all, fmt::format("rows that read about {} of {} keys", keys, n), selecting);
  judge_choice(recipe, all, keys);
  judge_values(recipe, all, "quantised keys, and where each token has a scale, values of as many bits", quantised());
  judge_turboquant(recipe, all);
  judge_values(recipe, all, "a recurrence in place of softmax", recurrences());
}

const bool registered = add(RecipeEntry{
    .text = {.name = "long-context-bits",
             .summary = "Bits per byte that selected keys, quantised caches and recurrences cost a model",
             .formula = "How many bits do methods of long contexts cost a model that was not trained with them?",
             .reference = "Tang et al. 2024, arXiv:2406.10774; Zandieh et al. 2025, arXiv:2504.19874"},
    .write = write});

}  // namespace
}  // namespace attnbench::long_context_bits_recipe
