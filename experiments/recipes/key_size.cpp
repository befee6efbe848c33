// Whether larger keys relieve the density of linear attention: source 000. methods.md I10: not on iid data, where rows
// of elementwise features concentrate on their mean as d grows (.979 to .999 of the uniform support). Where keys have
// clusters, logits within a cluster grow as sqrt(d), so that softmax sharpens; elementwise features do not. The heads
// of the project's model have one key size, 64: on them there is nothing to compare.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/recipes/real_heads.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;

const Specs elementwise{"linear", "linear:features=relu", "linear:features=exp"}, exact{"softmax", "uniform"};
const Specs laws{"gaussian", "ar1", "clustered"};
constexpr Index model_d = 64;

const Description text{.name = "key-size",
                       .summary = "Whether larger keys relieve the density of linear attention",
                       .formula =

                           "Larger keys do not relieve the density of linear attention: rows of elementwise features "
                           "come nearer to average pooling as d grows.",

                       .reference = "Su 2021, kexue.fm/archives/8338"};

Index length(RecipeSize size) { return size == RecipeSize::smoke ? 64 : size == RecipeSize::quick ? 512 : 4096; }

std::vector<Index> key_sizes(RecipeSize size) {
  if (size == RecipeSize::smoke) return {4, 64};
  if (size == RecipeSize::quick) return {4, 16, 64, 256};
  return {4, 8, 16, 32, 64, 128, 256, 512};
}

std::vector<RunRequest> runs(RecipeSize size) {
  RunRequest request{.experiment = "sparsity",
                     .methods = elementwise,
                     .inputs = laws,
                     .n = {length(size)},
                     .d = key_sizes(size),
                     .causal = false,
                     .replicates = size == RecipeSize::smoke ? 2 : 6};
  request.methods.insert(request.methods.end(), exact.begin(), exact.end());
  RunRequest heads = request;
  heads.inputs = inputs_of(telling_heads(size));
  heads.n = {std::min<Index>(length(size), 1024)};
  heads.d = {};
  heads.replicates = 1;
  return {request, heads};
}

std::vector<Figure> figures(RecipeSize size) {
  Specs methods = elementwise;
  methods.insert(methods.end(), exact.begin(), exact.end());
  std::vector<Panel> panels;
  for (const auto& law : laws)
    panels.push_back({.title = law,
                      .where = {{"experiment", "sparsity"},
                                {"input", law},
                                {"causal", 0},
                                {"logit_scale", 1},
                                {"n", length(size)},
                                {"method", methods}},
                      .x = {"d"},
                      .x_label = "key size d",
                      .x_scale = "log2",
                      .y = "relative_support",
                      .y_label = "effective support / n",
                      .y_scale = "log10"});
  return {
      figure("key-size", text, "Effective support against key size",
             fmt::format("n = {}, bidirectional, entries of Q and K of unit variance whatever d; 95 % intervals over "
                         "inputs. At 1 every row is the mean of V.",
                         length(size)),
             panels)};
}

Samples support(const Results& results, const std::string& method, const std::string& input, Index d) {
  return results.scalar({{"method", method}, {"input", input}, {"d", d}}, "relative_support");
}

std::string real_heads_words(const Results& results, RecipeSize size) {
  std::vector<std::string> found;
  for (const auto& input : inputs_of(telling_heads(size)))
    found.push_back(fmt::format("{:.3g}", support(results, "linear", input, model_d).at(0)));
  return fmt::format("not testable on real heads, which have d = {} alone: there the support of elu is {}", model_d,
                     fmt::join(found, ", "));
}

// Support at the smallest keys over that at the largest: below 1, larger keys are denser.
Verdict judge_law(const Results& results, RecipeSize size) {
  const Index small = key_sizes(size).front(), large = key_sizes(size).back();
  const double rate = share_of_error_rate(laws.size() * elementwise.size());
  std::vector<Region> regions;
  for (const auto& law : laws) {
    Region region{law, {}};
    for (const auto& method : elementwise)
      region.comparisons.push_back(
          {method, ratio(support(results, method, law, small), support(results, method, law, large), rate)});
    regions.push_back(region);
  }
  Verdict verdict = below_where(1,
                                fmt::format("Keys of d = {} are denser than keys of d = {}, under elu, relu and exp "
                                            "features",
                                            large, small),
                                regions);
  verdict.numbers = fmt::format("support at d = {} over that at d = {}, {}; {}", small, large, verdict.numbers,
                                real_heads_words(results, size));
  return verdict;
}

// The gap to average pooling that larger keys leave, where softmax has long closed it.
Verdict judge_relief(const Results& results, RecipeSize size) {
  const Index large = key_sizes(size).back();
  const double rate = share_of_error_rate(laws.size() * elementwise.size());
  std::vector<Region> regions;
  for (const auto& law : laws) {
    Region region{law, {}};
    for (const auto& method : elementwise) {
      Samples away = support(results, method, law, large);
      for (auto& [replicate, value] : away) value = 1 - value;
      region.comparisons.push_back({method, mean(away, rate)});
    }
    regions.push_back(region);
  }
  Verdict verdict = below_where(
      0.1, fmt::format("At d = {} elementwise features are within a tenth of average pooling", large), regions);
  verdict.numbers = "1 less support / n: " + verdict.numbers;
  return verdict;
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  return {judge_law(results, size), judge_relief(results, size)};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
