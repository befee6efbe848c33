// Methods that let the mean of a block or of a cluster stand for its tokens give it too little weight, never too much:
// exp(mean) <= mean of exp. How much is lost on laws and on heads of models.
#include <fmt/format.h>

#include "experiments/recipes/field.hpp"
#include "experiments/recipes/real_heads.hpp"

namespace attnbench::jensen_sign_recipe {
namespace {

constexpr Index tokens = 16;  // of a block, and of a cluster in the mean
const std::string kept = "kept_weight";

struct Coarse {
  std::string name, spec;
};

// Nothing is exact, or an eighth of the pairs is.
std::vector<Coarse> methods(Index n) {
  const Index blocks = n / tokens;
  return {{"MRA-2, no block exact", fmt::format("mra:block={},refine=0", tokens)},
          {"MRA-2, an eighth of the blocks exact", fmt::format("mra:block={},refine={}", tokens, blocks * blocks / 8)},
          {"Multipole, no cluster exact", fmt::format("multipole:clusters={},exact=0", blocks)},
          {"Multipole, an eighth of the keys exact", fmt::format("multipole:clusters={},exact={}", blocks, n / 8)}};
}

void write(Recipe& recipe) {
  const Index n = recipe.sized<Index>(64, 512, 1024);
  const Index draws = recipe.sized<Index>(2, 24, 32);
  const auto heads = pretrained_heads(recipe);
  const auto places = laws_and_heads({{.name = "normal, logits of deviation 0.25", .input = "gaussian:scale=0.5"},
                                      {.name = "normal, logits of deviation 1", .input = "gaussian"}},
                                     heads);
  RunRequest request{.experiment = "coarse-weights", .n = {n}, .replicates = draws};
  for (const Coarse& one : methods(n)) request.methods.push_back(one.spec);
  Cells cells = run_on(recipe, request, heads);
  RunRequest of_laws = request;
  of_laws.inputs = {"gaussian:scale=0.5", "gaussian"};
  of_laws.d = {64};
  cells = cells + recipe.run(of_laws);

  std::vector<Panel> panels;
  for (const auto& place : places)
    if (place.part == place.name || place.input == heads.front().input())
      panels.push_back({.title = place.name,
                        .kind = "table",
                        .cells = cells.input(place.input),
                        .y = kept,
                        .y_label = fmt::format("coarse weight over exact weight, {}", place.name),
                        .y_scale = "log10",
                        .interval = "median"});
  recipe.figure("jensen-sign", "Weight that means leave of the tokens that they stand for",
                fmt::format("Blocks of {} tokens, and clusters of {} in the mean; each block or cluster counted by its "
                            "softmax weight. Medians over inputs and draws with 95 % intervals. n = {}.",
                            tokens, tokens, n),
                panels);
  const std::string measured = fmt::format(
      "blocks of {} tokens, and as many clusters as blocks, without a mask. Normal queries and keys with d = 64, n = "
      "{}. "
      "{}",
      tokens, n, heads_in_words(heads, n));
  recipe.judge(
      {.text = "The weight of a mean is never above that of the tokens that it stands for",
       .source = "Jensen 1906, Acta Mathematica 30:175",
       .paraphrase = "a convex function of a mean is at most the mean of the function",
       .definition = "the largest w / W over blocks or clusters, draws and inputs: " + measured,
       .threshold = "1, and 1e-9 for rounding",
       .because = "it is a theorem, and no approximation of ours may break it"},
      [=] {
        std::vector<Bounded> found;
        for (const auto& place : places)
          for (const Coarse& one : methods(n))
            for (const auto& [replicate, value] : cells.input(place.input).method(one.spec).scalar("largest_ratio"))
              found.push_back({fmt::format("{}, {}, draw {}", one.name, place.name, replicate), value, 1 + 1e-9});
        return all_at_most(found);
      });
  recipe.judge(
      {.text =
           "Clusters of keys keep more of the weight than blocks of neighbouring tokens, of which there are as many",
       .definition = "the mean of w / W, each block or cluster counted by its softmax weight, nothing exact: that of "
                     "Multipole over that of MRA-2, draw by draw: " +
                     measured,
       .threshold = "1: equal weights. Ratios within a factor of 1.1 count as equal, which is not more",
       .because = "MRA-2 takes the mean of queries as well, and its blocks need not be alike"},
      [=, &recipe] {
        std::vector<Region> regions;
        for (const auto& place : places) {
          const Cells here = cells.input(place.input);
          const auto of = [&](size_t which) { return here.method(methods(n)[which].spec).scalar(kept); };
          region(regions, place.part)
              .comparisons.push_back({place.within(), median_ratio(of(2), of(0), recipe.error_rate(places.size()))});
        }
        return above_where(1, regions, {}, equal_within);
      });
  recipe.judge({.text = "How much of the weight is left where means stand for tokens",
                .definition = "the mean of w / W, each block or cluster counted by its softmax weight: " + measured,
                .threshold = "none: the values. 0.5 and 0.9 are there to be read off",
                .expected = Ruling::measured,
                .because = "it depends on how alike the tokens of a block are"},
               [=, &recipe] {
                 std::vector<Comparison> found;
                 const double rate = recipe.error_rate(places.size() * methods(n).size());
                 for (const auto& place : places)
                   for (const Coarse& one : methods(n))
                     found.push_back({fmt::format("{}, {}", one.name, place.name),
                                      median_of(cells.input(place.input).method(one.spec).scalar(kept), rate)});
                 return values_of(found, {0.5, 0.9});
               });
}

const bool registered =
    add(RecipeEntry{.text = {.name = "jensen-sign",
                             .summary = "The weight that the mean of a block or of a cluster has",
                             .formula = "How much weight is lost where a mean stands for its tokens?",
                             .reference = "Zeng et al. 2022, arXiv:2207.10284; Hooper et al. 2025, arXiv:2506.13059"},
                    .write = write});

}  // namespace
}  // namespace attnbench::jensen_sign_recipe
