// How truncating linear attention to a band changes its rank: Su's remedy. methods.md F2: with fewer features than
// tokens a band generically raises the rank, but not always: a band can have less rank than the whole matrix (recipe
// band-rank). With w = 0 and renormalised it is the identity: full rank, but every token attends only to itself.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/recipes/real_heads.hpp"

namespace attnbench::truncation_rank_recipe {
namespace {

const Specs bases{"linear", "linear:inputs=unscaled", "performer:m=64"};

std::string banded(std::string base, Index window) {
  std::replace(base.begin(), base.end(), ':', ',');
  return fmt::format("truncated:base={},window={}", base, window);
}

// A stochastic matrix whose singular values are all 1 is a permutation; on the diagonal that is the identity.
Finding judge_identity(const Cells& cells, const std::vector<LawOrHead>& inputs, Index n) {
  std::vector<Bounded> all;
  for (const auto& base : bases)
    for (const auto& [name, spec, part, d] : inputs) {
      const Cells one = cells.method(banded(base, 0)).input(spec);
      for (const auto& [replicate, norm] : one.scalar("spectral_norm"))
        all.push_back({fmt::format("{} on {}: largest singular value less 1", base, name), std::abs(norm - 1), 1e-12});
      for (const auto& [replicate, rank] : one.scalar("effective_rank"))
        all.push_back({fmt::format("{} on {}: effective rank less n, over n", base, name),
                       std::abs(rank / static_cast<double>(n) - 1), 1e-12});
    }
  return all_at_most(all);
}

void draw(Recipe& recipe, const Cells& cells, const std::vector<LawOrHead>& inputs, const std::vector<Index>& windows,
          Index n) {
  Specs shown{"linear", "softmax", "uniform"};
  for (const Index window : windows)
    for (const auto& base : {bases.front(), bases.back()}) shown.push_back(banded(base, window));
  std::vector<Panel> panels;
  for (const auto& [metric, label] :
       {std::pair{"numerical_rank", "numerical rank"}, std::pair{"effective_rank", "effective rank"}})
    for (const LawOrHead& input : {inputs[0], inputs[1], {typical_head.name(), typical_head.input()}})
      panels.push_back({.title = input.name,
                        .cells = cells.input(input.input).methods(shown),
                        .x = {"window"},
                        .x_label = "half width of the band w",
                        .x_scale = "log2",
                        .y = metric,
                        .y_label = label,
                        .y_scale = "log2",
                        .references = {"linear", "softmax", "uniform"}});
  recipe.figure("truncation-rank", "Rank against the width of the band",
                fmt::format("n = {}, d = 64, bidirectional, renormalised; 95 % intervals over draws or texts. Dotted: "
                            "without a band. The identity, w = 0, has no place on the axis and is of full rank. The "
                            "narrower the band, the higher the rank, and the less there is of the attention.",
                            n),
                panels);
}

void write(Recipe& recipe) {
  const Index n = recipe.sized<Index>(96, 128, 256);
  // The first band is the token itself.
  const auto windows = recipe.sized<std::vector<Index>>({0, 4}, {0, 1, 8, 64}, {0, 1, 2, 4, 8, 16, 32, 64, 128});
  const std::vector<LawOrHead> laws{{"gaussian", "gaussian"}, {"ar1", "ar1"}};
  const std::vector<RealHead> heads = telling_heads_of_models(recipe);
  const std::vector<LawOrHead> inputs = laws_and_heads(laws, heads);
  Specs methods = bases;
  for (const auto& base : bases)
    for (const Index window : windows) methods.push_back(banded(base, window));
  methods.insert(methods.end(), {"softmax", "uniform"});
  const RunRequest request{.experiment = "rank:by_index=false",
                           .methods = methods,
                           .inputs = inputs_of(laws),
                           .n = {n},
                           .causal = false,
                           .replicates = recipe.sized<Index>(2, texts)};
  const Cells cells = recipe.run(request) + run_on(recipe, request, heads);
  draw(recipe, cells, inputs, windows, n);

  const std::string where = fmt::format(
      "1 + elu of scaled and of raw q and k and 64 random features; normal and AR(1) inputs, n = {}, d = 64, {} draws, "
      "and heads, all without a mask (a causal one alone gives full rank). {}",
      n, recipe.sized<Index>(2, texts), heads_in_words(heads, n, false));
  recipe.judge(
      {.text = fmt::format(
           "Each of several bands of half width {} or less raises the numerical rank of linear attention with at most "
           "64 features at n = {}, on normal and AR(1) inputs and heads of {}",
           windows.back(), n, three_models),
       .source = "Su 2021, kexue.fm/archives/8338, section 集中注意",
       .quotation =
           "还有笔者实验的局部Attention截断，也能增加矩阵的秩 (The local truncation of my experiments can also "
           "increase the rank of the matrix)",
       .definition = "numerical rank (singular values above sigma_1 n 2.2e-16, sigma_1 the largest) of the whole "
                     "matrix over that of the matrix cut to |i - j| <= w and renormalised, the median over the same "
                     "draws, at every half width w that is measured, all judged; " +
                     where,
       .threshold =
           "1: equal ranks. The source says \"can\": with weights that are all equal a band need not raise the rank",
       .because = "the whole has rank 64 at most, and a band of generic entries is of full rank"},
      [=, &recipe] {
        std::vector<Comparison> all;
        const double rate = recipe.error_rate(bases.size() * inputs.size() * windows.size());
        for (const auto& base : bases)
          for (const auto& [name, spec, part, d] : inputs)
            for (const Index window : windows)
              all.push_back(
                  {fmt::format("{} on {}, w = {}", base, name, window),
                   median_ratio(cells.method(base).input(spec).scalar("numerical_rank"),
                                cells.method(banded(base, window)).input(spec).scalar("numerical_rank"), rate)});
        return all_below(1, all);
      });
  recipe.judge(
      {.text = "Linear attention that is cut to the token itself and renormalised is the identity matrix",
       .source = "Su 2021, kexue.fm/archives/8338, section 集中注意",
       .quotation = "比如极端情况下，每个token只跟自身做attention，那么Attention矩阵就是满秩的单位阵了！ (in the "
                    "extreme case where each token attends to itself alone, the attention matrix is the "
                    "identity, of full rank!)",
       .definition =
           "|largest singular value - 1| and |effective rank / n - 1| at half width w = 0, of every draw; the "
           "effective rank is exp(H), H the entropy of the singular values over their sum. A matrix with rows of "
           "weights that sum to 1 has both at 0 only if it is a permutation, on the diagonal the identity; " +
           where,
       .threshold = "1e-12, an identity to rounding: it is the code that is tested",
       .because = "a positive weight over itself is 1"},
      [=] { return judge_identity(cells, inputs, n); });
}

const bool registered =
    add(RecipeEntry{.text = {.name = "truncation-rank",
                             .summary = "Truncating linear attention to a band raises its rank",
                             .formula = "Is linear attention that is truncated to a band of higher rank than whole?",
                             .reference = "Su 2021, kexue.fm/archives/8338"},
                    .write = write});

}  // namespace
}  // namespace attnbench::truncation_rank_recipe
