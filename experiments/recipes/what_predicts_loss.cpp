// Which measure of a head predicts the bits per byte that are lost when a method replaces it: errors of the method on
// that head, or properties of the head's own attention. Spearman's correlation over heads, methods and texts.
#include <fmt/format.h>

#include "experiments/recipes/real_heads.hpp"
#include "harness/statistics/rank_correlation.hpp"

namespace attnbench::what_predicts_loss_recipe {
namespace {

const std::string losses = "model-loss", errors = "attention-error:by_row=false", rows = "sparsity:by_row=false",
                  rank = "rank:by_index=false", logits = "rank:of=logits,by_index=false";

struct Predictor {
  std::string name, experiment, metric;
  bool of_method = true;  // false: of the head under exact attention
};
const std::vector<Predictor> predictors{
    {"error of the output", errors, "relative_output_error"},
    {"Frobenius error of the matrix", errors, "relative_frobenius"},
    {"L1 distance of rows (twice the mass that a pattern drops)", errors, "row_l1"},
    {"KL of the approximate rows to the exact ones", errors, "kl_estimate_to_exact"},
    {"effective rank of exact attention", rank, "effective_rank", false},
    {"effective support of exact attention", rows, "effective_support", false},
    {"Frobenius norm of the logits", logits, "frobenius_norm", false}};

std::string place_of(const RealHead& head) { return fmt::format("{}.{}", head.layer, head.head); }

struct Measured {
  Specs methods;
  Cells cells;

  Samples loss(const std::string& method, const RealHead& head) const {
    return cells.where({{"experiment", losses + ":replaced=" + place_of(head)}, {"method", method}})
        .scalar("excess_bits");
  }
  Samples of(const Predictor& one, const std::string& method, const RealHead& head) const {
    return cells
        .where(
            {{"experiment", one.experiment}, {"method", one.of_method ? method : "softmax"}, {"input", head.input()}})
        .scalar(one.metric);
  }
};

Measured run(Recipe& recipe) {
  Measured all{.methods = recipe.sized<Specs>(
                   {"local:window=4", "uniform"}, {"local:window=16", "top-k:k=4", "linear", "uniform"},
                   {"local:window=16", "local", "top-k:k=8", "vq:codes=64", "linear", "performer", "uniform"}),
               .cells = {}};
  RunRequest request{.experiment = losses,
                     .methods = all.methods,
                     .inputs = {"model"},
                     .n = {recipe.sized<Index>(48, 128, 512)},
                     .precision = Precision::f32,
                     .replicates = recipe.sized<Index>(3, 20, texts)};
  Specs places;
  for (const RealHead& head : all_heads()) places.push_back(place_of(head));
  request.sweep = {{"replaced", places}};
  all.cells = recipe.run(request);
  request.sweep = {};
  request.inputs = inputs_of(all_heads());
  request.precision = Precision::f64;
  request.experiment = errors;
  all.cells = all.cells + recipe.run(request);
  request.methods = {"softmax"};
  for (const std::string& experiment : {rank, rows, logits}) {
    request.experiment = experiment;
    all.cells = all.cells + recipe.run(request);
  }
  return all;
}

void draw(Recipe& recipe, const Measured& all) {
  const RecipeCell cell = all.cells.all().front();
  recipe.figure(
      "what-predicts-loss", "Change of the next byte's distribution against the error of a replaced head",
      fmt::format("Each point is one head of the project's byte-level model, replaced alone; n = {}, {} texts. Up: "
                  "the divergence from the next byte's distribution with exact attention, in bits. It is "
                  "never negative, as the bits that one text loses may be by chance. The error is that of "
                  "the head's output, on the q, k and v that it gets.",
                  cell.asked.problem.shape.nk, cell.replicates),
      {{.title = "one head replaced",
        .kind = "trade",
        .cells = all.cells.where({{"experiment", losses}}),
        .x_label = "error of the head's output",
        .x_scale = "log10",
        .y = "prediction_kl",
        .y_label = "KL of the next byte",
        .y_scale = "log10",
        .x_metric = "relative_output_error",
        .points = {"replaced"}}});
}

// The losses and a predictor of all heads and methods, by text.
struct Points {
  std::map<Index, std::vector<double>> values, losses;
  std::vector<size_t> layers;  // of each point of a text

  Points(const Measured& all, const Predictor& predictor, const Specs& methods) {
    for (const auto& method : methods)
      for (const RealHead& head : all_heads()) {
        const Samples value = all.of(predictor, method, head), loss = all.loss(method, head);
        if (value.empty() || loss.empty()) continue;
        layers.push_back(static_cast<size_t>(head.layer));
        for (const auto& [text, lost] : loss) {
          values[text].push_back(value.at(text));
          losses[text].push_back(lost);
        }
      }
  }

  // Spearman's correlation within each text: texts are independent.
  Samples within_texts() const {
    Samples correlations;
    for (const auto& [text, of_text] : values) correlations[text] = rank_correlation(of_text, losses.at(text));
    return correlations;
  }

  // All as one sample, whose points depend by layer and by text.
  Estimate over_all(double error_rate, bool smoke) const {
    std::vector<double> x, y;
    std::vector<std::vector<size_t>> clusterings(2);
    for (const auto& [text, of_text] : values)
      for (size_t i = 0; i < of_text.size(); ++i) {
        x.push_back(of_text[i]);
        y.push_back(losses.at(text)[i]);
        clusterings[0].push_back(layers[i]);
        clusterings[1].push_back(static_cast<size_t>(text));
      }
    Estimate found = certain(rank_correlation(x, y));
    if (!smoke) found.interval = clustered_rank_correlation_interval(x, y, clusterings, error_rate);
    found.count = static_cast<Index>(x.size());
    return found;
  }
};

void judge_output_error(Recipe& recipe, const Measured& all, const std::string& measured) {
  recipe.judge(
      {.text =
           "The larger the error of a replaced head's output, the more bits per byte this project's byte-level model "
           "loses, over its heads and over methods",
       .definition = measured + "; the measure is the relative Frobenius error of the head's output in double. "
                                "Correlation within a text, median over texts. No source states it; approximations "
                                "are compared by that error throughout",
       .threshold = "0: no relation",
       .expected = Ruling::holds,
       .because = "what a head gives wrongly enters the sum that the next layer reads"},
      [=, &recipe] {
        return all_above(0, {{"heads and methods", median_of(Points(all, predictors[0], all.methods).within_texts(),
                                                             recipe.error_rate(1))}});
      });
}

void judge_rank(Recipe& recipe, const Measured& all, const std::string& measured) {
  const Predictor& effective_rank = predictors[4];
  recipe.judge(
      {.text = "Of each method, the heads whose exact attention has the higher effective rank lose more bits per byte "
               "when they are replaced",
       .source = "Su 2021, kexue.fm/archives/8338",
       .paraphrase = "attention matrices of low rank limit what linear attention can do, so rank is part of what makes "
                     "attention effective",
       .definition = measured +
                     "; over the heads of one method, the measure is the effective rank of the head's exact "
                     "attention. Correlation within a text, median over texts; one region a method. That "
                     "the source's rank is the effective one is our reading: under a mask every rank is full",
       .threshold = "0: no relation",
       .expected = Ruling::open,
       .because = "the source speaks of models that are trained with their methods"},
      [=, &recipe] {
        std::vector<Region> regions;
        for (const auto& method : all.methods)
          regions.push_back({method,
                             {{method, median_of(Points(all, effective_rank, {method}).within_texts(),
                                                 recipe.error_rate(all.methods.size()))}}});
        return above_where(0, regions);
      });
}

void judge_all(Recipe& recipe, const Measured& all, const std::string& measured) {
  recipe.judge(
      {.text =
           "How strongly each measure of a head is correlated with the bits per byte that this project's byte-level "
           "model loses when the head is replaced",
       .definition = measured +
                     "; heads, methods and texts as one sample, one number a measure, with the interval for points "
                     "that depend by layer and by text (jackknives over both)",
       .threshold = "none is claimed: 0 is no relation. The intervals are as good as four layers can make them, which "
                    "at this error rate is wide",
       .expected = Ruling::measured,
       .because = "one model decides little about others"},
      [=, &recipe] {
        std::vector<Comparison> found;
        for (const Predictor& predictor : predictors)
          found.push_back(
              {predictor.name,
               Points(all, predictor, all.methods).over_all(recipe.error_rate(predictors.size()), recipe.smoke())});
        return values_of(found, {0});
      });
}

void write(Recipe& recipe) {
  const Measured all = run(recipe);
  draw(recipe, all);
  const RecipeCell cell = all.cells.all().front();
  const std::string measured = fmt::format(
      "Spearman's correlation of a measure with the bits per byte that the model loses when one head has the method, "
      "position by position against exact softmax, in float; {} heads of this project's byte-level model, {} methods, "
      "{} texts, n = {}",
      all_heads().size(), all.methods.size(), cell.replicates, cell.asked.problem.shape.nk);
  judge_output_error(recipe, all, measured);
  judge_rank(recipe, all, measured);
  judge_all(recipe, all, measured);
}

const bool registered =
    add(RecipeEntry{.text = {.name = "what-predicts-loss",
                             .summary = "Which measure of a head predicts the bits lost when a method replaces it",
                             .formula = "Do the errors of attention matrices say what a model loses?",
                             .reference = "Su 2021, kexue.fm/archives/8338"},
                    .write = write});

}  // namespace
}  // namespace attnbench::what_predicts_loss_recipe
