// How concentrated attention rows are. methods.md I10: the density of linear attention depends on its map and on
// whether the map acts on raw q and k, as in the papers, or on q and k times d^-1/4. The noise of the features makes
// the rows of a Performer of finite m more concentrated. Softmax itself is sparse only if logits are large. ReLU,
// ReLU^2 and cosFormer are homogeneous: raw and scaled q and k give the same rows.
#include <fmt/format.h>

#include "experiments/recipes/real_heads.hpp"

namespace attnbench::sparsity_recipe {
namespace {

const std::string exp_raw = "linear:features=exp,inputs=unscaled", elu_raw = "linear:inputs=unscaled",
                  exp_scaled = "linear:features=exp", elu_scaled = "linear";
const Specs homogeneous{"linear:features=relu", "linear:features=relu2", "cosformer"};
const Specs as_published{exp_raw, elu_raw, "linear:features=relu", "linear:features=relu2", "cosformer"};
const Specs laws{"gaussian", "gaussian:scale=0.5", "clustered"};
// Records means over rows: values for every row would make the results file too large.
const std::string experiment = "sparsity:by_row=false", support = "relative_support";

Specs all_methods() {
  Specs all = as_published;
  all.insert(all.end(), {exp_scaled, elu_scaled, "softmax", "performer", "uniform"});
  return all;
}

struct Runs {
  Cells laws, heads, head_over_n;  // heads: only at the longest n; the others: at every n
  std::vector<Index> lengths;
};

Runs run(Recipe& recipe) {
  const auto heads = telling_heads(recipe);
  RunRequest request{.experiment = experiment,
                     .methods = all_methods(),
                     .inputs = laws,
                     .n = recipe.sized<std::vector<Index>>({16, 64}, {16, 64, 256}, {32, 64, 128, 256, 512}),
                     .causal = false,
                     .replicates = recipe.sized<Index>(2, 32)};
  Runs runs{.lengths = request.n};
  runs.laws = recipe.run(request);
  request.causal = {};
  request.inputs = {heads[heads.size() / 2].input()};
  request.replicates = recipe.sized<Index>(2, 20, texts);
  runs.head_over_n = recipe.run(request);
  request.n = {request.n.back()};
  runs.heads = run_on(recipe, request, telling_heads_of_models(recipe));
  return runs;
}

Panel panel(const std::string& title, const Cells& cells, const std::string& metric, const std::string& label,
            const std::string& scale) {
  return {.title = title,
          .cells = cells.methods(
              {exp_raw, elu_raw, exp_scaled, "linear:features=relu2", "cosformer", "softmax", "performer", "uniform"}),
          .x = {"n"},
          .x_label = "sequence length n",
          .x_scale = "log2",
          .y = metric,
          .y_label = label,
          .y_scale = scale};
}

void draw(Recipe& recipe, const Runs& runs) {
  const auto heads = telling_heads(recipe);
  const std::string real = heads[heads.size() / 2].name();
  std::vector<Panel> panels;
  for (const auto& [metric, label, scale] : {std::tuple{support, "effective support / n", "log10"},
                                             {"fraction_below", "share of entries below 1/(10 n)", "linear"}})
    for (const auto& [title, cells] : {std::pair<std::string, Cells>{"gaussian", runs.laws.input("gaussian")},
                                       {"gaussian, scale 0.5", runs.laws.input("gaussian:scale=0.5")},
                                       {real, runs.head_over_n}})
      panels.push_back(panel(title, cells, metric, label, scale));
  recipe.figure(
      "sparsity", "Effective support and concentration of the rows",
      "Effective support exp(H) over the number of keys that a row sees (1 is average pooling) and the share of "
      "entries below 1/(10 n); means over rows and over 32 inputs with 95 % intervals, d = 64, bidirectional. The "
      "layer and head are of the project's byte-level model: causal, its texts are the inputs. Maps act on raw "
      "q and k where it says unscaled.",
      panels);
}

// 1 - support / n: 0 is average pooling.
Samples away(const Cells& one) {
  Samples values = one.scalar(support);
  for (auto& [replicate, value] : values) value = 1 - value;
  return values;
}

Statement density(const std::string& maps, const std::string& heads) {
  return {
      .text = "How far linear attention with " + maps + " is from average pooling, on heads of " + three_models,
      .source = "Su 2021, kexue.fm/archives/8338, section 集中注意",
      .quotation =
          "它的注意力是比较稠密的，在序列长度较大的时候，它往往就很接近平均池化了。 (its attention is rather dense; "
          "when the "
          "sequence is long it is often very close to average pooling.)",
      .definition =
          "1 - e/s, mean over rows: e = exp(H) the effective support of a row, H the entropy of its weights, s the "
          "number of keys that the row sees. 0 is average pooling, 1 - 1/s all weight on one key. " +
          heads,
      .threshold = "the source says \"often very close\" and gives none: 0.01, 0.1 and 0.5 are there for the reader",
      .expected = Ruling::measured,
      .because = "the outcome depends on the map and on what it acts on"};
}

void judge_density(Recipe& recipe, const Cells& cells, Index n) {
  const auto heads = telling_heads_of_models(recipe);
  struct Group {
    std::string maps;
    Specs methods;
  };
  const std::vector<Group> groups{{"exponentials of raw q and k", {exp_raw}},
                                  {"1 + elu of raw q and k", {elu_raw}},
                                  {"ReLU, ReLU^2 or cosFormer features", homogeneous},
                                  {"exponentials or 1 + elu of q and k times d^-1/4", {exp_scaled, elu_scaled}}};
  for (const Group& group : groups) {
    const double rate = recipe.error_rate(group.methods.size() * heads.size());
    recipe.judge(density(group.maps, heads_in_words(heads, n)), [=] {
      std::vector<Comparison> comparisons;
      for (const auto& method : group.methods)
        for (const RealHead& head : heads)
          comparisons.push_back({fmt::format("{}, {}", method, head.name()),
                                 median_of(away(cells.method(method).input(head.input())), rate)});
      return values_of(comparisons, {0.01, 0.1, 0.5});
    });
  }
}

// One region per law, and one per model for its heads: the ratios of the methods' supports to softmax's.
std::vector<Region> over_softmax(const std::vector<LawOrHead>& inputs, const Cells& all, const Specs& methods,
                                 double rate) {
  std::vector<Region> regions;
  for (const LawOrHead& input : inputs) {
    const Cells cells = all.input(input.input);
    for (const auto& method : methods)
      region(regions, input.part)
          .comparisons.push_back(
              {input.within(methods.size() > 1 ? method : ""),
               median_ratio(cells.method(method).scalar(support), cells.method("softmax").scalar(support), rate)});
  }
  return regions;
}

void judge_against_softmax(Recipe& recipe, const Runs& runs) {
  const auto heads = telling_heads_of_models(recipe);
  std::vector<LawOrHead> inputs;
  for (const auto& law : laws) inputs.push_back({law, law});
  inputs = laws_and_heads(inputs, heads);
  const Cells cells = runs.laws.n(runs.lengths.back()) + runs.heads;
  const double of_all = recipe.error_rate(as_published.size() * inputs.size()),
               of_one = recipe.error_rate(inputs.size());
  const std::string where = fmt::format(
      "effective support: exp of the entropy of a row's weights, over the number of keys that the row sees, mean over "
      "rows. Normal inputs of standard deviation 0.5 and 1 and inputs around 16 random centres, no mask, n = {}, d = "
      "64, medians over inputs. {}",
      runs.lengths.back(), heads_in_words(heads, runs.lengths.back()));
  recipe.judge(
      {.text = "With each of five feature maps, the rows of linear attention have a larger effective support than "
               "those of softmax attention",
       .source = "Su 2021, kexue.fm/archives/8338, section 集中注意",
       .quotation = "它是直接内积的结果，没有得到e^x的进一步放大，所以它的注意力是比较稠密的 (it is the result of a "
                    "direct inner "
                    "product, without the further amplification by e^x, so its attention is rather dense)",
       .definition = "the effective support of the rows over that of softmax attention, of exp and 1 + elu of raw q "
                     "and k, ReLU, ReLU^2 and cosFormer, as their papers have them; a law holds if all five do, and a "
                     "model if all five do on each of its heads; " +
                     where,
       .threshold = "1: as dense as softmax",
       .expected = Ruling::open,
       .because = "dense where channels average out; of raw q and k exponentials amplify as softmax does"},
      [=] { return above_where(1, over_softmax(inputs, cells, as_published, of_all)); });
  recipe.judge(
      {.text =
           "Performer's rows with 256 random features have a smaller effective support than those of softmax attention",
       .definition = "the effective support of Performer's rows over that of softmax attention; a model holds if each "
                     "of its heads does; " +
                     where,
       .threshold = "1: as dense as softmax",
       .expected = Ruling::depends,
       .because = "noise adds to what concentrates a row, and cannot where softmax has few keys already"},
      [=] { return below_where(1, over_softmax(inputs, cells, {"performer"}, of_one)); });
}

void judge_softmax(Recipe& recipe, const Cells& cells, Index n) {
  const auto heads = telling_heads_of_models(recipe);
  const double rate = recipe.error_rate(heads.size());
  recipe.judge(
      {.text = "Over how large a share of the keys that they see the rows of softmax attention spread, on heads of " +
               three_models,
       .source = "Su 2021, kexue.fm/archives/8338, section 集中注意",
       .quotation = "只要各个q·k本身能拉开一定差距 [...] "
                    "剩下的概率都很接近于0了，这说明标准Attention是有潜力“集中注意力”的 (as long as the q.k "
                    "differ enough [...] the remaining probabilities are all close to 0, which shows that standard "
                    "attention has the potential to concentrate)",
       .definition = "e/s, mean over rows: e = exp(H) the effective support of a row, H the entropy of its weights, s "
                     "the number of keys that the row sees; 1 is average pooling. " +
                     heads_in_words(heads, n),
       .threshold = "the source speaks of a potential and gives none: 0.05, 0.1, 0.25 and 0.5 are there for the reader",
       .expected = Ruling::measured,
       .because = "it depends on how large the logits of a head are"},
      [=] {
        std::vector<Comparison> comparisons;
        for (const RealHead& head : heads)
          comparisons.push_back(
              {head.name(), median_of(cells.method("softmax").input(head.input()).scalar(support), rate)});
        return values_of(comparisons, {0.05, 0.1, 0.25, 0.5});
      });
}

void write(Recipe& recipe) {
  const Runs runs = run(recipe);
  draw(recipe, runs);
  judge_density(recipe, runs.heads, runs.lengths.back());
  judge_softmax(recipe, runs.heads, runs.lengths.back());
  judge_against_softmax(recipe, runs);
}

const bool registered =
    add(RecipeEntry{.text = {.name = "sparsity",
                             .summary = "Concentration of the attention rows",
                             .formula = "Is softmax attention sparse and linear attention dense, near average pooling?",
                             .reference = "Su 2021, kexue.fm/archives/8338; Su 2023, kexue.fm/archives/9889"},
                    .write = write});

}  // namespace
}  // namespace attnbench::sparsity_recipe
