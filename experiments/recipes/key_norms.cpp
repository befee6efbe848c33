// Whether the factors exp(-|x|^2/2) of positive features matter.
//   without that of the query      the same attention for the same vectors: it cancels in the normalisation
//   without that of the key        the same if all keys have one norm; otherwise, for m -> infinity (methods.md A11),
//                                  softmax(q.k + |k|^2/2)
// For entries of N(0, s^2) the standard deviation of |k|^2/2 is s^2 / sqrt(2) at every d.
#include <fmt/format.h>

#include "experiments/recipes/conventions.hpp"
#include "experiments/recipes/identity.hpp"
#include "experiments/recipes/real_heads.hpp"

namespace attnbench::key_norms_recipe {
namespace {

const std::string with_norms = "performer:projection=iid",
                  without_norms = "performer:features=simplified,projection=iid";
const std::string tilted = "tilted-softmax:key_norms=0.5", moved = "tilted_to_softmax";

Specs scales(const Recipe& recipe) {
  return recipe.sized<Specs>({"0.1", "1"}, {"0.1", "0.2", "0.35", "0.5", "0.7", "1"});
}
Specs budgets(const Recipe& recipe) {
  return recipe.sized<Specs>({"64", "1024"}, {"128", "512", "2048", "8192"}, {"128", "512", "2048", "8192", "32768"});
}

struct Runs {
  Cells of_query, of_key, limit, heads, drawn;
};

Runs run(Recipe& recipe) {
  const RunRequest same{.experiment = "agreement:[performer]",
                        .methods = {"performer:features=simplified,key_norm=true"},
                        .inputs = {"gaussian:scale=0.5", "gaussian"},
                        .n = {recipe.sized<Index>(64, 256)},
                        .causal = false,
                        .replicates = 2};
  RunRequest of_key = same, limit = same;
  of_key.methods = {"performer:features=simplified"};
  of_key.inputs = {"sphere", "sphere:radius=4"};
  limit.experiment = tilted;
  limit.methods = {"softmax"};
  limit.inputs = {"gaussian"};
  limit.n = {recipe.sized<Index>(64, 128, 1024)};
  limit.sweep = {{"scale", scales(recipe)}};
  limit.replicates = recipe.sized<Index>(2, 32);
  RunRequest heads = limit, drawn = limit;
  heads.causal = {};
  heads.sweep = {};
  heads.replicates = recipe.sized<Index>(2, 18, texts);
  drawn.methods = {with_norms, without_norms};
  drawn.inputs = {"gaussian:scale=0.5"};
  drawn.replicates = recipe.sized<Index>(2, 48);
  drawn.n = {64};
  drawn.d = {4};  // so small that this many features come near the limit
  drawn.sweep = {{"m", budgets(recipe)}};
  return {recipe.run(same), recipe.run(of_key), recipe.run(limit),
          run_on(recipe, heads, telling_heads_of_models(recipe)), recipe.run(drawn)};
}

std::vector<Panel> panels(const Runs& runs) {
  const Panel limit{.title = "gaussian, d = 64: of infinitely many features",
                    .cells = runs.limit,
                    .x = {"scale"},
                    .x_label = "standard deviation of the entries of Q and K",
                    .x_scale = "log10",
                    .y = moved,
                    .y_label = "|softmax(q.k + |k|^2/2) - A| / |A|",
                    .y_scale = "log10"};
  Panel to_softmax{.title = "gaussian, d = 4, scale 0.5: distance to softmax(q.k)",
                   .cells = runs.drawn,
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
  return {limit, to_softmax, to_tilted};
}

void judge_identities(Recipe& recipe, const Runs& runs) {
  const std::string defined = fmt::format(
      "|A' - A| / |A| (Frobenius) of Performer's attention with and without the factor, for the same random vectors, n "
      "= {}, d = 64, bidirectional, {} inputs each; ",
      runs.of_key.all().front().asked.problem.shape.nk, runs.of_key.all().front().replicates);
  recipe.judge(
      {.text = "Without the factor exp(-|q|^2/2) of queries the attention of positive random features is the same",
       .source = "Su 2021, kexue.fm/archives/8338, section 简单推导",
       .quotation = "往q~里边乘以一个常数（哪怕这个常数跟q~有关），Performer的结果完全不改变 (Multiplying q~ by a "
                    "constant, even one that depends on q~, does not change the result of the Performer at "
                    "all.)",
       .definition = defined + "on normal q and k of standard deviation 0.5 and 1 before the scaling by d^-1/4",
       .threshold = "1e-12: an identity, to rounding",
       .because = "the factor is common to a row, and the normalisation cancels it"},
      [=] { return identity(runs.of_query, "relative_difference", 1e-12); });
  recipe.judge(
      {.text = "Where all keys have one norm, the attention of positive features is the same without the factor "
               "exp(-|k|^2/2) of keys",
       .source = "Su 2021, kexue.fm/archives/8338, section 简单推导",
       .quotation =
           "如果我们假设∥k∥^2不会波动太大，它并不是Attention的主要因素，那么这一项也相当于一个常数 (if we assume that "
           "|k|^2 does not fluctuate much and is not the main factor of the attention, then this "
           "term too amounts to a constant)",
       .definition = defined + "on keys uniform on a sphere, of radius 8 = sqrt(d) and of radius 4 before the scaling "
                               "by d^-1/4: the post's condition, met exactly",
       .threshold = "1e-12: an identity, to rounding",
       .because = "the factor is then common to all keys, and the normalisation cancels it"},
      [=] { return identity(runs.of_key, "relative_difference", 1e-12); });
}

// Judges the condition that |k|^2 does not fluctuate much.
Statement shift(std::string text, const std::string& where) {
  return {.text = std::move(text),
          .source = "Su 2021, kexue.fm/archives/8338, section 简单推导",
          .quotation =
              "如果我们假设∥k∥^2不会波动太大 [...] 那么最终的映射（近似地）等价 (if we assume that |k|^2 does not "
              "fluctuate "
              "much [...] the final map is (approximately) equivalent)",
          .definition =
              "|softmax(q.k + |k|^2/2) - A| / |A| (Frobenius), A = softmax(q.k): the bias that is left with infinitely "
              "many positive features, q and k times d^-1/4, d = 64. " +
              where,
          .threshold =
              "the source gives none: 0.1, 0.5 and 1 (as far off as the attention is large) are there for the "
              "reader",
          .expected = Ruling::measured,
          .because = "it grows with the spread of |k|^2/2, of which the post assumes that it is small"};
}

void judge_shift(Recipe& recipe, const Runs& runs) {
  const auto heads = telling_heads_of_models(recipe);
  const auto all_scales = scales(recipe);
  const double of_heads = recipe.error_rate(heads.size()), of_scales = recipe.error_rate(all_scales.size());
  recipe.judge(
      shift("How far leaving out the factor exp(-|k|^2/2) of keys moves the attention of infinitely many positive "
            "features on heads of " +
                three_models,
            heads_in_words(heads, runs.limit.all().front().asked.problem.shape.nk)),
      [=] {
        std::vector<Comparison> comparisons;
        for (const RealHead& head : heads)
          comparisons.push_back({head.name(), median_of(runs.heads.input(head.input()).scalar(moved), of_heads)});
        return values_of(comparisons, {0.1, 0.5, 1});
      });
  recipe.judge(
      shift("How far leaving out the factor exp(-|k|^2/2) of keys moves the attention of infinitely many positive "
            "features on normal queries and keys",
            fmt::format("Entries of Q and K of standard deviation s = {} to {} before the scaling, so that |k|^2/2 has "
                        "the standard deviation s^2 / sqrt(2); n = {}, bidirectional, medians over {} inputs",
                        all_scales.front(), all_scales.back(), runs.limit.all().front().asked.problem.shape.nk,
                        runs.limit.all().front().replicates)),
      [=] {
        std::vector<Comparison> comparisons;
        for (const auto& scale : all_scales)
          comparisons.push_back(
              {"s = " + scale, median_of(runs.limit.input("gaussian:scale=" + scale).scalar(moved), of_scales)});
        return values_of(comparisons, {0.1, 0.5, 1});
      });
}

void judge_limit(Recipe& recipe, const Cells& drawn) {
  const auto all = budgets(recipe);
  const double error_rate = recipe.error_rate(4);
  const std::string &first = all[all.size() > 2 ? 1 : 0], &last = all.back();
  recipe.judge(
      {.text = "Positive random features tend to softmax(q.k + |k|^2/2) without the norm factor of keys and to "
               "softmax(q.k) with it: both distances fall about as m^-1/2",
       .definition =
           fmt::format("the distance of Performer's attention with and without the factor exp(-|k|^2/2) to its own "
                       "limit (Frobenius, over the limit's norm). One exponent for each replicate: log of the distance "
                       "at m = {1} over that at m = {0}, over log({1} / {0}); medians over {2} inputs and draws of "
                       "independent vectors. Normal q and k of standard deviation 0.5 before the scaling by d^-1/4, d "
                       "= 4, n = 64, bidirectional; both exponents must hold",
                       first, last, drawn.all().front().replicates),
       .threshold = "between -3/4 and -1/4: half way to 1/m, as a bias has, and to no fall at all",
       .because = "a mean over m independent features scatters as m^-1/2 around its expectation, which is the kernel "
                  "of the tilted softmax"},
      [=] {
        const auto rate = [&](const std::string& method, const std::string& metric) {
          return median_of(
              exponents_between(drawn.method(method + ",m=" + first).scalar(metric),
                                drawn.method(method + ",m=" + last).scalar(metric), std::stod(last) / std::stod(first)),
              error_rate);
        };
        return all_between(
            -0.75, -0.25,
            {{"without the factor, to softmax(q.k + |k|^2/2)", rate(without_norms, "difference_to_tilted")},
             {"with it, to softmax(q.k)", rate(with_norms, "difference_to_softmax")}});
      });
}

void write(Recipe& recipe) {
  const Runs runs = run(recipe);
  recipe.figure("key-norms", "Positive features without the norm factor of keys",
                fmt::format("Left: how far the attention that many features tend to is from softmax, n = {}. The "
                            "spread of |k|^2/2 grows with the square of the scale. Then, at n = 64: the Performer "
                            "tends to softmax as features grow, and without the norms of keys to another attention. "
                            "Bidirectional; means over 32 inputs, or 48 inputs and draws, with 95 % intervals.",
                            recipe.sized<Index>(64, 128, 1024)),
                panels(runs));
  judge_identities(recipe, runs);
  judge_shift(recipe, runs);
  judge_limit(recipe, runs.drawn);
}

const bool registered = add(
    RecipeEntry{.text = {.name = "key-norms",
                         .summary = "The Performer without its norm factors",
                         .formula = "May the factors exp(-|q|^2/2) and exp(-|k|^2/2) of positive random features be "
                                    "left out?",
                         .reference = "Su 2021, kexue.fm/archives/8338"},
                .write = write});

}  // namespace
}  // namespace attnbench::key_norms_recipe
