// Heads of models that people use, grouped by model: what every method makes of them, and how concentrated and of which
// rank their attention is.
#include <fmt/format.h>

#include <algorithm>

#include "experiments/recipes/field.hpp"
#include "experiments/recipes/growth.hpp"
#include "experiments/recipes/real_heads.hpp"
#include "harness/runner/match.hpp"

namespace attnbench::pretrained_heads_recipe {
namespace {

constexpr double share = 8;  // budgets of the field are softmax's FLOPs over this

// A model of harness/inputs/pretrained.
struct Model {
  const HeadModel* of;
  Index texts, n, d;
  bool causal;
  std::string title = of->title;
  std::vector<RealHead> heads = captured_heads_of(*of);
  Specs field = {};
  Cells errors = {}, speeds = {}, ranks = {}, rows = {};

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

void measure(Recipe& recipe, Model& one) {
  one.field = field_at(one.shape(), softmax_flops(one.shape()) / share);
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
  judge_ranks(recipe, all);
}

const bool registered = add(
    RecipeEntry{.text = {.name = "pretrained-heads",
                         .summary = "Heads of pretrained models: errors of every method, entropies and ranks, by model",
                         .formula = "Do the findings on this project's own model hold on models that people use?",
                         .reference = "Wang et al. 2020, arXiv:2002.10957; Radford et al. 2022, arXiv:2212.04356"},
                .write = write});

}  // namespace
}  // namespace attnbench::pretrained_heads_recipe
