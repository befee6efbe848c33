// Rank collapse: how attention alone makes tokens equal, and how the rest of the network prevents it. Dong et al. 2021.
// The residual res(X) = X - 1 mean(X)^T is relative to |X|, in the norm sqrt(|.|_1 |.|_inf), with its root.
//
// Explanation of the rate: with tokens 1 x^T + R the logits are q.k + (terms of the row, which softmax cancels)
// + r^T k + O(R^2), the same r in all rows, so A = 1 a^T + O(R^2) and res(A X) = O(R^3): cubed at every layer. This
// assumes that attention depends only on tokens and that logits are of moderate size. With a causal mask or rotary
// positions the rows of A differ even for equal tokens: each layer then removes a constant share, and the collapse is
// exponential. Logits times 16 collapse in some draws and not in others, so medians are judged.
#include <fmt/format.h>

#include <limits>

#include "experiments/recipes/real_heads.hpp"
#include "experiments/recipes/through_layers.hpp"
#include "harness/measures/collapse.hpp"

namespace attnbench::rank_collapse_recipe {
namespace {

constexpr size_t model_layers = 4;
const std::vector<std::string> methods{"softmax", "performer:m=64", "linear", "local:window=16", "uniform"};

struct Around {
  const char *name, *skip, *feed_forward;
};
constexpr Around alone{"attention alone", "false", "false"}, full{"skip and MLP", "true", "true"};
constexpr Around parts[] = {alone, {"MLP", "false", "true"}, {"skip", "true", "false"}, full};

struct Tokens {
  std::string name, input;
  bool causal;
  std::string part;  // the region that it belongs to
  double logit_scale = 1;

  bool of_model() const { return input.starts_with("model"); }
};
// The first is the setting of the theorem: no mask, no positions, bounded weights.
const std::vector<Tokens> settings{{"gaussian bidirectional", "gaussian", false, "random layers"},
                                   {"gaussian causal", "gaussian", true, "random layers"},
                                   {"gaussian with logits times 16", "gaussian", false, "logits times 16", 16},
                                   {"untrained model bidirectional", "model:weights=initial", false, "untrained model"},
                                   {"untrained model causal", "model:weights=initial", true, "untrained model"},
                                   {"trained model bidirectional", "model", false, "trained model"},
                                   {"trained model causal", "model", true, "trained model"}};

struct Measured {
  Index n;
  size_t law_layers;
  Cells cells;

  size_t layers(const Tokens& setting) const { return setting.of_model() ? model_layers : law_layers; }
  Cells of(const Tokens& setting) const {
    return cells.where(
        {{"input", setting.input}, {"causal", setting.causal ? 1 : 0}, {"logit_scale", setting.logit_scale}});
  }
  Cells softmax(const Tokens& setting, const Around& around) const {
    return of(setting).where({{"method", "softmax"}, {"skip", around.skip}, {"feed_forward", around.feed_forward}});
  }
};

Measured run(Recipe& recipe) {
  Measured all{.n = recipe.sized<Index>(32, 64, 256), .law_layers = recipe.sized<size_t>(4, 8, 12), .cells = {}};
  for (const Tokens& setting : settings)
    for (const Around& around : parts) {
      const bool is_alone = &around == &parts[0];  // only then is the product of attention matrices meaningful
      all.cells =
          all.cells +
          recipe.run({.experiment = fmt::format("depth:layers={},skip={},feed_forward={}{}", all.layers(setting),
                                                around.skip, around.feed_forward, is_alone ? "" : ",matrix=false"),
                      .methods = is_alone && setting.logit_scale == 1 ? methods : std::vector{methods[0]},
                      .inputs = {setting.input},
                      .n = {all.n},
                      .causal = setting.causal,
                      .logit_scale = setting.logit_scale,
                      .replicates = recipe.sized<Index>(2, texts)});
    }
  return all;
}

void draw(Recipe& recipe, const Measured& all) {
  const std::string residual = "|res(X)| / |X|  (composite norm)";
  std::vector<Panel> lines;
  for (const size_t i : {0u, 1u, 2u, 3u, 4u, 6u}) {
    lines.push_back(
        through_layers(settings[i].name, all.of(settings[i]).method("softmax"), "residual_composite", residual, 0));
    lines.back().interval = "median";
    lines.back().series = {"skip", "feed_forward"};
  }
  recipe.figure(
      "rank-collapse", "How far apart tokens are, through layers of softmax attention",
      fmt::format("Residual off the tokens' mean, relative; medians over {} draws or texts, n = {}. Layers of random "
                  "weights with LayerNorm (gaussian, d = 64, one head), and the project's byte-level model before and "
                  "after training, with its MLP (GELU) and skip connections left out or in. Logits of unit size "
                  "without a mask: doubly exponential, down to the rounding of a double. A mask, positions or sharp "
                  "logits slow it down.",
                  texts, all.n),
      lines);
  std::vector<Panel> of_methods;
  for (const auto& [setting, metric, label, first] :
       {std::tuple{settings[0], "residual_composite", residual, Index{0}},
        {settings[6], "residual_composite", residual, Index{0}},
        {settings[0], "dobrushin_product", "Dobrushin coefficient of A_l ... A_1", Index{1}},
        {settings[6], "product_effective_rank", "effective rank of A_l ... A_1", Index{1}}}) {
    const Cells cells = all.of(setting).where({{"skip", alone.skip}, {"feed_forward", alone.feed_forward}});
    of_methods.push_back(through_layers(setting.name, cells, metric, label, first));
    of_methods.back().interval = "median";
  }
  of_methods[2].theory = "dobrushin_bound";
  recipe.figure(
      "rank-collapse-methods", "The same for approximations, attention alone",
      fmt::format("Every layer and head has the method; medians over {} draws or texts, n = {}. Lines without "
                  "markers: the product of the layers' Dobrushin coefficients, which bounds that of the "
                  "product for stochastic matrices. The rank is that of the product of attention matrices; "
                  "of the model, those of head 1. uniform is the mean of V: all tokens are the same after "
                  "one layer.",
                  texts, all.n),
      of_methods);
}

// The order at which the residual falls, down to double rounding; 0 if it does not fall.
Samples orders(const Measured& all, const Tokens& setting) {
  const double floor = 16 * static_cast<double>(all.n) * std::numeric_limits<double>::epsilon();
  Samples samples;
  for (const auto& residuals : all.softmax(setting, alone).arrays("residual_composite", all.layers(setting) + 1))
    samples[static_cast<Index>(samples.size())] = order_of_convergence(residuals, floor).value_or(0);
  return samples;
}

void judge_orders(Recipe& recipe, const Measured& all) {
  const std::string order = fmt::format(
      "the order p at which the relative residual r of the tokens falls from one layer of attention alone to the next, "
      "r' = c r^p, down to rounding (1: exponentially; above 1: doubly exponentially; 0 where r does not fall); r = |X "
      "- 1 x^T| / |X|, x the mean token, in the norm sqrt(|.|_1 |.|_inf) of Dong et al. 2021 (who take the x that is "
      "best in that norm); median over {} draws or texts, n = {}",
      texts, all.n);
  recipe.judge(
      {.text = "Without mask and positions, layers of softmax attention alone with random weights make all tokens the "
               "same doubly exponentially with depth",
       .source = "Dong et al. 2021, arXiv:2103.03404, abstract and Theorem 2.2",
       .quotation = "Specifically, without skip connections or multi-layer perceptrons (MLPs), the output converges "
                    "doubly exponentially to a rank-1 matrix.",
       .definition = order + fmt::format("; {} layers with LayerNorm, weights N(0, 1 / fan in), one head, d = 64, "
                                         "normal tokens, logits of unit size, no mask",
                                         all.law_layers),
       .threshold = "2: halfway between 1, a constant share a layer, and 3, the cube of the theorem's bound",
       .because =
           "the theorem's bound cubes the residual at every layer, for bounded weights, no mask and no positions"},
      [=, &recipe] {
        return all_above(2, {{settings[0].name, median_of(orders(all, settings[0]), recipe.error_rate(1))}});
      });
  recipe.judge(
      {.text = "With a causal mask or rotary positions, the residual of tokens falls through softmax attention alone "
               "with an order below the theorem's 3, on random layers and on this project's byte-level model",
       .definition =
           order +
           fmt::format(
               "; {} random layers with a causal mask, and the {} layers of this project's byte-level model (rotary "
               "positions) before and after training, with its causal mask and without it; all must lie below",
               all.law_layers, model_layers),
       .threshold = "3: the theorem cubes the residual at every layer, without mask and positions",
       .because = "a mask and positions keep rows apart even for equal tokens, so that each layer takes a "
                  "constant share in the end"},
      [=, &recipe] {
        std::vector<Comparison> outside;
        for (const Tokens& setting : settings)
          if (setting.logit_scale == 1 && &setting != &settings[0])
            outside.push_back({setting.name, median_of(orders(all, setting), recipe.error_rate(settings.size() - 2))});
        return all_below(3, outside);
      });
  recipe.judge({.text = "In what share of draws softmax attention alone, through random layers with logits times 16, "
                        "makes tokens the same "
                        "doubly exponentially, and in what share it halves the residual",
                .definition =
                    fmt::format("the share of {} draws of normal tokens (d = 64) and weights whose order p is above 2, "
                                "and the share whose relative residual after {} layers is below half of that before; "
                                "no mask; p is ",
                                texts, all.law_layers) +
                    order,
                .threshold = "none is published; an order of 2 and a half are our own choice, and the shares are given",
                .expected = Ruling::measured,
                .because = "nothing is known beforehand"},
               [=, &recipe] {
                 const Cells one = all.softmax(settings[2], alone);
                 Index fast = 0, halved = 0, draws = 0;
                 for (const auto& [draw, p] : orders(all, settings[2])) fast += p > 2;
                 for (const auto& [draw, left] : quotients(one.scalar("final_residual"),
                                                           one.element("residual_composite", all.law_layers + 1, 0))) {
                   halved += left < 0.5;
                   ++draws;
                 }
                 const double rate = recipe.error_rate(2);
                 return values_of({{"share of order above 2", share_of(fast, draws, rate)},
                                   {"share below half", share_of(halved, draws, rate)}});
               });
}

void judge_residuals(Recipe& recipe, const Measured& all) {
  const double rate = recipe.error_rate(settings.size());
  const std::string where = fmt::format(
      "median over {} draws or texts, n = {}, {} layers of random weights (gaussian) or the {} of the project's "
      "byte-level model before and after training, with and without a causal mask; the relative residual is |X - 1 "
      "x^T| / |X|, x the mean token, in the norm sqrt(|.|_1 |.|_inf)",
      texts, all.n, all.law_layers, model_layers);
  recipe.judge(
      {.text = "By what factor layers of softmax attention alone change the relative residual of the tokens",
       .source = "Su 2021, kexue.fm/archives/8338, section 低秩问题, of Dong et al. 2021",
       .quotation = "如果没有残差和FFN，那么标准Attention有极大的风险退化为秩等于1的简单变换 (without residuals and "
                    "FFN standard attention runs a great risk of degenerating to a simple transformation of "
                    "rank 1)",
       .definition = "relative residual of the tokens after the last layer over that before the first; 0: all tokens "
                     "are the same, which is rank 1; " +
                     where + "; and random layers with logits times 16",
       .threshold = "the source has none: the ratios are given, with the counts below 0.5, 0.01 and 1e-6",
       .expected = Ruling::measured,
       .because = "the source gives no number"},
      [=] {
        std::vector<Comparison> left;
        for (const Tokens& setting : settings) {
          const Cells one = all.softmax(setting, alone);
          left.push_back(
              {setting.name, median_ratio(one.scalar("final_residual"),
                                          one.element("residual_composite", all.layers(setting) + 1, 0), rate)});
        }
        return values_of(left, {0.5, 0.01, 1e-6});
      });
  recipe.judge({.text = "Through layers of softmax attention, tokens stay farther apart with skip connections and MLPs "
                        "than with attention alone",
                .source = "Dong et al. 2021, arXiv:2103.03404, abstract",
                .quotation = "On the other hand, skip connections and MLPs stop the output from degeneration.",
                .definition = "relative residual of the tokens after the last layer with attention alone over that "
                              "with both skip connections and MLPs; for each of random layers, the untrained and the "
                              "trained model, the cases with and without a mask must both hold; " +
                              where,
                .threshold = "1: no difference",
                .because = "a skip connection adds the tokens as they were"},
               [=] {
                 std::vector<Region> kept;
                 for (const Tokens& setting : settings)
                   if (setting.logit_scale == 1)
                     region(kept, setting.part)
                         .comparisons.push_back(
                             {setting.name, median_ratio(all.softmax(setting, alone).scalar("final_residual"),
                                                         all.softmax(setting, full).scalar("final_residual"), rate)});
                 return below_where(1, kept);
               });
}

void write(Recipe& recipe) {
  const Measured all = run(recipe);
  draw(recipe, all);
  judge_orders(recipe, all);
  judge_residuals(recipe, all);
}

const bool registered = add(RecipeEntry{
    .text = {.name = "rank-collapse",
             .summary = "Rank collapse: tokens through layers of attention, with and without what is around it",
             .formula = "How fast does attention alone make all tokens the same, and do skip connections and MLPs keep "
                        "them apart?",
             .reference = "Dong et al. 2021, arXiv:2103.03404"},
    .write = write});

}  // namespace
}  // namespace attnbench::rank_collapse_recipe
