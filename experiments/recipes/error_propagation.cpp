// How an approximation's error grows through layers: Performer's Fig. 14, with the weights of a real model and random
// ones. The method replaces softmax in every layer, with the same weights, and hidden states are compared.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/recipes/real_heads.hpp"
#include "experiments/recipes/through_layers.hpp"

namespace attnbench::error_propagation_recipe {
namespace {

constexpr size_t model_layers = 4;

struct Setting {
  std::string name, input;
  bool causal;
  std::string part;  // the region that it belongs to
  double logit_scale = 1;
};
// Random layers have logits of unit size, too large for random features at d = 64: the relative error of a weight is
// sqrt((e^|z|^2 - 1) / m), |z|^2 about 16. With logits divided by 32 it is 5 % at m = 256.
const std::vector<Setting> settings{
    {"trained model", "model", true, "trained model"},
    {"untrained model", "model:weights=initial", true, "untrained model"},
    {"trained model bidirectional", "model", false, "trained model"},
    {"random layers", "gaussian", true, "random layers"},
    {"random layers with logits over 32", "gaussian", true, "logits over 32", 1.0 / 32}};

// Methods with m random features, orthogonal unless the name is `independent`.
using Named = std::string (*)(const std::string& m);
std::string positive(const std::string& m) { return "performer:m=" + m; }
std::string trigonometric(const std::string& m) { return positive(m) + ",features=trig"; }
std::string independent(const std::string& m) { return positive(m) + ",projection=iid"; }
std::string mean_of_v(const std::string&) { return "uniform"; }

struct Measured {
  Index n;
  size_t law_layers;
  Specs budgets;
  std::vector<Specs> methods;  // one list per setting
  std::vector<Cells> cells;

  size_t layers(size_t setting) const {
    return settings[setting].input.starts_with("model") ? model_layers : law_layers;
  }
};

Measured run(Recipe& recipe) {
  Measured all{.n = recipe.sized<Index>(32, 48, 256),
               .law_layers = recipe.sized<size_t>(4, 8, 12),
               .budgets = recipe.sized<Specs>({"8", "32"}, {"64", "256"}),
               .methods = {},
               .cells = {}};
  for (const Setting& setting : settings) {
    Specs methods;
    for (const auto& m : all.budgets)
      for (const Named features : {positive, trigonometric, independent}) methods.push_back(features(m));
    methods.insert(methods.end(), {"linear", "uniform"});
    if (recipe.size() != RecipeSize::quick) methods.insert(methods.end(), {"vq:codes=32", "local:window=32"});
    if (!setting.causal) methods.push_back("nystrom:landmarks=32");
    all.cells.push_back(
        recipe.run({.experiment = fmt::format("depth:layers={},matrix=false", all.layers(all.cells.size())),
                    .methods = methods,
                    .inputs = {setting.input},
                    .n = {all.n},
                    .causal = setting.causal,
                    .logit_scale = setting.logit_scale,
                    .replicates = recipe.sized<Index>(2, texts)}));
    all.methods.push_back(methods);
  }
  return all;
}

void draw(Recipe& recipe, const Measured& all) {
  std::vector<Panel> panels;
  for (size_t i = 0; i < settings.size(); ++i) {
    Specs shown;
    for (const auto& method : all.methods[i])  // the smallest m is not plotted
      if (method.find("m=" + all.budgets[0]) == std::string::npos) shown.push_back(method);
    panels.push_back(through_layers(settings[i].name, all.cells[i].methods(shown), "output_error",
                                    "|X' - X| / |X|  (Frobenius)", 1));
    panels.back().interval = "median";
  }
  recipe.figure(
      "error-propagation", "Error of the hidden state through layers",
      fmt::format("Against the same weights with softmax in every layer (error 0); medians over {} draws or texts, "
                  "n = {}, {} random features. The project's byte-level model as it is, before training, and read in "
                  "both directions, which it was not trained for (Nystroem has no causal form); causal layers of "
                  "random weights with LayerNorm, MLP and skip connections, as they are and with logits over 32. A "
                  "head that returns the mean of V (uniform) looks at no key.",
                  texts, all.n, all.budgets[1]),
      panels);
}

// The error after the last layer: `first` over `second`, by setting and m.
std::vector<Region> against(const Recipe& recipe, const Measured& all, const std::vector<size_t>& where, Named first,
                            Named second) {
  const double rate = recipe.error_rate(where.size() * all.budgets.size());
  std::vector<Region> regions;
  for (const size_t i : where)
    for (const auto& m : all.budgets) {
      const auto error = [&](Named method) { return all.cells[i].method(method(m)).scalar("final_output_error"); };
      region(regions, settings[i].part)
          .comparisons.push_back(
              {fmt::format("{}, m = {}", settings[i].name, m), median_ratio(error(first), error(second), rate)});
    }
  return regions;
}

std::vector<Comparison> comparisons_of(const std::vector<Region>& regions) {
  std::vector<Comparison> all;
  for (const Region& one : regions) all.insert(all.end(), one.comparisons.begin(), one.comparisons.end());
  return all;
}

// The error after the first layer over that after the last, for the method whose error grows least.
Finding judge_growth(const Recipe& recipe, const Measured& all) {
  size_t count = 0;
  for (const Specs& methods : all.methods) count += methods.size();
  std::vector<Region> regions;
  for (size_t i = 0; i < settings.size(); ++i) {
    const size_t layers = all.layers(i);
    std::vector<Estimate> ratios;
    for (const auto& method : all.methods[i]) {
      const Cells one = all.cells[i].method(method);
      ratios.push_back(median_ratio(one.element("output_error", layers, 0),
                                    one.element("output_error", layers, layers - 1), recipe.error_rate(count)));
    }
    region(regions, settings[i].part).comparisons.push_back({settings[i].name, greatest_of(ratios)});
  }
  return below_where(1, regions);
}

void write(Recipe& recipe) {
  const Measured all = run(recipe);
  draw(recipe, all);
  const auto where = [&](const std::string& trained) {
    return fmt::format(
        "{} layers of this project's byte-level model, trained ({}) and untrained (causal), and {} causal layers of "
        "random weights on gaussian tokens, with logits as they are and over 32; d = 64, n = {}, medians over {} texts "
        "or draws",
        model_layers, trained, all.law_layers, all.n, all.cells.front().all().front().replicates);
  };
  const std::string both_ways = where("causal, and read in both directions"), one_way = where("causal");
  const std::string error =
      "|X' - X| / |X| (Frobenius), X the hidden state with softmax attention in every layer and X' that with the "
      "method in every layer";
  const std::vector<size_t> everywhere{0, 1, 2, 3, 4}, causal{0, 1, 3, 4};
  recipe.judge(
      {.text = "With an approximation of attention in every layer, the hidden state errs more after the last layer "
               "than after the first, for every method",
       .source = "Choromanski et al. 2020, arXiv:2009.14794, section 4.3 and Fig. 14",
       .quotation = "Even if the approximation of the attention mechanism is tight, small errors can easily "
                    "propagate throughout multiple Transformer layers (e.g. MLPs, multiple heads), as we show "
                    "in Fig. 14 (Appendix).",
       .definition =
           error +
           ": after the first layer over after the last, of the method where this ratio is greatest; below 1 the error "
           "of every method has grown. Performer with positive, trigonometric and independent features, linear "
           "attention, the mean of V, and where listed vector quantisation, a local window and (read in both "
           "directions) Nystroemformer. The source says that errors can propagate, not that they always grow; " +
           both_ways,
       .threshold = "1: no growth",
       .expected = Ruling::open,
       .because = "the paper says \"can easily\"; later layers add to the tokens as well"},
      [=, &recipe] { return judge_growth(recipe, all); });
  recipe.judge(
      {.text = "With trigonometric features in every causal layer, the hidden state after the last layer errs more "
               "than with positive features, with 64 and with 256 projection vectors",
       .source = "Choromanski et al. 2020, arXiv:2009.14794, section 2.3",
       .quotation = "Applying random feature maps with potentially negative dimension-values (sin/cos) leads "
                    "to unstable behaviours, especially when kernel scores close to 0 (which is the case for "
                    "lots of entries of A corresponding to low relevance tokens) are approximated by "
                    "estimators with large variance in such regions.",
       .definition =
           error +
           ", after the last layer: with positive over with trigonometric features, as many projection vectors, "
           "orthogonal (" +
           fmt::format("m = {}", fmt::join(all.budgets, " and ")) +
           "), causal. The source speaks of the stability of training; nothing is trained here with either; " + one_way,
       .threshold = "1: equal errors",
       .expected = Ruling::depends,
       .because = "trigonometric features have the smaller variance where logits are small (logits over 32), "
                  "and the larger one where weights are near 0"},
      [=, &recipe] { return below_where(1, against(recipe, all, causal, positive, trigonometric)); });
  recipe.judge(
      {.text = "By what factor orthogonal vectors in place of independent ones change the error of the hidden state "
               "after all layers, with Performer's positive features in every layer",
       .definition = error +
                     ", after the last layer: of Performer's positive features with orthogonal over with independent "
                     "vectors; below 1 orthogonal ones err less; " +
                     fmt::format("m = {}; ", fmt::join(all.budgets, " and ")) + both_ways,
       .threshold = "none has a reason: the ratios are given, with the counts below 0.5, 0.9 and 1",
       .expected = Ruling::measured,
       .because = "orthogonality saves as |z|^4 e^-|z|^2 of a kernel estimate's mean squared error, z = q + k: "
                  "nothing at the logits of a trained model"},
      [=, &recipe] {
        return values_of(comparisons_of(against(recipe, all, everywhere, positive, independent)), {0.5, 0.9, 1});
      });
  recipe.judge(
      {.text = "How large the error of the hidden state after all layers is with the mean of V in every layer, "
               "relative to that with Performer in every layer",
       .definition = error +
                     ", after the last layer: of the mean of V in every layer over Performer (orthogonal positive "
                     "features) in every layer; above 1 Performer errs less; an interval that holds 1 is a tie, which "
                     "more replicates would not end; " +
                     fmt::format("m = {}; ", fmt::join(all.budgets, " and ")) + both_ways,
       .threshold = "none has a reason where they tie: the ratios of the mean of V to Performer are given, "
                    "with the counts below 0.5, 1 and 1.25",
       .expected = Ruling::measured,
       .because = "nothing is known beforehand"},
      [=, &recipe] {
        return values_of(comparisons_of(against(recipe, all, everywhere, mean_of_v, positive)), {0.5, 1, 1.25});
      });
}

const bool registered = add(RecipeEntry{
    .text = {.name = "error-propagation",
             .summary = "Error of hidden states against depth, at a model's own weights",
             .formula = "How does the error of an approximation in every layer grow with depth, and which features "
                        "keep it small?",
             .reference = "Choromanski et al. 2020, arXiv:2009.14794, Fig. 14"},
    .write = write});

}  // namespace
}  // namespace attnbench::error_propagation_recipe
