// Heads of models that people use, grouped by model: what every method makes of them, whether random features beat the
// mean of V, and how concentrated and of which rank their attention is.
#include <fmt/format.h>

#include <algorithm>

#include "experiments/recipes/field.hpp"
#include "experiments/recipes/growth.hpp"
#include "experiments/recipes/real_heads.hpp"
#include "harness/runner/match.hpp"

namespace attnbench::pretrained_heads_recipe {
namespace {

using Specs = std::vector<std::string>;

constexpr double share = 8;  // budgets of the field are softmax's FLOPs over this
// An interval of a median over 24 draws has an error rate down to 2^-23. Statements use 300 intervals at most.
constexpr Index draws = 24;

// A model of harness/inputs/pretrained.
struct Model {
  const HeadModel* of;
  Index texts, n, d;
  bool causal;
  std::string title = of->title;
  std::vector<RealHead> heads = captured_heads_of(*of);
  Specs field = {}, random = {};
  Cells errors = {}, speeds = {}, ranks = {}, rows = {}, drawn = {};

  std::string input(const RealHead& head, const std::string& text = {}) const {
    return fmt::format("{}layer={},head={}{}", of->input, head.layer, head.head, text.empty() ? "" : ",text=" + text);
  }
  std::string named(const RealHead& head, const std::string& text) const {
    return fmt::format("{}, {}, text {}", title, head.place(), text);
  }
  Shape shape() const { return {.nq = n, .nk = n, .d = d, .dv = d, .mask = {.causal = causal}}; }
};

// Of each model all heads at full size, and those at both ends of the list otherwise.
std::vector<Model> models(const Recipe& recipe) {
  const auto n = [&](Index quick, Index full) { return recipe.sized<Index>(32, quick, full); };
  std::vector<Model> all{{&minilm, 8, n(256, 512), 32, false},
                         {&whisper_encoder, 2, n(256, 1500), 64, false},
                         {&whisper_decoder, 2, n(34, 34), 64, true}};
  if (recipe.size() != RecipeSize::full)
    for (Model& one : all) one.heads = {one.heads.front(), one.heads.back()};
  return all;
}

// The texts that statements name: a draw is a replicate there.
Specs texts_of(const Recipe& recipe) { return recipe.sized<Specs>({"0"}, {"0"}, {"0", "1"}); }

// Every map with inputs as they are and transformed, with the most features that cost no more FLOPs than softmax.
Specs random_features(const Shape& shape) {
  const auto flops = [&](const std::string& spec) {
    return *cost_of(Params("methods", spec), shape, Match::Cost::flops);
  };
  Specs all;
  for (const char* inputs : {"transform=none", "transform=full,shift=mean"})
    for (const char* map : {"positive", "trig", "hyperbolic", "oprf", "aderf"}) {
      const auto with = [&](Index m) { return fmt::format("performer:features={},m={},{}", map, m, inputs); };
      Index m = 1;
      while (flops(with(m + 1)) <= flops("softmax")) ++m;
      all.push_back(with(m));
    }
  return all;
}

void measure(Recipe& recipe, Model& one) {
  one.field = field_at(one.shape(), softmax_flops(one.shape()) / share);
  one.random = random_features(one.shape());
  RunRequest request{.experiment = "attention-error:matrix=false",
                     .methods = one.field,
                     .n = {one.n},
                     .causal = one.causal,
                     .replicates = recipe.sized<Index>(2, one.texts)};
  request.methods.push_back("uniform");
  for (const RealHead& head : one.heads) request.inputs.push_back(one.input(head));
  one.errors = recipe.run(request);

  request.methods = {"softmax"};
  request.experiment = "sparsity:top=1";
  request.replicates = 1;
  one.rows = recipe.run(request);
  request.inputs.clear();
  for (const RealHead& head : one.heads)
    for (const auto& text : texts_of(recipe)) request.inputs.push_back(one.input(head, text));
  request.experiment = "rank:by_index=false";
  one.ranks = recipe.run(request);

  request.experiment = "attention-error:matrix=false";
  request.methods = one.random;
  request.methods.push_back("uniform");
  request.replicates = recipe.sized<Index>(2, draws);
  one.drawn = recipe.run(request);

  // The time of a call hardly depends on the head. Of 34 tokens nothing is worth timing.
  if (one.causal || (recipe.size() != RecipeSize::full && one.of != &minilm)) return;
  request.experiment = "speed:" + turns(recipe);
  request.methods = one.field;
  request.methods.insert(request.methods.end(), {"uniform", "softmax"});
  request.inputs = {one.input(one.heads.front())};
  request.precision = Precision::f32;
  request.replicates = 1;
  one.speeds = recipe.run(request);
}

std::string title_of(const Model& one) { return fmt::format("{}, n = {}", one.title, one.n); }

const std::string captured =
    "Heads are those at evenly spaced ranks of the mean entropy of their rows, of all heads of the model "
    "(harness/inputs/pretrained/README.md). The decoder is causal, the others are not. ";

void draw(Recipe& recipe, const std::vector<Model>& all) {
  std::vector<Panel> trades, columns, entropies;
  for (const Model& one : all) {
    const Cells first = one.errors.input(one.input(one.heads.front()));
    if (!one.speeds.all().empty())
      trades.push_back(
          error_against_time(fmt::format("{}, {}", title_of(one), one.heads.front().name()), first + one.speeds));
    columns.push_back(
        table_column(one.errors, "relative_output_error", fmt::format("error on {}", one.title), "mean", "log10"));
    entropies.push_back({.title = title_of(one),
                         .kind = "histogram",
                         .cells = one.rows,
                         .x_label = "entropy of a row / log of the keys that it sees",
                         .y = "relative_entropy_rows",
                         .y_label = "share of rows",
                         .series = {"layer", "head"},
                         .range = {0, 1},
                         .mark = 1,
                         .mark_label = "uniform"});
  }
  recipe.figure(
      "pretrained-quality-speed-memory", "Quality against speed on heads of pretrained models",
      captured + fmt::format("Every method at 1/{:g} of softmax's FLOPs, or as it is when it has no budget and "
                             "costs no more than softmax. Errors in double, medians over texts. Times in float on "
                             "one thread of one head, paired with exact softmax. Dotted line: the mean of V.",
                             share),
      trades);
  recipe.figure("pretrained-errors", fmt::format("Methods at 1/{:g} of softmax's FLOPs on pretrained models", share),
                captured +
                    "Frobenius norm of the output's error over that of the output, mean over heads and texts. A method "
                    "without a form for the mask has none.",
                columns);
  recipe.figure("pretrained-entropy", "Entropy of each row, per head of pretrained models",
                captured + "All rows of one text. A head at 1 is the mean of V.", entropies);
}

// The error of the best random features over that of the mean of V.
Estimate least_ratio(const Model& one, const std::string& input, double rate) {
  const Cells here = one.drawn.input(input);
  const Samples null = here.method("uniform").scalar("relative_output_error");
  std::vector<Estimate> ratios;
  for (const auto& method : one.random)
    ratios.push_back(median_ratio(here.method(method).scalar("relative_output_error"), null, rate));
  return least_of(ratios);
}

// A region for each model, with its heads and texts.
std::vector<Region> best_of_random_features(const Recipe& recipe, const std::vector<Model>& all) {
  size_t intervals = 0;
  for (const Model& one : all) intervals += one.heads.size() * texts_of(recipe).size() * one.random.size();
  std::vector<Region> regions;
  for (const Model& one : all) {
    Region region{one.title, {}};
    for (const RealHead& head : one.heads)
      for (const auto& text : texts_of(recipe))
        region.comparisons.push_back(
            {one.named(head, text), least_ratio(one, one.input(head, text), recipe.error_rate(intervals))});
    regions.push_back(region);
  }
  return regions;
}

std::vector<Comparison> joined(const std::vector<Region>& regions) {
  std::vector<Comparison> all;
  for (const Region& region : regions) all.insert(all.end(), region.comparisons.begin(), region.comparisons.end());
  return all;
}

void judge_random_features(Recipe& recipe, const std::vector<Model>& all) {
  const std::string definition =
      "of each estimator, the relative Frobenius error of the output over that of the mean of V, the median over draws "
      "on one text; of these the least over estimators. Estimators: positive, trigonometric, hyperbolic, OPRF and "
      "ADERF "
      "features, with inputs as they are and with inputs transformed in a way, learnt from another text, that leaves "
      "softmax attention unchanged; each with the most features that take no more FLOPs than softmax. Models: MiniLM "
      "(n = " +
      std::to_string(all[0].n) +
      ", d = 32), the encoder and the decoder of Whisper tiny.en (n = " + std::to_string(all[1].n) + " and " +
      std::to_string(all[2].n) + ", d = 64), each with its own mask";
  recipe.judge({.text = "On captured heads of MiniLM and of Whisper, some random-feature estimator errs less than the "
                        "mean of V",
                .definition = definition + ". A model holds if every one of its heads and texts surely does, and fails "
                                           "if one surely does not",
                .threshold = "1: the mean of V, which looks at no key",
                .expected = Ruling::open,
                .because = "by the closed forms the error grows as exp |q + k|^2 / m, and the norms of these heads "
                           "were not looked at before"},
               [=, &recipe] { return below_where(1, best_of_random_features(recipe, all)); });
  recipe.judge({.text = "By what factor the best random-feature estimator errs more or less than the mean of V, on "
                        "captured heads of MiniLM and of Whisper",
                .definition = definition + ". One number a head and text",
                .threshold = "none is claimed. At 1 the best estimator errs as the mean of V",
                .expected = Ruling::measured,
                .because = "no source gives the factor"},
               [=, &recipe] { return values_of(joined(best_of_random_features(recipe, all)), {1}); });
}

void judge_ranks(Recipe& recipe, const std::vector<Model>& all) {
  recipe.judge(
      {.text = "How large a share of n the effective rank of softmax attention is, on captured heads of MiniLM "
               "and of Whisper",
       .definition = "exp of the entropy of the singular values over their sum, over n; one number a head and "
                     "text, from the exact matrix",
       .threshold = "none is claimed: 0.25 and 0.5 are there for the reader",
       .expected = Ruling::measured,
       .because = "heads differ"},
      [=, &recipe] {
        std::vector<Comparison> ranks;
        for (const Model& one : all)
          for (const RealHead& head : one.heads)
            for (const auto& text : texts_of(recipe)) {
              const Samples rank = one.ranks.input(one.input(head, text)).scalar("effective_rank");
              ranks.push_back(
                  {one.named(head, text),
                   rank.empty() ? unmeasured() : certain(rank.begin()->second / static_cast<double>(one.n))});
            }
        return values_of(ranks, {0.25, 0.5});
      });
}

void write(Recipe& recipe) {
  std::vector<Model> all = models(recipe);
  for (Model& one : all) measure(recipe, one);
  draw(recipe, all);
  judge_random_features(recipe, all);
  judge_ranks(recipe, all);
}

const bool registered = add(RecipeEntry{
    .text = {.name = "pretrained-heads",
             .summary = "Heads of pretrained models: errors of every method, entropies and ranks, by model",
             .formula = "Do the findings on this project's own model hold on models that people use?",
             .reference = "Choromanski et al. 2020, arXiv:2009.14794; Likhosherstov et al. 2023, arXiv:2302.00787; "
                          "Wang et al. 2020, arXiv:2002.10957; Radford et al. 2022, arXiv:2212.04356"},
    .write = write});

}  // namespace
}  // namespace attnbench::pretrained_heads_recipe
