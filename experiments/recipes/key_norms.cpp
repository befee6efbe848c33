// What the factors exp(-|x|^2/2) of positive features are good for: source 000's simplification of the Performer.
//   without that of the query      the same attention for the same vectors: it cancels in the normalisation
//   without that of the key        the same where all keys have one norm; else, for m -> infinity (methods.md A11),
//                                  softmax(q.k + |k|^2/2)
// For entries of N(0, s^2) the standard deviation of |k|^2/2 is s^2 / sqrt(2), whatever d.
#include <fmt/format.h>

#include "experiments/recipes/real_heads.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;

const std::string both = "performer", without_query = "performer:features=simplified,key_norm=true",
                  without_key = "performer:features=simplified";
const std::string same = "agreement:[performer]", tilted = "tilted-softmax:key_norms=0.5";
const Specs of_many_features{"performer:projection=iid", "performer:features=simplified,projection=iid"};

// At d = 4, where so many features are enough to see what they tend to.
const std::string few_dimensions = "gaussian:scale=0.7";

const Description text{.name = "key-norms",
                       .summary = "The Performer without its norm factors",
                       .formula =
                           "The factors exp(-|q|^2/2) and exp(-|k|^2/2) of positive random features may be left out: "
                           "the first cancels, and without the second the attention is approximately the same.",
                       .reference = "Su 2021, kexue.fm/archives/8338"};

Specs scales(RecipeSize size) {
  if (size == RecipeSize::smoke) return {"0.1", "1"};
  return {"0.1", "0.2", "0.35", "0.5", "0.7", "1"};
}

Specs budgets(RecipeSize size) {
  if (size == RecipeSize::smoke) return {"64", "1024"};
  if (size == RecipeSize::quick) return {"256", "1024", "4096", "16384"};
  return {"256", "1024", "4096", "16384", "65536"};
}

Index length(RecipeSize size) { return size == RecipeSize::smoke ? 64 : size == RecipeSize::quick ? 256 : 1024; }
Index replicates(RecipeSize size) { return size == RecipeSize::smoke ? 2 : size == RecipeSize::quick ? 8 : 20; }

std::vector<RunRequest> runs(RecipeSize size) {
  const RunRequest of_query{.experiment = same,
                            .methods = {without_query},
                            .inputs = {"gaussian:scale=0.5", "gaussian"},
                            .n = {length(size)},
                            .causal = false,
                            .replicates = 2};
  RunRequest of_key = of_query, limit = of_query, on_heads = of_query, drawn = of_query;
  of_key.methods = {without_key};
  of_key.inputs = {"sphere", "sphere:radius=4"};
  limit.experiment = on_heads.experiment = drawn.experiment = tilted;
  limit.methods = on_heads.methods = {"softmax"};
  limit.inputs = {"gaussian"};
  limit.sweep = {{"scale", scales(size)}};
  limit.replicates = drawn.replicates = replicates(size);
  on_heads.inputs = inputs_of(telling_heads(size));
  on_heads.replicates = 1;
  drawn.methods = of_many_features;
  drawn.inputs = {few_dimensions};
  drawn.n = {64};
  drawn.d = {4};
  drawn.sweep = {{"m", budgets(size)}};
  return {of_query, of_key, limit, on_heads, drawn};
}

std::vector<Figure> figures(RecipeSize size) {
  const Panel limit{.title = "gaussian, d = 64: of infinitely many features",
                    .where = {{"experiment", tilted}, {"input", "gaussian"}, {"method", "softmax"}, {"d", 64}},
                    .x = {"scale"},
                    .x_label = "standard deviation of the entries of Q and K",
                    .x_scale = "log10",
                    .y = "tilted_to_softmax",
                    .y_label = "|softmax(q.k + |k|^2/2) - A| / |A|",
                    .y_scale = "log10"};
  Panel to_softmax{.title = "gaussian, d = 4, scale 0.7: distance to softmax(q.k)",
                   .where = {{"experiment", tilted}, {"input", few_dimensions}, {"method", of_many_features}},
                   .x = {"m"},
                   .x_label = "features m",
                   .x_scale = "log2",
                   .y = "difference_to_softmax",
                   .y_label = "|A' - A| / |A|  (Frobenius)",
                   .y_scale = "log10"};
  Panel to_tilted = to_softmax;
  to_tilted.title = "the same: distance to softmax(q.k + |k|^2/2)";
  to_tilted.y = "difference_to_tilted";
  to_tilted.y_label = "|A' - L| / |L|  (Frobenius)";
  return {figure("key-norms", text, "Positive features without the norm factor of keys",
                 fmt::format("Left: how far the attention that many features tend to is from softmax, n = {}. The "
                             "spread of |k|^2/2 grows with the square of the scale. Then, at n = 64: the Performer "
                             "tends to softmax as features grow, and without the norms of keys to another attention. "
                             "Means with 95 % intervals over inputs and draws.",
                             length(size)),
                 {limit, to_softmax, to_tilted})};
}

// The largest difference over replicates of what should be the same to rounding.
Verdict identical(const Results& results, const Statement& statement, const std::string& method, const Specs& inputs) {
  std::vector<Bounded> all;
  for (const auto& input : inputs)
    for (const auto& [replicate, difference] :
         results.scalar({{"experiment", same}, {"method", method}, {"input", input}}, "relative_difference"))
      all.push_back({"|A' - A| / |A| on " + input, difference, 1e-12});
  return all_at_most(statement, all);
}

Verdict judge_bias(const Results& results, RecipeSize size) {
  std::vector<std::pair<std::string, std::string>> inputs;
  for (const auto& scale : scales(size)) inputs.emplace_back("entries of scale " + scale, "gaussian:scale=" + scale);
  for (const RealHead& head : telling_heads(size)) inputs.emplace_back(head.name(), head.input());
  std::vector<Region> regions;
  for (const auto& [name, input] : inputs) {
    const Samples moved = results.scalar(
        {{"experiment", tilted}, {"method", "softmax"}, {"input", input}, {"n", length(size)}}, "tilted_to_softmax");
    regions.push_back({name, {{"", mean_of(moved, share_of_error_rate(inputs.size()))}}});
  }
  return below_where(0.1,
                     {"Leaving out the factor exp(-|k|^2/2) of keys moves the attention matrix by less than a tenth, "
                      "with infinitely many features",
                      Verdict::Outcome::conditional},
                     regions);
}

Verdict judge_limit(const Results& results, RecipeSize size) {
  const auto difference = [&](const std::string& metric) {
    return results.scalar({{"experiment", tilted},
                           {"method", of_many_features[1] + ",m=" + budgets(size).back()},
                           {"input", few_dimensions}},
                          metric);
  };
  Verdict verdict = all_below(
      1,
      "Without the norm factor of keys, random features tend to softmax(q.k + |k|^2/2): with many features they are "
      "nearer to it than to softmax(q.k)",
      {{"m = " + budgets(size).back(),
        ratio(difference("difference_to_tilted"), difference("difference_to_softmax"), share_of_error_rate(1))}});
  verdict.numbers = "distance to it over distance to softmax: " + verdict.numbers;
  return verdict;
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  return {identical(results,
                    "Without the factor exp(-|q|^2/2) of queries the attention of positive features is the same, for "
                    "the same random vectors",
                    without_query, {"gaussian:scale=0.5", "gaussian"}),
          identical(results,
                    "Where all keys have one norm, the attention of positive features is the same without the factor "
                    "exp(-|k|^2/2) of keys",
                    without_key, {"sphere", "sphere:radius=4"}),
          judge_bias(results, size), judge_limit(results, size)};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
