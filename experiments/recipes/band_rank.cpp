// That truncation raises the rank is no theorem: the band of equal weights on three diagonals, which is what attention
// to neighbours is where all logits are equal, is singular at every n = 2 mod 3 (eigenvalues 1 + 2 cos(pi j /
// (n + 1)), and 0 where j / (n + 1) = 2/3). methods.md F2; a matrix of full rank with that band loses rank by it
// (tests/rank_facts_test.cpp).
#include <fmt/format.h>

#include "harness/runner/recipe.hpp"

namespace attnbench {
namespace {

const std::string band = "truncated:window=1", equal_weights = "gaussian:scale=0";

const Description text{.name = "band-rank",
                       .summary = "A band that is singular",
                       .formula = "Truncated to a band, linear attention is of full rank.",
                       .reference = "Su 2021, kexue.fm/archives/8338"};

std::vector<Index> lengths(RecipeSize size) {
  std::vector<Index> all;
  for (Index n = 3; n <= (size == RecipeSize::full ? 64 : 20); ++n) all.push_back(n);
  return all;
}

std::vector<RunRequest> runs(RecipeSize size) {
  return {{.experiment = "rank",
           .methods = {band, "linear"},
           .inputs = {equal_weights},
           .n = lengths(size),
           .causal = false}};
}

std::vector<Figure> figures(RecipeSize) {
  return {figure("band-rank", text, "Rank of three diagonals of equal weights",
                 "All logits equal, d = 64, bidirectional, renormalised. Without the band the rank is 1.",
                 {{.title = "logits all equal",
                   .where = {{"experiment", "rank"},
                             {"of", "attention"},
                             {"input", equal_weights},
                             {"causal", 0},
                             {"method", {band, "linear"}}},
                   .x = {"n"},
                   .x_label = "sequence length n",
                   .y = "numerical_rank",
                   .y_label = "numerical rank"}})};
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  std::vector<Region> regions{{"n = 2 mod 3", {}}, {"other n", {}}};
  for (const Index n : lengths(size)) {
    const Samples rank = results.scalar({{"method", band}, {"n", n}}, "numerical_rank");
    for (const auto& [replicate, value] : rank)
      regions[n % 3 == 2 ? 0 : 1].comparisons.push_back(
          {fmt::format("n = {}", n), certain(static_cast<double>(n) - value)});
  }
  Verdict verdict = below_where(
      0.5, {"Truncated to its neighbours, attention of equal weights is of full rank", Verdict::Outcome::conditional},
      regions);
  verdict.numbers = "n less the rank at " + verdict.numbers;
  return {verdict};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
