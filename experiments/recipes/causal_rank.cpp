// What a causal mask makes of the rank of linear attention. methods.md H2: a triangular matrix without a zero on its
// diagonal is of full rank, so causal linear attention is, whatever its features; kexue 9889 withdraws the argument
// from rank for that reason. Structure is not numbers: the condition says how far from singular it is, and the
// effective rank how much of it is the mask, which the causal mean of V (uniform) has as well.
#include <fmt/format.h>

#include "experiments/recipes/real_heads.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;

const Specs methods{"linear", "performer:m=64", "softmax", "uniform"};
const Specs laws{"gaussian", "ar1"};

const Description text{.name = "causal-rank",
                       .summary = "Causal linear attention is of full rank, and little of that is attention",
                       .formula =
                           "Under a causal mask linear attention is of full rank, so that its low rank is no argument "
                           "against it there.",
                       .reference = "Su 2021, kexue.fm/archives/8338; Su 2023, kexue.fm/archives/9889"};

Index length(RecipeSize size) { return size == RecipeSize::smoke ? 64 : size == RecipeSize::quick ? 512 : 1024; }

Specs all_inputs(RecipeSize size) {
  Specs all = laws;
  for (const auto& head : inputs_of(telling_heads(size))) all.push_back(head);
  return all;
}

std::vector<RunRequest> runs(RecipeSize size) {
  const Index n = length(size);
  const RunRequest on_laws{.experiment = "rank:by_index=false",
                           .methods = {"linear", "softmax", "uniform"},
                           .inputs = laws,
                           .n = {n / 8, n / 4, n / 2, n},
                           .causal = true,
                           .replicates = size == RecipeSize::smoke ? 2 : 4};
  RunRequest on_heads = on_laws, drawn = on_laws;
  on_heads.inputs = inputs_of(telling_heads(size));
  on_heads.replicates = 1;
  drawn.methods = {"performer:m=64"};
  drawn.inputs = all_inputs(size);
  drawn.replicates = 2 * on_laws.replicates;
  std::vector<RunRequest> all{on_laws, on_heads, drawn};
  for (RunRequest request : {on_laws, on_heads, drawn}) {
    request.n = {n};
    request.causal = false;
    all.push_back(request);
  }
  return all;
}

std::vector<Figure> figures(RecipeSize size) {
  const RealHead head = telling_heads(size).back();
  std::vector<Panel> panels;
  for (const auto& [title, input] :
       {std::pair<std::string, std::string>{"gaussian", "gaussian"}, {head.name(), head.input()}})
    for (const auto& [metric, label] : {std::pair{"numerical_rank", "numerical rank"},
                                        {"effective_rank", "effective rank"},
                                        {"condition", "condition  sigma_1 / sigma_n"}})
      panels.push_back({.title = title,
                        .where = {{"experiment", "rank"},
                                  {"of", "attention"},
                                  {"input", input},
                                  {"causal", 1},
                                  {"d", 64},
                                  {"logit_scale", 1},
                                  {"method", methods}},
                        .x = {"n"},
                        .x_label = "sequence length n",
                        .x_scale = "log2",
                        .y = metric,
                        .y_label = label,
                        .y_scale = metric == std::string("condition") ? "log10" : "log2",
                        .interval = metric == std::string("condition") ? "median" : "mean"});
  return {
      figure("causal-rank", text, "Rank under a causal mask",
             "d = 64, 64 features; 95 % intervals over inputs and draws. All of these are triangular and of rank n "
             "exactly. Numerically some are not: what lies below sigma_1 n 2.2e-16 is rounding, and a matrix that has "
             "such has no condition. Uniform is the causal mean of V, which compares no tokens.",
             panels)};
}

nlohmann::json cell(const std::string& method, const std::string& input, RecipeSize size, int causal = 1) {
  return {{"method", method}, {"input", input}, {"n", length(size)}, {"causal", causal}};
}

Verdict judge_full(const Results& results, RecipeSize size) {
  std::vector<Region> regions;
  for (const auto& method : methods) {
    Region region{method, {}};
    for (const auto& input : all_inputs(size))
      for (const auto& [replicate, rank] : results.scalar(cell(method, input, size), "numerical_rank"))
        region.comparisons.push_back({input, certain(static_cast<double>(length(size)) - rank)});
    regions.push_back(region);
  }
  Verdict verdict = below_where(
      0.5,  // ranks are whole numbers
      // How many singular values rounding leaves is known of none of them.
      {fmt::format("Causal attention of {} tokens, which is of full rank exactly, is so in double precision as well",
                   length(size)),
       Verdict::Outcome::ambiguous},
      regions);
  verdict.numbers = "n less the numerical rank, over inputs: " + verdict.numbers;
  return verdict;
}

Verdict judge_raised(const Results& results, RecipeSize size) {
  const Specs inputs = all_inputs(size);
  const double rate = share_of_error_rate(2 * inputs.size());
  std::vector<Comparison> comparisons;
  for (const Specs linear{"linear", "performer:m=64"}; const auto& method : linear)
    for (const auto& input : inputs)
      comparisons.push_back(
          {method + " on " + input, ratio_of(results.scalar(cell(method, input, size, 0), "effective_rank"),
                                             results.scalar(cell(method, input, size), "effective_rank"), rate)});
  return all_below(1,
                   {"The causal mask raises the effective rank of linear attention", Verdict::Outcome::pass,
                    "Su 2023, kexue.fm/archives/9889"},
                   comparisons);
}

// What the mask alone gives: the causal mean of V.
Verdict judge_mask(const Results& results, RecipeSize size) {
  const Specs inputs = all_inputs(size);
  const double rate = share_of_error_rate(inputs.size());
  std::vector<Region> regions;
  for (const auto& input : inputs)
    regions.push_back({input,
                       {{"", ratio_of(results.scalar(cell("linear", input, size), "effective_rank"),
                                      results.scalar(cell("uniform", input, size), "effective_rank"), rate)}}});
  Verdict verdict =
      below_where(1.5,
                  {"The effective rank of causal linear attention (elu) is less than half as much again as that of the "
                   "causal mean of V: nearly all of it is the mask's",
                   Verdict::Outcome::ambiguous},
                  regions);
  verdict.numbers = "effective rank over that of the causal mean at " + verdict.numbers;
  return verdict;
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  return {judge_full(results, size), judge_raised(results, size), judge_mask(results, size)};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
