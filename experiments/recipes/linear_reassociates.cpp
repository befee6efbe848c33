// Without a softmax the product reassociates: (phi(Q) phi(K)^T) V = phi(Q) (phi(K)^T V). Both ways give the same
// numbers up to rounding; the first takes 2 n^2 (F + dv) FLOPs, the second 4 n F dv. Truncation to a band as wide as
// the sequence computes the first way: it forms every weight of the same linear attention and multiplies by V.
#include <fmt/format.h>

#include "experiments/recipes/growth.hpp"

namespace attnbench::linear_reassociates_recipe {
namespace {

constexpr Index everything = 65536;  // a band wider than any sequence here
const std::string reassociated = "linear", formed = fmt::format("truncated:window={}", everything);

struct Pair {
  std::string linear, formed;
};
const std::vector<Pair> identities{
    {"linear", formed},
    {"linear:features=relu,epsilon=0.001", formed + ",features=relu,epsilon=0.001"},
    {"performer:m=64", fmt::format("truncated:base=performer,m=64,window={}", everything)},
    {"performer:features=hyperbolic,m=64",
     fmt::format("truncated:base=performer,features=hyperbolic,m=64,window={}", everything)}};

const std::string sources =
    "Katharopoulos et al. 2020, arXiv:2006.16236, section 3.2, eq. 6; Hung-yi Lee 2021, lecture on variants of "
    "self-attention";
const std::string lecture =
    "Lee: without the softmax the order of the matrix products can be changed, and the amount of computation is not "
    "the "
    "same";
const std::string reuse =
    "In contrast, our proposed linear transformer from equation 5 has time and memory complexity O(N) because we can "
    "compute sum_j phi(K_j) V_j^T and sum_j phi(K_j) once and reuse them for every query.";

void judge_identity(Recipe& recipe) {
  struct Agreement {
    Pair pair;
    Cells cells;
  };
  std::vector<Agreement> all;
  for (const Pair& pair : identities)
    all.push_back({pair, recipe.run({.experiment = fmt::format("agreement:[{}]", pair.formed),
                                     .methods = {pair.linear},
                                     .inputs = {"gaussian", "ar1"},
                                     .n = recipe.sized<std::vector<Index>>({32}, {64, 256, 512}),
                                     .causal = false,
                                     .replicates = 3})});
  recipe.judge(
      {.text = "Linear attention gives the same output whether it first forms the n x n matrix of weights or first "
               "multiplies keys and values",
       .source = sources,
       .paraphrase = "eq. 6: (phi(Q) phi(K)^T) V = phi(Q) (phi(K)^T V). " + lecture,
       .definition = "relative Frobenius difference of the two outputs in double, for linear attention with elu + 1 "
                     "and ReLU features and Performer with 64 vectors of positive and hyperbolic features; Gaussian "
                     "and AR(1) inputs, n = 64, 256 and 512, d = 64, no mask, each of 3 draws",
       .threshold = "1e-12: an identity, to rounding",
       .because = "matrix products are associative; this also tests two separate code paths"},
      [=] {
        std::vector<Bounded> differences;
        for (const auto& [pair, cells] : all)
          for (const RecipeCell& cell : cells.all()) {
            const std::string input = cell.asked.input.spec();
            const Index n = cell.asked.problem.shape.nk;
            for (const auto& [replicate, difference] : cells.input(input).n(n).scalar("relative_output_difference"))
              differences.push_back({fmt::format("{} on {}, n = {}", pair.linear, input, n), difference, 1e-12});
          }
        return all_at_most(differences);
      });
}

void write(Recipe& recipe) {
  judge_identity(recipe);
  const Cells timed =
      recipe.run({.experiment = "speed:" + turns(recipe) + ",pair=false",
                  .methods = {reassociated, formed},
                  .inputs = {"gaussian"},
                  .n = recipe.sized<std::vector<Index>>({32, 64}, {1024, 2048}, {1024, 2048, 4096, 8192, 16384}),
                  .causal = false,
                  .precision = Precision::f32});
  recipe.figure("linear-reassociates", "The matrix first, or keys and values first",
                "One head, d = dv = 64, elu + 1, float, one thread, bidirectional: medians over blocks with "
                "distribution-free 95 % intervals; n^a is the exponent of the last three lengths. A band of all tokens "
                "(window = 65536) forms the n x n weights.",
                {time_panel("both orders of the same product", timed)});
  const std::string setting =
      "the factor by which each doubling of n multiplies the seconds of a call, one head, d = dv = 64, elu + 1, float, "
      "one thread, no mask, n = 1024 to 16384 (quick: 2048), medians over blocks of turns; the sources count "
      "operations. Here: ";
  recipe.judge({.text = "On one CPU thread, the time of linear attention that multiplies keys and values first grows "
                        "as n, at every doubling of n",
                .source = sources,
                .quotation = reuse,
                .paraphrase = lecture,
                .definition = setting + "linear attention, phi(Q) (phi(K)^T V)",
                .threshold = "every doubling multiplies the time by at most 2.3: 2 and the 15 % of the rule for growth",
                .because = "4 n F dv operations"},
               [=, &recipe] { return grows_as(recipe, linear_growth, curves_of(timed, {reassociated})); });
  recipe.judge(
      {.text = "On one CPU thread, the time of linear attention that forms the n x n matrix of weights first grows as "
               "n^2, at every doubling of n",
       .source = sources,
       .quotation = reuse,
       .paraphrase = lecture,
       .definition =
           setting + "the same attention as (phi(Q) phi(K)^T) V, run as a band that is as wide as the sequence",
       .threshold = "every doubling multiplies the time by at least 3.5: 4 / 1.15, rounded, by the rule for "
                    "growth",
       .because = "2 n^2 (F + dv) operations"},
      [=, &recipe] { return grows_as(recipe, quadratic_growth, curves_of(timed, {formed})); });
}

const bool registered =
    add(RecipeEntry{.text = {.name = "linear-reassociates",
                             .summary = "Linear attention both ways: the matrix first, or keys and values first",
                             .formula = "Without a softmax the product of queries, keys and values can be taken in the "
                                        "other order: is the output the same, in time linear in n?",
                             .reference = "Katharopoulos et al. 2020, arXiv:2006.16236, eq. 5 and 6; Hung-yi Lee 2021"},
                    .write = write});

}  // namespace
}  // namespace attnbench::linear_reassociates_recipe
