// Retrieval: whether a method still finds the one key that a query is aimed at, and how much weight it gives to it.
// Softmax gives nearly all weight to the needle (logit 12 among keys whose logits are N(0, 12^2 / 64)); sums of
// elementwise features give it a multiple of 1/n, however large its logit is.
#include <fmt/format.h>

#include "experiments/recipes/conventions.hpp"
#include "experiments/recipes/field.hpp"
#include "harness/runner/match.hpp"

namespace attnbench::needle_recipe {
namespace {

const Specs by_content{"top-k:k=8", "vq:codes=64", "routing:clusters=8", "improved-clustered:clusters=64,top=32"},
    others{"performer", "taylor", "nystrom", "linformer:r=32", "local:window=64"};
// Their kernels are the same for every n. ReLU and cosFormer are homogeneous: raw and scaled q and k are alike.
const Specs elementwise{"linear:inputs=unscaled",
                        "linear",
                        "linear:features=exp,inputs=unscaled",
                        "linear:features=exp",
                        "efficient:inputs=unscaled",
                        "efficient",
                        "linear:features=relu",
                        "cosformer"};
const std::string weight = "needle_weight";

Index draws_of(const Recipe& recipe) { return recipe.sized<Index>(2, 24, 32); }

Specs together(const std::vector<Specs>& all) {
  Specs joined;
  for (const Specs& names : all) joined.insert(joined.end(), names.begin(), names.end());
  return joined;
}

void draw(Recipe& recipe, const Cells& all) {
  std::vector<Panel> panels;
  for (const bool of_weight : {false, true})
    for (const auto& [title, methods] :
         {std::pair{"keys by content", by_content}, {"elementwise features", elementwise}, {"others", others}}) {
      // Only curves of raw inputs: those of scaled inputs lie between them and the mean of V.
      Specs drawn{"softmax", "uniform"};
      for (const auto& method : methods)
        if (method != "linear" && method != "linear:features=exp" && method != "efficient") drawn.push_back(method);
      panels.push_back(
          {.title = title,
           .cells = all.methods(drawn),
           .x = {"n"},
           .x_label = "sequence length n",
           .x_scale = "log2",
           .y = of_weight ? weight : "needle_found",
           .y_label = of_weight ? "mean weight on the needle" : "share of rows with most weight on the needle",
           .y_scale = of_weight ? "log10" : "linear"});
    }
  recipe.figure("needle", "Finding one key among n",
                "The needle is the key that a query points at: its logit is 12, those of other keys are about N(0, "
                "1.5^2); d = 64, bidirectional; means over rows and over inputs and draws, with 95 % intervals. Found: "
                "the largest weight of the row is at the needle. A "
                "method can point at the needle with a weight that says nothing. Elementwise maps act on raw q and k.",
                panels);
}

void judge_elementwise(Recipe& recipe, const Cells& all, const std::vector<Index>& lengths) {
  const double rate = recipe.error_rate(2 * elementwise.size());
  const std::string on_needle = fmt::format(
      "the weight on the key that a query points at (the query is a multiple of that key, their logit is 12, logits of "
      "other keys are about N(0, 1.5^2)), the mean over rows; linear attention with 1 + elu and with exp and Efficient "
      "attention, on raw q and k and on q and k times d^-1/4, linear attention with ReLU, and cosFormer; d = 64, no "
      "mask, medians over {} inputs",
      draws_of(recipe));
  recipe.judge(
      {.text = "The weight that linear, Efficient and cosFormer attention give to one key whose logit is 12, among "
               "keys whose logits are N(0, 1.5^2), falls as 1/n",
       .source = "Su 2021, kexue.fm/archives/8338, section 集中注意",
       .quotation = "它的注意力是比较稠密的，在序列长度较大的时候，它往往就很接近平均池化了。 (its attention is rather "
                    "dense; when "
                    "the sequence is long it is often very close to average pooling.)",
       .definition =
           fmt::format(
               "the exponent with which this number grows between n = {} and n = {}, one exponent for each input: ",
               lengths.front(), lengths.back()) +
           on_needle,
       .threshold = "between -1.25 and -0.75: within a quarter of -1, the exponent of 1/n; softmax attention has about "
                    "0. The quarter is our own choice. All eight must lie there. The source speaks of density, which a "
                    "weight that "
                    "falls as 1/n does not prove: it may be any multiple of 1/n",
       .because = "features are of one token each: the sum of a row grows as n, and one key's term in it does not"},
      [=] {
        std::vector<Comparison> comparisons;
        for (const auto& method : elementwise)
          comparisons.push_back(
              {method,
               median_of(exponents_between(all.method(method).n(lengths.front()).scalar(weight),
                                           all.method(method).n(lengths.back()).scalar(weight),
                                           static_cast<double>(lengths.back()) / static_cast<double>(lengths.front())),
                         rate)});
        return all_between(-1.25, -0.75, comparisons);
      });
  recipe.judge({.text = "How many times 1/n the weight is that linear, Efficient and cosFormer attention give to one "
                        "key whose logit is 12, among keys whose logits are N(0, 1.5^2)",
                .definition = fmt::format("n = {} times this number: ", lengths.back()) + on_needle,
                .threshold = "none is published: 2, 5 and 20 are there for the reader; softmax attention has nearly n",
                .expected = Ruling::measured,
                .because = "it depends on the map and on what it acts on"},
               [=] {
                 std::vector<Comparison> comparisons;
                 for (const auto& method : elementwise) {
                   Samples times = all.method(method).n(lengths.back()).scalar(weight);
                   for (auto& [replicate, value] : times) value *= static_cast<double>(lengths.back());
                   comparisons.push_back({method, median_of(times, rate)});
                 }
                 return values_of(comparisons, {2, 5, 20});
               });
}

void judge_others(Recipe& recipe, const Cells& all, Index n) {
  const Shape shape{.nq = n, .nk = n, .d = 64, .dv = 64};
  Specs cheap;
  for (const auto& method : together({by_content, others}))
    if (cost_of(Params("methods", method), shape, Match::Cost::flops).value_or(0) <= softmax_flops(n))
      cheap.push_back(method);
  const double rate = recipe.error_rate(cheap.size());
  recipe.judge({.text = "How large a share of a row's weight approximations at their default budgets give to one key "
                        "whose logit is 12, among keys whose logits are N(0, 1.5^2)",
                .definition = fmt::format(
                    "the weight on the key that a query points at (the query is a multiple of that key), the mean over "
                    "rows, n = {}, d = 64, no mask, medians over {} inputs and draws, of those methods that cost no "
                    "more FLOPs than softmax attention: {}. Softmax attention gives that key nearly all",
                    n, draws_of(recipe), fmt::join(cheap, ", ")),
                .threshold = "none is published: 0.1, 0.5 and 0.9 are there for the reader",
                .expected = Ruling::measured,
                .because = "nothing is known beforehand"},
               [=] {
                 std::vector<Comparison> comparisons;
                 for (const auto& method : cheap)
                   comparisons.push_back({method, median_of(all.method(method).n(n).scalar(weight), rate)});
                 return values_of(comparisons, {0.1, 0.5, 0.9});
               });
}

void write(Recipe& recipe) {
  const auto lengths = recipe.sized<std::vector<Index>>({64, 128}, {64, 128, 256}, {128, 256, 512, 1024});
  const Cells all = recipe.run({.experiment = "attention-error:by_row=false",
                                .methods = together({{"softmax", "uniform"}, by_content, elementwise, others}),
                                .inputs = {"needle"},
                                .n = lengths,
                                .causal = false,
                                .replicates = draws_of(recipe)});
  draw(recipe, all);
  judge_elementwise(recipe, all, lengths);
  judge_others(recipe, all, lengths.back());
}

const bool registered = add(RecipeEntry{
    .text = {.name = "needle",
             .summary = "Whether the method still finds the one key that a query is aimed at",
             .formula = "Softmax gives one key of n nearly all of the weight; how much do approximations give it?",
             .reference = "Su 2021, kexue.fm/archives/8338, for linear attention as average pooling"},
    .write = write});

}  // namespace
}  // namespace attnbench::needle_recipe
