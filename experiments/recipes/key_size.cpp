// Whether larger keys relieve the density of linear attention: source 000. methods.md I10: not on iid data, where rows
// of elementwise features concentrate on their mean as d grows (.979 to .999 of the uniform support). Where keys have
// clusters, logits within a cluster grow as sqrt(d), so that softmax sharpens; elementwise features do not. Real heads
// have one key size, 64; smaller ones are made of the dimensions that carry their logits best (model:key_size=).
#include <fmt/format.h>

#include <algorithm>

#include "experiments/recipes/real_heads.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;

const Specs elementwise{"linear", "linear:features=relu", "linear:features=exp"}, exact{"softmax", "uniform"};
const Specs laws{"gaussian", "ar1", "clustered"};
constexpr Index model_d = 64;
const std::string experiment = "sparsity:by_row=false";

const std::string words_of_heads = "Real heads have d = 64; with fewer, those dimensions that carry their logits best.";

const Description text{.name = "key-size",
                       .summary = "Whether larger keys relieve the density of linear attention",
                       .formula =
                           "Larger keys do not relieve the density of linear attention: rows of elementwise features "
                           "come nearer to average pooling as d grows.",
                       .reference = "Su 2021, kexue.fm/archives/8338"};

Index length(RecipeSize size) { return size == RecipeSize::smoke ? 64 : size == RecipeSize::quick ? 512 : 2048; }

std::vector<Index> key_sizes(RecipeSize size) {
  if (size == RecipeSize::smoke) return {4, 64};
  if (size == RecipeSize::quick) return {4, 16, 64, 256};
  return {4, 16, 64, 128, 256, 512};
}

Index length_of_heads(RecipeSize size) { return std::min<Index>(length(size), 1024); }

std::vector<Index> key_sizes_of_heads(RecipeSize size) {
  std::vector<Index> all = key_sizes(size);
  std::erase_if(all, [](Index d) { return d > model_d; });
  return all;
}

std::string input_of(const RealHead& head, Index key_size) {
  return head.input() + ",key_size=" + std::to_string(key_size);
}

Specs all_methods() {
  Specs all = elementwise;
  all.insert(all.end(), exact.begin(), exact.end());
  return all;
}

std::vector<RunRequest> runs(RecipeSize size) {
  RunRequest request{.experiment = experiment,
                     .methods = all_methods(),
                     .inputs = laws,
                     .n = {length(size)},
                     .d = key_sizes(size),
                     .causal = false,
                     .replicates = size == RecipeSize::smoke   ? 2
                                   : size == RecipeSize::quick ? 10
                                                               : 6};
  RunRequest heads = request;
  heads.inputs.clear();
  for (const RealHead& head : telling_heads(size))
    for (const Index d : key_sizes_of_heads(size)) heads.inputs.push_back(input_of(head, d));
  heads.n = {length_of_heads(size)};
  heads.d = {};
  heads.replicates = 1;
  return {request, heads};
}

Panel panel(const std::string& title, const nlohmann::json& inputs, Index n) {
  return {.title = title,
          .where = {{"experiment", experiment},
                    {"input", inputs},
                    {"causal", 0},
                    {"logit_scale", 1},
                    {"n", n},
                    {"method", all_methods()}},
          .x = {"d"},
          .x_label = "key size d",
          .x_scale = "log2",
          .y = "relative_support",
          .y_label = "effective support / n",
          .y_scale = "log10"};
}

std::vector<Figure> figures(RecipeSize size) {
  std::vector<Panel> panels, panels_of_heads;
  for (const auto& law : laws) panels.push_back(panel(law, law, length(size)));
  for (const RealHead& head : telling_heads(size)) {
    Specs inputs;
    for (const Index d : key_sizes_of_heads(size)) inputs.push_back(input_of(head, d));
    panels_of_heads.push_back(panel(head.name(), inputs, length_of_heads(size)));
  }
  return {
      figure("key-size", text, "Effective support against key size",
             fmt::format("n = {}, bidirectional, entries of Q and K of unit variance whatever d; 95 % intervals over "
                         "inputs. At 1 every row is the mean of V.",
                         length(size)),
             panels),
      figure("key-size-heads", text, "Effective support against key size on real heads",
             fmt::format("n = {}, bidirectional. {} Logits are scaled by d^-1/2 of the captured head.",
                         length_of_heads(size), words_of_heads),
             panels_of_heads)};
}

Samples support(const Results& results, const std::string& method, const std::string& input, Index d) {
  return results.scalar({{"method", method}, {"input", input}, {"d", d}}, "relative_support");
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
  Verdict verdict =
      below_where(1,
                  {fmt::format("Larger keys make linear attention denser, not sparser: d = {} against "
                               "{}, under elu, relu and exp features",
                               large, small),
                   Verdict::Outcome::pass, "against Su 2021, kexue.fm/archives/8338: larger keys relieve the density"},
                  regions);
  verdict.numbers = fmt::format("support at d = {} over that at d = {}, {}", small, large, verdict.numbers);
  return verdict;
}

// The same on real heads: nothing is drawn, so each ratio is what it is.
Verdict judge_heads(const Results& results, RecipeSize size) {
  const Index small = key_sizes_of_heads(size).front();
  std::vector<Region> regions;
  for (const auto& method : elementwise) {
    Region region{method, {}};
    for (const RealHead& head : telling_heads(size)) {
      const double few = support(results, method, input_of(head, small), small).at(0),
                   many = support(results, method, input_of(head, model_d), model_d).at(0);
      region.comparisons.push_back({head.name(), certain(few / many)});
    }
    regions.push_back(region);
  }
  Verdict verdict = below_where(
      1,
      {fmt::format("On real heads larger keys make linear attention denser as well: d = {} against the {} dimensions "
                   "that carry the logits best",
                   model_d, small),
       Verdict::Outcome::ambiguous},
      regions);
  verdict.numbers = fmt::format("support at d = {} over that at d = {}, {}", small, model_d, verdict.numbers);
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
      0.1,
      {fmt::format(
           "With keys of d = {} linear attention with elementwise features is within a tenth of average pooling",
           large),
       Verdict::Outcome::ambiguous},
      regions);
  verdict.numbers = "1 less support / n: " + verdict.numbers;
  return verdict;
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  return {judge_law(results, size), judge_relief(results, size), judge_heads(results, size)};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
