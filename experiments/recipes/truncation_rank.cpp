// What truncating linear attention to a band does to its rank: source 000's remedy. methods.md F2: with fewer features
// than tokens a band raises the rank generically; that is no theorem, since a band can lose rank that the whole had
// (tests/rank_facts_test.cpp: 5 to 4). To itself alone, w = 0, and renormalised, it is the identity: of full rank, and
// no attention at all.
#include <fmt/format.h>

#include <algorithm>

#include "experiments/recipes/real_heads.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;

const Specs bases{"linear", "performer:m=64"};
const Specs laws{"gaussian", "ar1"};

const Description text{
    .name = "truncation-rank",
    .summary = "Truncating linear attention to a band raises its rank",
    .formula =
        "Truncated to a band, linear attention is of higher rank than whole, as long as it has fewer "
        "features than tokens; truncated to the token itself and renormalised it is the identity.",
    .reference = "Su 2021, kexue.fm/archives/8338"};

Index length(RecipeSize size) { return size == RecipeSize::smoke ? 96 : size == RecipeSize::quick ? 256 : 512; }

// At the first the band is the token itself; at the last, everything.
Specs windows(RecipeSize size) {
  if (size == RecipeSize::smoke) return {"0", "4", "96"};
  if (size == RecipeSize::quick) return {"0", "1", "4", "16", "64", "128", "256"};
  return {"0", "1", "2", "4", "8", "16", "32", "64", "128", "256", "512"};
}

std::string banded(const std::string& base, const std::string& window = "") {
  std::string spec = "truncated:base=" + base;
  std::replace(spec.begin() + static_cast<long>(std::string("truncated:").size()), spec.end(), ':', ',');
  return Params("methods", spec + (window.empty() ? "" : ",window=" + window)).spec();
}

Specs all_inputs(RecipeSize size) {
  Specs all = laws;
  for (const auto& head : inputs_of(telling_heads(size))) all.push_back(head);
  return all;
}

std::vector<RunRequest> runs(RecipeSize size) {
  RunRequest request{.experiment = "rank:by_index=false",
                     .methods = {"softmax", "uniform"},
                     .inputs = all_inputs(size),
                     .n = {length(size)},
                     .causal = false,
                     .sweep = {{"window", windows(size)}},
                     .replicates = size == RecipeSize::smoke ? 2 : 5};
  for (const auto& base : bases) {
    request.methods.push_back(base);
    request.methods.push_back(banded(base));
  }
  return {request};
}

std::vector<Figure> figures(RecipeSize size) {
  std::vector<Panel> panels;
  const RealHead head = telling_heads(size).back();
  for (const auto& [metric, label] :
       {std::pair{"numerical_rank", "numerical rank"}, std::pair{"effective_rank", "effective rank"}})
    for (const auto& [title, input] :
         {std::pair<std::string, std::string>{"gaussian", "gaussian"}, {"ar1", "ar1"}, {head.name(), head.input()}})
      panels.push_back({.title = title,
                        .where = {{"experiment", "rank"},
                                  {"input", input},
                                  {"causal", 0},
                                  {"of", "attention"},
                                  {"d", 64},
                                  {"logit_scale", 1},
                                  {"n", length(size)},
                                  {"method", {banded(bases[0]), banded(bases[1])}}},
                        .x = {"window"},
                        .x_label = "half width of the band w",
                        .x_scale = "log2",
                        .y = metric,
                        .y_label = label,
                        .y_scale = "log2",
                        .references = {"linear", "softmax", "uniform"}});
  return {
      figure("truncation-rank", text, "Rank against the width of the band",
             fmt::format("n = {}, d = 64, bidirectional, renormalised; 95 % intervals over inputs and draws. Dotted: "
                         "without a band. The identity, w = 0, has no place on the axis and is of full rank. The "
                         "narrower the band, the higher the rank, and the less there is of the attention.",
                         length(size)),
             panels)};
}

// Every band narrower than everything: the rank of the whole over that of the band.
Verdict judge_raised(const Results& results, RecipeSize size) {
  std::vector<Region> regions;
  for (const auto& base : bases) {
    Region region{base, {}};
    for (const auto& input : all_inputs(size)) {
      const auto rank = [&](const std::string& method) {
        return results.scalar({{"method", method}, {"input", input}}, "numerical_rank");
      };
      const Samples whole = rank(base);
      for (const auto& window : windows(size)) {
        if (std::stol(window) >= length(size)) continue;
        for (const auto& [replicate, value] : rank(banded(base, window)))
          region.comparisons.push_back({input + ", w = " + window, certain(whole.at(replicate) / value)});
      }
    }
    regions.push_back(region);
  }
  Verdict verdict =
      below_where(1,
                  {fmt::format("Truncation to a band narrower than all {} tokens raises the rank of linear attention "
                               "with 64 features (no theorem: the band of ones on three diagonals, n = 5, is of rank "
                               "4, whatever full-rank matrix it is cut from)",
                               length(size))},
                  regions);
  verdict.numbers = "rank whole over rank truncated, " + verdict.numbers;
  return verdict;
}

// A stochastic matrix whose singular values are all 1 is a permutation; on the diagonal that is the identity.
Verdict judge_identity(const Results& results, RecipeSize size) {
  std::vector<Bounded> all;
  const auto n = static_cast<double>(length(size));
  for (const auto& base : bases)
    for (const auto& input : all_inputs(size)) {
      const nlohmann::json where{{"method", banded(base, "0")}, {"input", input}};
      for (const auto& [replicate, norm] : results.scalar(where, "spectral_norm"))
        all.push_back({fmt::format("{} on {}: largest singular value less 1", base, input), std::abs(norm - 1), 1e-12});
      for (const auto& [replicate, rank] : results.scalar(where, "effective_rank"))
        all.push_back(
            {fmt::format("{} on {}: effective rank less n, over n", base, input), std::abs(rank / n - 1), 1e-12});
    }
  return all_at_most(
      "Truncated to the token itself and renormalised, linear attention is the identity: all its "
      "singular values are 1",
      all);
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  return {judge_raised(results, size), judge_identity(results, size)};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
