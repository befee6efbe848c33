// Truncation does not always raise the rank. A band of equal weights on three diagonals (attention to neighbours with
// equal logits) is singular at every n = 2 mod 3: its eigenvalues are 1 + 2 cos(pi j / (n + 1)), and 0 at
// j / (n + 1) = 2/3. methods.md F2. Truncating a full-rank matrix to that band loses rank
// (tests/recipes/rank_facts_test.cpp).
#include <fmt/format.h>

#include <cmath>

#include "harness/runner/recipe.hpp"

namespace attnbench::band_rank_recipe {
namespace {

const std::string band = "truncated:window=1";

void write(Recipe& recipe) {
  std::vector<Index> lengths;
  for (Index n = 3; n <= recipe.sized<Index>(20, 20, 64); ++n) lengths.push_back(n);
  const Cells cells = recipe.run({.experiment = "rank",
                                  .methods = {band, "linear"},
                                  .inputs = {"gaussian:scale=0"},
                                  .n = lengths,
                                  .causal = false});
  recipe.figure("band-rank", "Rank of three diagonals of equal weights",
                "All logits equal, d = 64, bidirectional, renormalised. Nothing is drawn. Without the band the rank is "
                "1.",
                {{.title = "logits all equal",
                  .cells = cells,
                  .x = {"n"},
                  .x_label = "sequence length n",
                  .y = "numerical_rank",
                  .y_label = "numerical rank"}});
  recipe.judge(
      {.text = fmt::format("A band of three diagonals with equal weights, which is attention of equal logits cut to "
                           "neighbouring tokens, lacks one rank at n = 2 mod 3 and none at the other n from 3 to {}",
                           lengths.back()),
       .definition = fmt::format(
           "the numerical rank (singular values above sigma_1 n 2.2e-16) of `{}`: linear attention cut to |i - j| <= 1 "
           "with rows normalised again, where all queries and keys are 0 and all weights in the band are equal; d = "
           "64, bidirectional, against n - 1 where n = 2 mod 3 and against n elsewhere. Nothing is drawn",
           band),
       .threshold = "0: ranks are whole numbers",
       .because = "the band has the eigenvalues 1 + 2 cos(pi j / (n + 1)), which are 0 only where "
                  "j / (n + 1) = 2/3; renormalising its rows keeps its rank"},
      [=] {
        std::vector<Bounded> off;
        for (const Index n : lengths)
          for (const auto& [replicate, rank] : cells.method(band).n(n).scalar("numerical_rank"))
            off.push_back({fmt::format("rank off by, at n = {}", n),
                           std::abs(rank - static_cast<double>(n % 3 == 2 ? n - 1 : n)), 0});
        return all_at_most(off);
      });
}

const bool registered = add(RecipeEntry{.text = {.name = "band-rank",
                                                 .summary = "A band that is singular",
                                                 .formula = "Does truncation to a band give full rank?",
                                                 .reference = "Su 2021, kexue.fm/archives/8338, whose remark on "
                                                              "truncation is the occasion"},
                                        .write = write});

}  // namespace
}  // namespace attnbench::band_rank_recipe
