// Without a softmax the product reassociates: (phi(Q) phi(K)^T) V = phi(Q) (phi(K)^T V). The same numbers but for
// rounding, 2 n^2 (F + dv) FLOPs one way and 4 n F dv the other. A band as wide as the sequence is the first way: it
// forms every weight of the same linear attention, and multiplies by V.
#include <fmt/format.h>

#include "experiments/recipes/growth.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;

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
const Specs laws{"gaussian", "ar1"};

const Description text{.name = "linear-reassociates",
                       .summary = "Linear attention both ways: the matrix first, or keys and values first",
                       .formula =
                           "Without a softmax the product of queries, keys and values can be taken in the other order: "
                           "the same output, in time linear in n.",
                       .reference =
                           "Hung-yi Lee 2021 (source 003); Katharopoulos et al. 2020, arXiv:2006.16236, eq. 5 and 6 "
                           "(source 004)"};

std::vector<Index> lengths(RecipeSize size) {
  if (size == RecipeSize::smoke) return {32};
  return {64, 256, 512};
}
std::vector<Index> timed_lengths(RecipeSize size) {
  if (size == RecipeSize::smoke) return {32, 64};
  if (size == RecipeSize::quick) return {1024, 2048, 4096};
  return {1024, 2048, 4096, 8192, 16384};
}

std::string agreement(const Pair& pair) { return fmt::format("agreement:[{}]", pair.formed); }
std::string timed(RecipeSize size) { return "speed:" + turns(size) + ",pair=false"; }

std::vector<RunRequest> runs(RecipeSize size) {
  std::vector<RunRequest> all;
  for (const Pair& pair : identities)
    all.push_back({.experiment = agreement(pair),
                   .methods = {pair.linear},
                   .inputs = laws,
                   .n = lengths(size),
                   .causal = false,
                   .replicates = 3});
  all.push_back({.experiment = timed(size),
                 .methods = {reassociated, formed},
                 .inputs = {"gaussian"},
                 .n = timed_lengths(size),
                 .causal = false,
                 .precision = Precision::f32});
  return all;
}

std::vector<Figure> figures(RecipeSize size) {
  const Panel time = time_panel("both orders of the same product", {{"experiment", timed(size)},
                                                                    {"input", "gaussian"},
                                                                    {"causal", 0},
                                                                    {"precision", "f32"},
                                                                    {"method", Specs{reassociated, formed}}});
  return {
      figure("linear-reassociates", text, "The matrix first, or keys and values first",
             "One head, d = dv = 64, elu + 1, float, one thread, bidirectional: medians with distribution-free 95 % "
             "intervals; n^a is the fitted exponent. A band of all tokens forms the n x n weights.",
             {time})};
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  std::vector<Bounded> differences;
  for (const Pair& pair : identities)
    for (const auto& input : laws)
      for (const Index n : lengths(size))
        for (const auto& [replicate, difference] :
             results.scalar({{"experiment", agreement(pair)}, {"method", pair.linear}, {"input", input}, {"n", n}},
                            "relative_output_difference"))
          differences.push_back({fmt::format("{} on {}, n = {}", pair.linear, input, n), difference, 1e-12});
  const auto growth_of = [&](const std::string& method) {
    return growths(results, {{"experiment", timed(size)}}, {method}, timed_lengths(size));
  };
  const Index last = timed_lengths(size).back();
  return {
      all_at_most("Both orders give the same output to rounding (relative difference, double)", differences),
      exponents_below(1.1,
                      fmt::format("Keys and values first, time grows as n up to n = {} (exponent below 1.1)", last),
                      growth_of(reassociated)),
      exponents_above(1.75, fmt::format("The matrix first, time grows as n^2 up to n = {} (exponent above 1.75)", last),
                      growth_of(formed))};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
