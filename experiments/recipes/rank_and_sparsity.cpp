// Whether sparsity and rank are correlated: Su (kexue 9889) first says that an attention matrix needs rank, later that
// it needs sparsity. Effective rank against the entropy of rows at one length, over heads, over temperatures (the
// logits times logit_scale) and over methods, with Spearman's correlation for each.
#include <fmt/format.h>

#include "experiments/recipes/real_heads.hpp"
#include "harness/statistics/rank_correlation.hpp"

namespace attnbench::rank_and_sparsity_recipe {
namespace {

const std::string of_rank = "rank:by_index=false", of_rows = "sparsity:by_row=false";
const Specs laws{"gaussian", "clustered", "ar1", "low-rank", "sphere"};
const Specs elementwise{"linear",
                        "linear:inputs=unscaled",
                        "linear:features=exp",
                        "linear:features=exp,inputs=unscaled",
                        "linear:features=relu",
                        "linear:features=relu,inputs=unscaled"};
const Specs others{"performer:m=64",      "performer",       "taylor",    "vq:codes=16", "vq:codes=64",
                   "local:window=4",      "local:window=16", "top-k:k=4", "top-k:k=16",  "truncated:window=4",
                   "truncated:window=16", "uniform"};
// The methods in the figure: the names of all would fill the legend.
const Specs shown{"softmax",     "uniform",         "performer",  "linear",
                  "vq:codes=64", "local:window=16", "top-k:k=16", "truncated:window=16"};

struct Measured {
  Index n;
  std::vector<double> scales;
  std::vector<RealHead> heads, of_others, with_methods;  // of the byte-level model, of pretrained ones, of both
  RealHead drawn;                                        // of with_methods
  Specs methods;
  Cells cells;

  Samples of(const std::string& experiment, const char* metric, const std::string& method, const std::string& input,
             double scale) const {
    return cells.where({{"experiment", experiment}, {"method", method}, {"input", input}, {"logit_scale", scale}})
        .scalar(metric);
  }
};

Measured run(Recipe& recipe) {
  Measured all{
      .n = recipe.sized<Index>(48, 64, 256),
      .scales = recipe.sized<std::vector<double>>({1, 4}, {0.25, 1, 4}, {0.0625, 0.25, 0.5, 1, 2, 4, 16}),
      .heads = recipe.smoke() ? std::vector<RealHead>{dense_head, typical_head, concentrated_head} : all_heads(),
      .of_others = pretrained_heads(recipe),
      .with_methods = recipe.sized<std::vector<RealHead>>({typical_head}, {typical_head}, all_heads()),
      .drawn = {},
      .methods = {"softmax"},
      .cells = {}};
  all.drawn = all.with_methods.back();
  all.with_methods.insert(all.with_methods.end(), all.of_others.begin(), all.of_others.end());
  all.methods.insert(all.methods.end(), elementwise.begin(), elementwise.end());
  all.methods.insert(all.methods.end(), others.begin(), others.end());
  Specs scales;
  for (const double scale : all.scales) scales.push_back(fmt::format("{}", scale));
  const auto request = [&](const std::string& experiment, const Specs& methods, const Specs& on, const Specs& at) {
    return RunRequest{.experiment = experiment,
                      .methods = methods,
                      .inputs = on,
                      .n = {all.n},
                      .sweep = {{"logit_scale", at}},
                      .replicates = recipe.sized<Index>(3, texts)};
  };
  for (const auto& experiment : {of_rank, of_rows}) {
    for (const auto& heads : {all.heads, all.of_others})
      all.cells = all.cells + run_on(recipe, request(experiment, {"softmax"}, {}, scales), heads);
    all.cells = all.cells + recipe.run(request(experiment, {"softmax"}, laws, scales)) +
                run_on(recipe, request(experiment, all.methods, {}, {"1"}), all.with_methods) +
                recipe.run(request(experiment, all.methods, {"gaussian"}, {"1"})) +
                recipe.run(request(experiment, shown, {"gaussian", all.drawn.input()}, scales));
  }
  return all;
}

void draw(Recipe& recipe, const Measured& all) {
  const RealHead head = all.drawn;
  const Cells unscaled = all.cells.where({{"logit_scale", 1}});
  Specs sources = inputs_of(all.heads);
  sources.insert(sources.end(), laws.begin(), laws.end());
  Panel scatter{.title = "softmax, heads and laws",
                .kind = "trade",
                .cells = unscaled.method("softmax").where({{"input", sources}}),
                .x = {"layer", "head"},
                .x_label = "mean entropy of a row (nat)",
                .y = "effective_rank",
                .y_label = "effective rank",
                .y_scale = "log2",
                .series = {"input"},
                .x_metric = "entropy",
                .points = {"input"}};
  Panel over_scales = scatter;
  over_scales.title = fmt::format("softmax, the logits times {} to {}", all.scales.front(), all.scales.back());
  over_scales.cells = all.cells.method("softmax").where({{"input", sources}});
  over_scales.points = {"input", "logit_scale"};
  std::vector<Panel> points{scatter, over_scales}, curves;
  for (const auto& [title, input] : {std::pair{head.name(), head.input()}, {std::string("gaussian"), laws[0]}}) {
    scatter.title = "methods on " + title;
    scatter.cells = unscaled.input(input).methods(shown);
    scatter.x = {};
    scatter.series = {"method"};
    points.push_back(scatter);
  }
  for (const auto& [experiment, metric, label] :
       {std::tuple<std::string, std::string, std::string>{of_rank, "effective_rank", "effective rank"},
        {of_rows, "relative_support", "effective support / n"}})
    for (const auto& [title, input] : {std::pair{std::string("gaussian"), laws[0]}, {head.name(), head.input()}})
      curves.push_back({.title = title,
                        .cells = all.cells.where({{"experiment", experiment}, {"input", input}}).methods(shown),
                        .x = {"logit_scale"},
                        .x_label = "factor of the logits",
                        .x_scale = "log2",
                        .y = metric,
                        .y_label = label,
                        .y_scale = "log10"});
  const std::string shape = fmt::format(
      "n = {}, d = 64; heads of the project's byte-level model with its causal mask, laws without a mask; means over "
      "{} "
      "texts or draws. ",
      all.n, texts);
  recipe.figure("rank-and-sparsity", "Effective rank against entropy",
                shape + "Each point is a head, a law or a method.", points);
  recipe.figure("rank-and-sparsity-over-scale", "Rank and sparsity against the scale of the logits",
                shape + "Sharper logits make softmax sparser and of higher rank; elementwise features follow neither.",
                curves);
}

struct Matrix {
  std::string method, input;
  double scale;
};

// Effective ranks and entropies of matrices, by text or draw. Methods whose rows have negative entries are left out:
// such a row has no entropy.
struct Points {
  std::map<Index, std::vector<double>> ranks, entropies;
  size_t matrices = 0;

  Points(const Measured& all, const std::vector<Matrix>& of) {
    for (const auto& [method, input, scale] : of) {
      const Samples rank = all.of(of_rank, "effective_rank", method, input, scale),
                    entropy = all.of(of_rows, "entropy", method, input, scale);
      if (rank.empty() || entropy.empty()) continue;
      ++matrices;
      for (const auto& [replicate, value] : rank) {
        ranks[replicate].push_back(value);
        entropies[replicate].push_back(entropy.at(replicate));
      }
    }
  }
};

// Spearman's correlation over the matrices of one text or draw: the median over texts, which are independent.
Comparison within_texts(const Recipe& recipe, const Measured& all, const std::string& name,
                        const std::vector<Matrix>& of, size_t intervals) {
  const Points points(all, of);
  Samples correlations;
  for (const auto& [replicate, ranks] : points.ranks)
    correlations[replicate] = rank_correlation(ranks, points.entropies.at(replicate));
  return {fmt::format("{} ({} matrices)", name, points.matrices),
          median_of(correlations, recipe.error_rate(intervals))};
}

// All heads on all texts as one sample, with an interval that allows for dependence within heads and within texts.
Finding over_all(const Recipe& recipe, const Measured& all, const std::vector<Matrix>& heads) {
  const Points points(all, heads);
  std::vector<double> ranks, entropies;
  std::vector<std::vector<size_t>> clusterings(2);
  for (const auto& [replicate, values] : points.ranks)
    for (size_t head = 0; head < values.size(); ++head) {
      ranks.push_back(values[head]);
      entropies.push_back(points.entropies.at(replicate)[head]);
      clusterings[0].push_back(head);
      clusterings[1].push_back(static_cast<size_t>(replicate));
    }
  Estimate found = certain(rank_correlation(ranks, entropies));
  if (!recipe.smoke())
    found.interval = clustered_rank_correlation_interval(ranks, entropies, clusterings, recipe.error_rate(1));
  found.count = static_cast<Index>(ranks.size());
  return values_of({{"all heads and texts", found}});
}

void write(Recipe& recipe) {
  const Measured all = run(recipe);
  draw(recipe, all);

  std::vector<Matrix> heads, scaled_heads, scaled_laws;
  for (const RealHead& head : all.heads) heads.push_back({"softmax", head.input(), 1});
  for (const double scale : all.scales) {
    for (const RealHead& head : all.heads) scaled_heads.push_back({"softmax", head.input(), scale});
    for (const auto& law : laws) scaled_laws.push_back({"softmax", law, scale});
  }
  const std::string
      correlation =
          "Spearman's correlation of the effective rank exp(H), H the entropy of the singular values over their sum, "
          "with the mean entropy of the rows",
      byte_heads = fmt::format("n = {}, d = 64, heads of this project's byte-level model with its causal mask", all.n),
      su = "Su 2021, kexue.fm/archives/8338, section 集中注意",
      two_sides =
          "稀疏性和前一节提到的秩是有密切关联的，甚至可以说它们是“一体两面”：适当的稀疏化方法能提高矩阵的秩！ "
          "(sparsity is closely related to the rank of the previous section, one may even say that "
          "they are \"two sides of one thing\": a suitable way of making it sparse can raise the "
          "rank of the matrix!)";
  recipe.judge(
      {.text = "The sparser the rows of an attention matrix, the higher its effective rank tends to be: over heads, "
               "over factors of logits and over methods",
       .source = su,
       .quotation = two_sides,
       .definition =
           correlation + ", " + byte_heads +
           fmt::format(
               " and laws (normal, clustered, AR(1), of low rank, on a sphere) without a mask: over the matrices of "
               "one text or draw, median over {} of them; below 0 sparser goes with higher rank. The matrices are "
               "softmax's of the heads of the byte-level model; of the heads of each model with their logits times {} "
               "to {}; of the laws with the same factors; and, on each head of a model, those of softmax, linear "
               "attention, Performer, Taylor features, vector-quantised keys, windows, top-k and the mean of V "
               "(methods with negative weights are left out; on the byte-level model on {}). {}. The source says that "
               "a suitable way of making a matrix sparse can raise its rank",
               texts, all.scales.front(), all.scales.back(),
               all.with_methods.size() == all.of_others.size() + 1 ? all.drawn.name() : "all heads",
               heads_in_words(all.of_others, all.n)),
       .threshold = "0: no relation. The source speaks of the rank; that it means the effective rank is our "
                    "reading, since under a mask every rank is full",
       .expected = Ruling::open,
       .because = "sharper logits make one matrix sparser and of higher rank; whether heads and methods line "
                  "up is not known"},
      [=, &recipe] {
        std::map<std::string, std::vector<Matrix>> of_others;  // softmax's, by part
        for (const RealHead& head : all.of_others)
          for (const double scale : all.scales) of_others[head.part()].push_back({"softmax", head.input(), scale});
        const size_t intervals = 3 + of_others.size() + all.with_methods.size();
        const auto within = [&](const std::string& name, const std::vector<Matrix>& of) {
          return within_texts(recipe, all, name, of, intervals);
        };
        const std::string byte_part = all.heads.front().part();
        std::vector<Region> regions{{byte_part, {within("heads", heads)}},
                                    {byte_part + " and factors", {within("heads and factors", scaled_heads)}},
                                    {"laws and factors", {within("laws and factors", scaled_laws)}}};
        for (const auto& [part, matrices] : of_others)
          regions.push_back({part + " and factors", {within("heads and factors", matrices)}});
        for (const RealHead& head : all.with_methods) {
          std::vector<Matrix> methods;
          for (const auto& method : all.methods) methods.push_back({method, head.input(), 1});
          region(regions, "methods on " + head.part()).comparisons.push_back(within(head.name(), methods));
        }
        return below_where(0, regions);
      });
  recipe.judge(
      {.text = "How strongly the effective rank of softmax attention is correlated with the entropy of its rows, over "
               "heads of this project's byte-level model and texts",
       .source = su,
       .quotation = two_sides,
       .definition =
           correlation + ", " + byte_heads +
           fmt::format(
               ": softmax attention of {} heads on {} texts as one sample, with the interval for points that depend by "
               "head and by text (jackknives over both); negative where sparser rows go with higher rank",
               all.heads.size(), texts),
       .threshold = "the source has none: the correlation is given. Its interval is as good as 12 heads can "
                    "make it, which at this error rate is not exact",
       .expected = Ruling::measured,
       .because = "twelve heads of one model decide little about other heads"},
      [=, &recipe] { return over_all(recipe, all, heads); });
}

const bool registered =
    add(RecipeEntry{.text = {.name = "rank-and-sparsity",
                             .summary = "Whether sparse attention is attention of high rank",
                             .formula = "Is the sparser attention matrix the one of higher effective rank?",
                             .reference = "Su 2021, kexue.fm/archives/8338; Su 2023, kexue.fm/archives/9889"},
                    .write = write});

}  // namespace
}  // namespace attnbench::rank_and_sparsity_recipe
