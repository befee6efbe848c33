// Whether sparsity goes with rank: kexue 9889 turns from rank to sparsity as what an attention matrix needs. Effective
// rank against the entropy of rows, over heads, over temperatures (the logits times logit_scale) and over methods, at
// one length: the same question asked in three ways, and Spearman's correlation for each.
#include <fmt/format.h>

#include "experiments/recipes/real_heads.hpp"
#include "harness/statistics/rank_correlation.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;

const std::string of_rank = "rank:by_index=false", of_rows = "sparsity:by_row=false";
const Specs laws{"gaussian", "clustered", "ar1", "low-rank", "sphere"};
const Specs approximations{
    "performer", "performer:m=64", "linear",      "linear:features=exp", "linear:features=relu", "efficient",
    "taylor",    "vq:codes=16",    "vq:codes=64", "local:window=4",      "local:window=16",      "local",
    "top-k:k=4", "top-k:k=16",     "top-k",       "truncated:window=4",  "truncated:window=16",  "truncated",
    "uniform"};
// What is drawn of these: names of all would fill the legend.
const Specs shown{"uniform",     "performer",       "linear",     "linear:features=exp",
                  "vq:codes=64", "local:window=16", "top-k:k=16", "truncated:window=16"};

const Description text{.name = "rank-and-sparsity",
                       .summary = "Whether sparse attention is attention of high rank",
                       .formula = "The sparser an attention matrix, the higher its effective rank.",
                       .reference = "Su 2021, kexue.fm/archives/8338; Su 2023, kexue.fm/archives/9889"};

Index length(RecipeSize size) { return size == RecipeSize::smoke ? 64 : size == RecipeSize::quick ? 256 : 1024; }

Specs scales(RecipeSize size) {
  if (size == RecipeSize::smoke) return {"1", "4"};
  if (size == RecipeSize::quick) return {"0.125", "0.5", "1", "2", "8"};
  return {"0.0625", "0.125", "0.25", "0.5", "1", "2", "4", "8", "16"};
}

Specs heads(RecipeSize size) { return inputs_of(size == RecipeSize::smoke ? telling_heads(size) : all_heads()); }

Specs everything(RecipeSize size) {
  Specs inputs = heads(size);
  inputs.insert(inputs.end(), laws.begin(), laws.end());
  return inputs;
}

std::vector<RunRequest> runs(RecipeSize size) {
  std::vector<RunRequest> all;
  for (const auto& experiment : {of_rank, of_rows}) {
    RunRequest softmax{.experiment = experiment,
                       .methods = {"softmax"},
                       .inputs = everything(size),
                       .n = {length(size)},
                       .causal = false,
                       .sweep = {{"logit_scale", scales(size)}}};

    RunRequest others = softmax, over_scales = softmax;
    others.methods = approximations;
    others.inputs = inputs_of(telling_heads(size));
    others.inputs.push_back("gaussian");
    others.sweep.clear();
    over_scales.methods = shown;
    over_scales.inputs = {"gaussian", telling_heads(size).back().input()};
    all.insert(all.end(), {softmax, others, over_scales});
  }
  return all;
}

std::vector<Figure> figures(RecipeSize size) {
  const RealHead head = telling_heads(size).back();

  Specs methods = shown;

  methods.insert(methods.begin(), "softmax");
  Panel scatter{.title = "softmax, heads and laws",
                .kind = "trade",
                .where = {{"experiment", {of_rank, of_rows}},
                          {"input", everything(size)},
                          {"causal", 0},
                          {"n", length(size)},
                          {"logit_scale", 1},
                          {"method", "softmax"}},
                .x = {"layer", "head"},
                .x_label = "mean entropy of a row (nat)",
                .y = "effective_rank",
                .y_label = "effective rank",
                .y_scale = "log2",
                .series = {"input"},
                .x_metric = "entropy",
                .points = {"input"}};
  Panel over_scales = scatter;
  over_scales.title = "softmax, the logits times " + scales(size).front() + " to " + scales(size).back();
  over_scales.where.erase("logit_scale");
  over_scales.points = {"input", "logit_scale"};
  Panel over_methods = scatter;
  over_methods.title = "methods on " + head.name();
  over_methods.where["method"] = methods;
  over_methods.where["input"] = head.input();
  over_methods.x = {};
  over_methods.series = {"method"};
  Panel over_laws = over_methods;
  over_laws.title = "methods on gaussian";
  over_laws.where["input"] = "gaussian";

  std::vector<Panel> curves;
  for (const auto& [experiment, metric, label] :
       {std::tuple<std::string, std::string, std::string>{of_rank, "effective_rank", "effective rank"},
        {of_rows, "relative_support", "effective support / n"}})
    for (const auto& [title, input] :
         {std::pair<std::string, std::string>{"gaussian", "gaussian"}, {head.name(), head.input()}})
      curves.push_back(
          {.title = title,
           .where =
               {{"experiment", experiment}, {"input", input}, {"causal", 0}, {"n", length(size)}, {"method", methods}},
           .x = {"logit_scale"},
           .x_label = "factor of the logits",
           .x_scale = "log2",
           .y = metric,
           .y_label = label,
           .y_scale = "log10"});
  const std::string shape = fmt::format("n = {}, bidirectional", length(size));
  return {
      figure("rank-and-sparsity", text, "Effective rank against entropy",
             shape + ". Each point is one matrix: of a head of the byte-level transformer, or of one draw of a law.",
             {scatter, over_scales, over_methods, over_laws}),
      figure("rank-and-sparsity-over-scale", text, "Rank and sparsity against the scale of the logits",
             shape + ", d = 64. Sharper logits make softmax sparser and of higher rank; elementwise features follow "
                     "neither.",
             curves)};
}

// Correlation of effective rank with entropy over so many matrices: below 0, the sparser has the higher rank.
class Question {
 public:
  Question(const Results& results, double rate) : results_(results), rate_(rate) {}

  void add(const std::string& method, const std::string& input, const std::string& scale) {
    const nlohmann::json where{{"method", method}, {"input", input}, {"logit_scale", std::stod(scale)}};
    const auto of = [&](const std::string& experiment, const char* metric) {
      nlohmann::json cell = where;
      cell["experiment"] = experiment;
      return results_.scalar(cell, metric);
    };

    const Samples rank = of(of_rank, "effective_rank"), entropy = of(of_rows, "entropy");
    if (!rank.contains(0) || !entropy.contains(0)) return;  // rows with negative entries have no entropy
    ranks_.push_back(rank.at(0));
    entropies_.push_back(entropy.at(0));
  }
  Region region(const std::string& name) const {
    const double found = rank_correlation(ranks_, entropies_);
    return {
        fmt::format("{} ({} matrices)", name, ranks_.size()),
        {{"", {found, rank_correlation_interval(found, ranks_.size(), 1 - rate_), static_cast<Index>(ranks_.size())}}}};
  }

 private:
  const Results& results_;
  double rate_;
  std::vector<double> ranks_, entropies_;
};

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  const auto inputs = inputs_of(telling_heads(size));
  const double rate = share_of_error_rate(3 + inputs.size());
  Question over_heads(results, rate), over_scales(results, rate), over_laws(results, rate);
  for (const auto& input : heads(size)) over_heads.add("softmax", input, "1");
  for (const auto& scale : scales(size)) {
    for (const auto& input : heads(size)) over_scales.add("softmax", input, scale);
    for (const auto& law : laws) over_laws.add("softmax", law, scale);
  }
  std::vector<Region> regions{over_heads.region("the heads of the model"),
                              over_scales.region("heads and scales of their logits"),
                              over_laws.region("laws and scales of their logits")};
  for (const auto& input : inputs) {
    Question over_methods(results, rate);
    over_methods.add("softmax", input, "1");
    for (const auto& method : approximations) over_methods.add(method, input, "1");
    regions.push_back(over_methods.region("methods on " + input));
  }
  Verdict verdict = below_where(
      0, {"The sparser the attention matrix, the higher its effective rank", Verdict::Outcome::ambiguous}, regions);
  verdict.numbers =
      "Spearman's correlation of effective rank with entropy, as if the matrices were independent: " + verdict.numbers;
  return {verdict};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
