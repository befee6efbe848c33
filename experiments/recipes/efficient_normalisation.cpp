// Whether Efficient attention is linear attention with exponentials but for where it normalises: source 000. Written as
// there, softmax(q), e^k and then rows, the difference is nothing: the sum over the channels of a query is a factor of
// its row. The published method divides each channel of the keys by its sum over tokens instead of rows: the same
// if and only if these sums are equal (methods.md C3). Of independent keys they become so as n grows; of real ones not.
#include <fmt/format.h>

#include "experiments/recipes/real_heads.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;

const std::string experiment = "agreement:[linear:features=exp]", as_written = "linear:features=softmax-exp";
const Specs methods{as_written, "efficient", "uniform"};
const Specs laws{"gaussian", "clustered"};

const Description text{.name = "efficient-normalisation",
                       .summary = "Efficient attention against linear attention with exponentials",
                       .formula =
                           "Efficient attention is linear attention with exponentials of queries and keys, and "
                           "differs from it only in where it normalises.",
                       .reference = "Su 2021, kexue.fm/archives/8338"};

std::vector<Index> lengths(RecipeSize size) {
  if (size == RecipeSize::smoke) return {32, 64};
  if (size == RecipeSize::quick) return {64, 128, 256, 512};
  return {64, 128, 256, 512, 1024};
}

std::vector<RunRequest> runs(RecipeSize size) {
  const RunRequest on_laws{.experiment = experiment,
                           .methods = methods,
                           .inputs = laws,
                           .n = lengths(size),
                           .causal = false,
                           .replicates = size == RecipeSize::smoke   ? 2
                                         : size == RecipeSize::quick ? 6
                                                                     : 20};
  RunRequest on_heads = on_laws;
  on_heads.inputs = inputs_of(telling_heads(size));
  on_heads.replicates = 1;
  return {on_laws, on_heads};
}

std::vector<Figure> figures(RecipeSize size) {
  std::vector<Panel> panels;
  const RealHead head = telling_heads(size).back();
  for (const auto& [title, input] : {std::pair<std::string, std::string>{"gaussian", "gaussian"},
                                     {"clustered", "clustered"},
                                     {"real head, " + head.name(), head.input()}})
    panels.push_back({.title = title,
                      .where = {{"experiment", experiment}, {"input", input}, {"method", {"efficient", "uniform"}}},
                      .x = {"n"},
                      .x_label = "sequence length n",
                      .x_scale = "log2",
                      .y = "relative_difference",
                      .y_label = "|A' - A| over that of the mean of V",
                      .y_scale = "log10",
                      .ratio_to = "uniform"});
  return {figure("efficient-normalisation", text,
                 "Distance of Efficient attention to linear attention with exponentials",
                 "d = 64, bidirectional, 95 % intervals over inputs; in units of the distance of the mean of V, which "
                 "is 1. As the source writes it, Efficient attention has none but rounding.",
                 panels)};
}

std::vector<std::string> all_inputs(RecipeSize size) {
  Specs all = laws;
  for (const auto& head : inputs_of(telling_heads(size))) all.push_back(head);
  return all;
}

Samples difference(const Results& results, const std::string& method, const std::string& input, Index n) {
  return results.scalar({{"method", method}, {"input", input}, {"n", n}}, "relative_difference");
}

Verdict judge_as_written(const Results& results, RecipeSize size) {
  std::vector<Bounded> all;
  for (const auto& input : all_inputs(size))
    for (const Index n : lengths(size))
      for (const auto& [replicate, value] : difference(results, as_written, input, n))
        all.push_back({fmt::format("|A' - A| / |A| on {}, n = {}", input, n), value, 1e-12});
  return all_at_most(
      "A softmax over the channels of a query, exponentials of a key and a normalisation of rows are linear attention "
      "with exponentials of both, exactly",
      all);
}

Verdict judge_published(const Results& results, RecipeSize size) {
  const auto inputs = all_inputs(size);
  std::vector<Region> regions;
  for (const auto& input : inputs) {
    const Index n = lengths(size).back();
    regions.push_back({fmt::format("{}, n = {}", input, n),
                       {{"", ratio_of(difference(results, "efficient", input, n),
                                      difference(results, "uniform", input, n), share_of_error_rate(inputs.size()))}}});
  }
  Verdict verdict = below_where(
      0.1,
      {"Efficient attention as published (a softmax of keys over tokens) is nearer to linear attention with "
       "exponentials than a tenth of the way to the mean of V",
       Verdict::Outcome::conditional,
       "Shen et al. 2018, arXiv:1812.01243, section 3.2; Su 2021, kexue.fm/archives/8338"},
      regions);
  verdict.numbers = "distance over that of the mean of V at " + verdict.numbers;
  return verdict;
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  return {judge_as_written(results, size), judge_published(results, size)};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
