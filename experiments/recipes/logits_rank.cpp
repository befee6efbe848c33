// The rank of the logits and of their softmax: source 000. methods.md I8: rank(Q K^T) <= d, and the exponential makes
// generic logits full, d = 1 included, where exp(q_i k_j) of distinct q and k is strictly totally positive: of rank n
// exactly, and numerically low. It can lower the rank as well: exp(log u v^T) = u v^T takes 2 to 1
// (tests/rank_facts_test.cpp).
#include <fmt/format.h>

#include "experiments/recipes/real_heads.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;

const std::string of_logits = "rank:of=logits,by_index=false", of_attention = "rank:by_index=false";
const Specs laws{"gaussian", "gaussian:scale=0.5"};

const Description text{
    .name = "logits-rank",
    .summary = "The softmax raises the rank of the logits",
    .formula =
        "The rank of Q K^T is at most d, and the exponential raises it: softmax attention is of full "
        "rank.",
    .reference = "Su 2021, kexue.fm/archives/8338"};

Index length(RecipeSize size) { return size == RecipeSize::smoke ? 48 : size == RecipeSize::quick ? 192 : 1024; }

std::vector<Index> key_sizes(RecipeSize size) {
  if (size == RecipeSize::smoke) return {1, 16};
  if (size == RecipeSize::quick) return {1, 2, 4, 8, 16, 32, 64};
  return {1, 2, 3, 4, 6, 8, 16, 32, 64, 128};
}

std::vector<RunRequest> runs(RecipeSize size) {
  std::vector<RunRequest> all;
  for (const auto& experiment : {of_logits, of_attention}) {
    RunRequest on_laws{.experiment = experiment,
                       .methods = {"softmax"},
                       .inputs = laws,
                       .n = {length(size)},
                       .d = key_sizes(size),
                       .causal = false,
                       .replicates = size == RecipeSize::smoke ? 2 : 5};
    RunRequest on_heads = on_laws;
    on_heads.inputs = inputs_of(size == RecipeSize::smoke ? telling_heads(size) : all_heads());
    on_heads.d = {};
    on_heads.replicates = 1;
    all.insert(all.end(), {on_laws, on_heads});
  }
  return all;
}

std::vector<Figure> figures(RecipeSize size) {
  std::vector<Panel> panels;
  for (const auto& [metric, label] :
       {std::pair{"numerical_rank", "numerical rank"}, std::pair{"effective_rank", "effective rank"}})
    for (const auto& input : laws)
      panels.push_back({.title = input == "gaussian" ? "gaussian" : "gaussian, scale 0.5",
                        .where = {{"experiment", {of_logits, of_attention}},
                                  {"input", input},
                                  {"causal", 0},
                                  {"logit_scale", 1},
                                  {"n", length(size)},
                                  {"method", "softmax"}},
                        .x = {"d"},
                        .x_label = "key size d",
                        .x_scale = "log2",
                        .y = metric,
                        .y_label = label,
                        .y_scale = "log2",
                        .series = {"of"}});
  return {figure("logits-rank", text, "Rank of the logits and of their softmax",
                 fmt::format("n = {}; 95 % intervals over inputs. The logits' rank is d. Their softmax is of rank n "
                             "exactly; what double precision has of it is drawn, singular values above sigma_1 n "
                             "2.2e-16.",
                             length(size)),
                 panels)};
}

nlohmann::json cell(const std::string& experiment, const std::string& input, Index d) {
  return {{"experiment", experiment}, {"input", input}, {"d", d}};
}

Verdict judge_logits(const Results& results, RecipeSize size) {
  std::vector<Bounded> all;
  const auto add = [&](const std::string& input, Index d) {
    for (const auto& [replicate, rank] : results.scalar(cell(of_logits, input, d), "numerical_rank"))
      all.push_back({fmt::format("{}, d = {}", input, d), rank, static_cast<double>(d)});
  };
  for (const Index d : key_sizes(size))
    for (const auto& law : laws) add(law, d);
  for (const auto& input : inputs_of(size == RecipeSize::smoke ? telling_heads(size) : all_heads())) add(input, 64);
  return all_at_most("The rank of Q K^T is at most d, on laws and on real heads", all);
}

Verdict judge_softmax(const Results& results, RecipeSize size) {
  std::vector<Region> regions;
  const auto add = [&](const std::string& name, const std::vector<std::string>& inputs, Index d) {
    Region region{name, {}};
    for (const auto& input : inputs)
      for (const auto& [replicate, rank] : results.scalar(cell(of_attention, input, d), "numerical_rank"))
        region.comparisons.push_back({"", certain(static_cast<double>(length(size)) - rank)});
    regions.push_back(region);
  };
  for (const Index d : key_sizes(size)) add(fmt::format("d = {}", d), laws, d);
  add("the real heads", inputs_of(size == RecipeSize::smoke ? telling_heads(size) : all_heads()), 64);
  Verdict verdict =
      below_where(0.5,
                  // d = 1 is of rank n exactly and numerically far from it.
                  {fmt::format("The exponential raises the rank: softmax(Q K^T) is of full rank n = {} in double "
                               "precision (no theorem: exp takes the rank of log(u v^T) from 2 to 1)",
                               length(size)),
                   Verdict::Outcome::conditional},
                  regions);
  verdict.numbers = "n less the numerical rank at " + verdict.numbers;
  return verdict;
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  return {judge_logits(results, size), judge_softmax(results, size)};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
