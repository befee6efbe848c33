// Rank collapse: what attention alone does to tokens, and what the network around it does about that. Dong et al. 2021.
// The residual res(X) = X - 1 mean(X)^T is relative to |X|, in the norm sqrt(|.|_1 |.|_inf), with its root.
//
// Why the rate is what it is: with tokens 1 x^T + R the logits are q.k + (terms of the row, which softmax cancels)
// + r^T k + O(R^2), the same r in all rows, so A = 1 a^T + O(R^2) and res(A X) = O(R^3): cubed at every layer. That
// wants attention that depends on tokens alone and logits of moderate size. A causal mask, or rotary positions, keep
// rows of A apart even for equal tokens: then each layer takes a constant share, and the collapse is exponential.
#include <fmt/format.h>

#include "experiments/recipes/real_heads.hpp"
#include "experiments/recipes/through_layers.hpp"

namespace attnbench {
namespace {

const Description text{
    .name = "rank-collapse",
    .summary = "Rank collapse: tokens through layers of attention, with and without what is around it",
    .formula =
        "Attention alone makes all tokens the same, doubly exponentially with depth; skip connections, and to a "
        "lesser degree MLPs, keep them apart.",
    .reference = "Dong et al. 2021, arXiv:2103.03404"};

constexpr double sharp = 16;  // times the logits
constexpr double half = 0.5;
constexpr size_t model_layers = 4;
const std::string untrained = "model:weights=initial", trained = "model";
const std::vector<std::string> methods{"softmax", "performer:m=64", "linear", "local:window=16", "uniform"};

struct Around {
  const char *name, *skip, *feed_forward;
};
constexpr Around alone{"attention alone", "false", "false"}, mlp{"MLP", "false", "true"},
    skips{"skip", "true", "false"}, full{"skip and MLP", "true", "true"};
constexpr Around parts[] = {alone, mlp, skips, full};

size_t law_layers(RecipeSize size) { return size == RecipeSize::smoke ? 4 : size == RecipeSize::quick ? 8 : 12; }
Index tokens(RecipeSize size) { return size == RecipeSize::smoke ? 32 : size == RecipeSize::quick ? 128 : 256; }
Index replicates(RecipeSize size) { return size == RecipeSize::smoke ? 2 : size == RecipeSize::quick ? 8 : 12; }

bool is_alone(const Around& around) { return std::string(around.name) == alone.name; }

// The product of attention matrices is that of attention alone.
std::string experiment(const Around& around, size_t layers) {
  return fmt::format("depth:layers={},skip={},feed_forward={}{}", layers, around.skip, around.feed_forward,
                     is_alone(around) ? "" : ",matrix=false");
}

std::vector<RunRequest> runs(RecipeSize size) {
  std::vector<RunRequest> all;
  for (const Around& around : parts)
    for (const bool causal : {false, true}) {
      const auto request = [&](const std::vector<std::string>& inputs, size_t layers) {
        return RunRequest{.experiment = experiment(around, layers),
                          .methods = is_alone(around) ? methods : std::vector{methods[0]},
                          .inputs = inputs,
                          .n = {tokens(size)},
                          .causal = causal,
                          .replicates = replicates(size)};
      };
      all.push_back(request({"gaussian"}, law_layers(size)));
      all.push_back(request({untrained, trained}, model_layers));
      all.back().replicates = 1;  // one text, and nothing is drawn for softmax
      if (causal) continue;
      all.push_back(request({"gaussian"}, law_layers(size)));
      all.back().methods = {"softmax"};
      all.back().logit_scale = sharp;
    }
  return all;
}

nlohmann::json of_softmax(RecipeSize size, const std::string& input, bool causal, double logit_scale = 1) {
  return {{"method", "softmax"},
          {"input", input},
          {"n", tokens(size)},
          {"causal", causal ? 1 : 0},
          {"logit_scale", logit_scale}};
}

// The four lines of the paper's figure.
Panel four_lines(const std::string& title, nlohmann::json where) {
  Panel panel = through_layers(title, std::move(where), "residual_composite", "|res(X)| / |X|  (composite norm)", 0);
  panel.interval = "median";
  panel.series = {"skip", "feed_forward"};
  return panel;
}

Panel of_methods(const std::string& title, nlohmann::json where, const std::string& metric, const std::string& label,
                 Index first) {
  where.update({{"method", methods}, {"skip", alone.skip}, {"feed_forward", alone.feed_forward}});
  Panel panel = through_layers(title, std::move(where), metric, label, first);
  panel.interval = "median";
  return panel;
}

std::vector<Figure> figures(RecipeSize size) {
  Panel contraction = of_methods("gaussian bidirectional", of_softmax(size, "gaussian", false), "dobrushin_product",
                                 "Dobrushin coefficient of A_l ... A_1", 1);
  contraction.theory = "dobrushin_bound";
  return {figure("rank-collapse", text, "How far apart tokens are, through layers of softmax attention",
                 "Residual off the tokens' mean, relative. Layers of random weights with LayerNorm (gaussian, "
                 "d = 64, one head), and the byte-level transformer before and after training, with its MLP (GELU) and "
                 "skip connections left out or in. Logits of unit size without a mask: doubly exponential, down to the "
                 "rounding of a double. A mask, positions or sharp logits slow it down. The model is one sample.",
                 {four_lines("gaussian bidirectional", of_softmax(size, "gaussian", false)),
                  four_lines("gaussian causal", of_softmax(size, "gaussian", true)),
                  four_lines("gaussian with logits times 16", of_softmax(size, "gaussian", false, sharp)),
                  four_lines("untrained model bidirectional", of_softmax(size, untrained, false)),
                  four_lines("untrained model causal", of_softmax(size, untrained, true)),
                  four_lines("trained model causal", of_softmax(size, trained, true))}),
          figure("rank-collapse-methods", text, "The same for approximations, attention alone",
                 "Every layer and head has the method. Lines without markers: the product of the layers' Dobrushin "
                 "coefficients, which bounds that of the product for stochastic matrices. The rank is that of the "
                 "product of attention matrices; of the model, those of head 1. uniform is the null: all tokens are "
                 "the same after one layer.",
                 {of_methods("gaussian bidirectional", of_softmax(size, "gaussian", false), "residual_composite",
                             "|res(X)| / |X|  (composite norm)", 0),
                  of_methods("trained model causal", of_softmax(size, trained, true), "residual_composite",
                             "|res(X)| / |X|  (composite norm)", 0),
                  contraction,
                  of_methods("trained model causal", of_softmax(size, trained, true), "product_effective_rank",
                             "effective rank of A_l ... A_1", 1)})};
}

struct Setting {
  std::string name;
  nlohmann::json where;
  size_t layers;
};

std::vector<Setting> settings(RecipeSize size) {
  const size_t layers = law_layers(size);
  return {{"gaussian bidirectional", of_softmax(size, "gaussian", false), layers},
          {"gaussian causal", of_softmax(size, "gaussian", true), layers},
          {"gaussian with logits times 16", of_softmax(size, "gaussian", false, sharp), layers},
          {"untrained model bidirectional", of_softmax(size, untrained, false), model_layers},
          {"untrained model causal", of_softmax(size, untrained, true), model_layers},
          {"trained model bidirectional", of_softmax(size, trained, false), model_layers},
          {"trained model causal", of_softmax(size, trained, true), model_layers}};
}

nlohmann::json with(const Setting& setting, const Around& around) {
  nlohmann::json where = setting.where;
  where["skip"] = around.skip;
  where["feed_forward"] = around.feed_forward;
  return where;
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  std::vector<Region> collapsing, single, kept;
  const auto all = settings(size);
  const double rate = share_of_error_rate(all.size());
  for (const Setting& setting : all) {
    const auto final_residual = [&](const Around& around) {
      return results.scalar(with(setting, around), "final_residual");
    };
    const auto start = element(results, with(setting, alone), "residual_composite", setting.layers + 1, 0);
    const Estimate left = ratio_of(final_residual(alone), start, rate);
    collapsing.push_back({setting.name, {{"", left}}});
    if (left.value < half)  // of what does not collapse there is no rate
      single.push_back(
          {setting.name,
           {{"", mean_of(orders_of_collapse(results, with(setting, alone), setting.layers + 1, tokens(size)), rate)}}});
    kept.push_back({setting.name, {{"", ratio_of(final_residual(alone), final_residual(full), rate)}}});
  }
  return {
      // Published for attention of any weights. Positions and a mask slow it down; nothing says how far in 4 layers.
      below_where(half, {"Attention alone more than halves the tokens' relative residual", Verdict::Outcome::ambiguous},
                  collapsing),
      // 3 without a mask; 1 where a mask or positions keep rows apart.
      below_where(
          2,
          {"Attention alone makes tokens the same exponentially with depth, not doubly so: the order of collapse "
           "is below 2",
           Verdict::Outcome::conditional, "against Dong et al. 2021, arXiv:2103.03404: doubly exponentially"},
          single),
      below_where(1, {"With skip connections and MLP the tokens stay farther apart than with attention alone"}, kept)};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
