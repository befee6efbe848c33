// How concentrated attention rows are: source 000's second argument. methods.md I10: linear attention with elementwise
// features is near average pooling as n grows; a Performer of finite m is not, since the noise of its features
// concentrates its rows below what softmax has; and softmax itself is sparse only where logits are large.
#include <fmt/format.h>

#include <functional>

#include "experiments/recipes/real_heads.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;

const std::string exponential = "linear:features=exp";
const Specs drawn{"performer", "vq:codes=64"},
    given{"softmax", "linear", exponential, "local:window=16", "truncated:window=16", "uniform"};
const Specs laws{"gaussian", "gaussian:scale=0.5", "clustered"};

const Description text{.name = "sparsity",
                       .summary = "Concentration of the attention rows",
                       .formula =
                           "Softmax attention is sparse and linear attention dense, near average pooling as the "
                           "sequence grows.",
                       .reference = "Su 2021, kexue.fm/archives/8338; Su 2023, kexue.fm/archives/9889"};

// Means over rows: a row at a time would fill the results file.
const std::string experiment = "sparsity:by_row=false";

Index longest(RecipeSize size) { return size == RecipeSize::smoke ? 64 : size == RecipeSize::quick ? 512 : 1024; }

// Beyond, rows are streamed, and there is time for one draw of what the statement is about.
std::vector<Index> streamed(RecipeSize size) {
  if (size != RecipeSize::full) return {};
  return {4096, 16384};
}

Specs all_inputs(RecipeSize size) {
  Specs all = laws;
  for (const auto& head : inputs_of(telling_heads(size))) all.push_back(head);
  return all;
}

std::vector<RunRequest> runs(RecipeSize size) {
  const Index n = longest(size);
  const RunRequest with_draws{.experiment = experiment,
                              .methods = drawn,
                              .inputs = all_inputs(size),
                              .n = {n / 16, n / 8, n / 4, n / 2, n},
                              .causal = false,
                              .replicates = size == RecipeSize::full    ? 12
                                            : size == RecipeSize::quick ? 6
                                                                        : 2};
  RunRequest on_laws = with_draws, on_heads = with_draws;
  on_laws.methods = on_heads.methods = given;
  on_laws.inputs = laws;
  on_heads.inputs = inputs_of(telling_heads(size));
  on_heads.replicates = 1;
  std::vector<RunRequest> all{with_draws, on_laws, on_heads};
  if (!streamed(size).empty()) {
    RunRequest longer = on_laws;
    longer.methods = {"softmax", "linear", "uniform"};
    longer.inputs = {"gaussian"};
    longer.n = streamed(size);
    longer.replicates = 1;
    all.push_back(longer);
  }
  return all;
}

Specs all_methods() {
  Specs all = given;
  all.insert(all.end(), drawn.begin(), drawn.end());
  return all;
}

Panel panel(const std::string& title, const std::string& input, const std::string& metric, const std::string& label,
            const std::string& scale) {
  return {.title = title,
          .where = {{"experiment", experiment},
                    {"input", input},
                    {"causal", 0},
                    {"d", 64},
                    {"logit_scale", 1},
                    {"method", all_methods()}},
          .x = {"n"},
          .x_label = "sequence length n",
          .x_scale = "log2",
          .y = metric,
          .y_label = label,
          .y_scale = scale};
}

std::vector<Figure> figures(RecipeSize size) {
  const RealHead head = telling_heads(size).size() > 1 ? telling_heads(size)[1] : telling_heads(size)[0];
  const std::string real = "real head (" + head.name() + ")";
  return {figure(
      "sparsity", text, "Effective support and concentration of the rows",
      "Effective support exp(H) over n (1 is average pooling) and the share of entries below 1/(10 n); means over "
      "rows, 95 % intervals over inputs; bidirectional, d = 64. The real heads are those of the byte-level "
      "transformer.",
      {panel("gaussian", "gaussian", "relative_support", "effective support / n", "log10"),
       panel("gaussian, scale 0.5", "gaussian:scale=0.5", "relative_support", "effective support / n", "log10"),
       panel(real, head.input(), "relative_support", "effective support / n", "log10"),
       panel("gaussian", "gaussian", "fraction_below", "share of entries below 1/(10 n)", "linear"),
       panel("gaussian, scale 0.5", "gaussian:scale=0.5", "fraction_below", "share of entries below 1/(10 n)",
             "linear"),
       panel(real, head.input(), "fraction_below", "share of entries below 1/(10 n)", "linear")})};
}

Samples support(const Results& results, const std::string& method, const std::string& input, Index n) {
  return results.scalar({{"method", method}, {"input", input}, {"n", n}}, "relative_support");
}

// Away from average pooling by less than a tenth, and by less the longer the sequence.
Verdict judge_pooling(const Results& results, RecipeSize size) {
  const Specs inputs = all_inputs(size);
  const double rate = share_of_error_rate(2 * inputs.size());
  const Index n = longest(size);
  std::vector<Comparison> comparisons;
  for (const Specs elementwise{"linear", exponential}; const auto& method : elementwise)
    for (const auto& input : inputs) {
      Samples away = support(results, method, input, n);
      for (auto& [replicate, value] : away) value = 1 - value;
      comparisons.push_back({fmt::format("{} on {}", method, input), mean_of(away, rate)});
    }
  Verdict verdict = all_below(0.1,
                              {fmt::format("Linear attention with elementwise features (elu, exp) is dense: within a "
                                           "tenth of average pooling at n = {}",
                                           n),
                               Verdict::Outcome::pass, "Su 2021, kexue.fm/archives/8338 (source 000)"},
                              comparisons);
  verdict.numbers = "1 less support / n: " + verdict.numbers;
  return verdict;
}

// What `estimate` makes of each input's samples, an input a region.
std::vector<Region> over_inputs(RecipeSize size,
                                const std::function<Estimate(const std::string& input, double rate)>& estimate) {
  const Specs inputs = all_inputs(size);
  std::vector<Region> regions;
  for (const auto& input : inputs)
    regions.push_back({input, {{"", estimate(input, share_of_error_rate(inputs.size()))}}});
  return regions;
}

Verdict judge_softmax(const Results& results, RecipeSize size) {
  // Of normal logits of deviation s the support is exp(-s^2 / 2): 0.61 at 1.
  Verdict verdict = below_where(0.5,
                                {"Softmax attention is sparse: the effective support of its rows is less than half of "
                                 "the keys",
                                 Verdict::Outcome::conditional},
                                over_inputs(size, [&](const std::string& input, double rate) {
                                  return mean_of(support(results, "softmax", input, longest(size)), rate);
                                }));
  verdict.numbers = "support / n at " + verdict.numbers;
  return verdict;
}

Verdict judge_noise(const Results& results, RecipeSize size) {
  Verdict verdict =
      below_where(1,
                  {"The rows of Performer with 256 features are sparser than those of softmax, by the noise of its "
                   "features, and no "
                   "average pooling",
                   Verdict::Outcome::conditional, "against Su 2021, kexue.fm/archives/8338: linear attention is dense"},
                  over_inputs(size, [&](const std::string& input, double rate) {
                    return ratio_of(support(results, "performer", input, longest(size)),
                                    support(results, "softmax", input, longest(size)), rate);
                  }));
  verdict.numbers = "support over that of softmax at " + verdict.numbers;
  return verdict;
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  return {judge_pooling(results, size), judge_softmax(results, size), judge_noise(results, size)};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
