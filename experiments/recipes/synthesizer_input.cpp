// Whether Synthesizer's attention is the same for all inputs. methods.md G2: of learnt logits (random, factorised) it
// is; dense variants make row i of the logits from token i. None of them compares two tokens, so that none reads keys.
#include <fmt/format.h>

#include "harness/runner/recipe.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;

const Specs kinds{"random", "factorised", "dense", "factorised-dense"};
const Specs laws{"gaussian", "clustered", "ar1"};

const Description text{.name = "synthesizer-input",
                       .summary = "Whether Synthesizer's attention is the same for all inputs",
                       .formula = "Synthesizer's attention weights do not depend on the input.",
                       .reference = "Hung-yi Lee 2021 (source 003); Tay et al. 2020, arXiv:2005.00743, section 3"};

std::string method(const std::string& kind) { return "synthesizer:kind=" + kind; }

Specs all_methods() {
  Specs all{"softmax", "uniform"};
  for (const auto& kind : kinds) all.push_back(method(kind));
  return all;
}

std::vector<Index> lengths(RecipeSize size) {
  if (size == RecipeSize::smoke) return {32};
  return {32, 128, 512};
}

std::vector<RunRequest> runs(RecipeSize size) {
  return {{.experiment = "dependence",
           .methods = all_methods(),
           .inputs = laws,
           .n = lengths(size),
           .causal = false,
           .replicates = 3}};
}

std::vector<Figure> figures(RecipeSize) {
  std::vector<Panel> panels;
  for (const std::string of : {"queries", "keys", "values"})
    panels.push_back({.title = "other " + of,
                      .where = {{"experiment", "dependence"}, {"input", "gaussian"}, {"causal", 0}, {"d", 64}},
                      .x = {"n"},
                      .x_label = "sequence length n",
                      .x_scale = "log2",
                      .y = "change_by_" + of,
                      .y_label = "change of the output / output"});
  return {figure("synthesizer-input", text, "What the output depends on",
                 "Queries, keys or values replaced by others of the same law, gaussian, d = 64; 95 % intervals over "
                 "inputs. At 0: not read. All Synthesizers mix values without reading keys; random ones without "
                 "reading the tokens at all.",
                 panels)};
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  std::vector<Region> of_tokens;
  std::vector<Bounded> of_keys;
  for (const auto& kind : kinds) {
    Region region{kind, {}};
    for (const auto& input : laws)
      for (const Index n : lengths(size)) {
        const nlohmann::json where{{"method", method(kind)}, {"input", input}, {"n", n}};
        const std::string what = fmt::format("{}, {}, n = {}", kind, input, n);
        for (const auto& [replicate, change] : results.scalar(where, "change_by_queries"))
          region.comparisons.push_back({what, certain(change)});
        for (const auto& [replicate, change] : results.scalar(where, "change_by_keys"))
          of_keys.push_back({what, change, 0});
      }
    of_tokens.push_back(region);
  }
  return {below_where(1e-12,
                      {"Synthesizer's weights are the same for all inputs (change of the output with other tokens as "
                       "queries)",
                       Verdict::Outcome::conditional},
                      of_tokens),
          all_at_most("No Synthesizer reads its keys (change of the output with other keys)", of_keys)};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
