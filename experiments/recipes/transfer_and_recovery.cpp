// Performer's transfer experiment: a trained model goes on training with another attention, from recorded rows of
// scripts/train.
#include <fmt/format.h>

#include "experiments/recipes/trained.hpp"

namespace attnbench::transfer_and_recovery_recipe {
namespace {

constexpr size_t texts = 32;

const TrainedWith softmax{"softmax"}, drawn_once{"performer:m=128"}, redrawn{"performer:m=128", 1},
    trigonometric{"performer:features=trig,m=64", 1}, linear{"linear"}, window{"local:window=16"};

const std::string measured =
    "bits per byte of this project's causal byte-level model with the attention of every head replaced, n = 512, "
    "of 32 held-out texts, before and after 200 steps of 4 texts; ";
const std::string per_seed = ", text by text, median over texts; one comparison a seed (batches and random features)";

void write(Recipe& recipe) {
  const TrainedModels models(recipe, "recovery", true, texts,
                             {softmax, drawn_once, redrawn, trigonometric, linear, window});
  recipe.figure("transfer-and-recovery", "Training takes damage away",
                "Held-out bits per byte of the trained byte-level model whose attention was replaced before step 0, "
                "while it goes on training; means over seeds with t intervals.",
                {models.curves("trained weights, another attention", {"method", "redraw"})});
  const std::string source = "Choromanski et al. 2020, arXiv:2009.14794, Fig. 5 (caption)";
  recipe.judge(
      {.text = "How many bits per byte a trained model loses with another attention, before and after it goes on "
               "training with it",
       .source = source,
       .quotation =
           "We transferred the original pretrained Transformer's weights into the Performer, which produces an "
           "initial non-zero 0.07 accuracy (dotted orange line), but quickly recovers accuracy in a small "
           "fraction of the original number of gradient steps.",
       .definition = measured + "each attention minus softmax, which trains on as well" + per_seed,
       .threshold = "the source says \"quickly recovers\" and gives none: 0.1 and 1 bit are there for the reader",
       .expected = Ruling::measured,
       .because = "the source gives accuracies of a larger model"},
      [=, &recipe] {
        std::vector<Comparison> values;
        const std::vector<TrainedWith> replaced{drawn_once, redrawn, trigonometric, linear, window};
        const double rate = recipe.error_rate(2 * replaced.size() * static_cast<size_t>(models.seeds()));
        for (const TrainedWith& one : replaced)
          for (const auto& [metric, when] :
               {std::pair("first_bits_by_text", "before"), std::pair("bits_by_text", "after")}) {
            const auto other = models.by_text(one, metric), exact = models.by_text(softmax, metric);
            const std::string redraw = one.redraw > 0 ? " redrawn" : "";
            for (size_t seed = 0; seed < static_cast<size_t>(models.seeds()); ++seed) {
              const std::string what = fmt::format("{}{} {}, seed {}", one.method, redraw, when, seed + 1);
              values.push_back(seed < other.size() && seed < exact.size()
                                   ? median_difference(what, other[seed], exact[seed], rate)
                                   : Comparison{what, unmeasured()});
            }
          }
        return as_recorded(values_of(values, {0.1, 1}), models.seeds(), {"recovery"});
      });
  const auto less = [&](std::string text, std::string quotation, const TrainedWith& one, const TrainedWith& other,
                        const std::string& compared, std::string because) {
    recipe.judge({.text = std::move(text),
                  .source = quotation.empty() ? "" : source,
                  .quotation = std::move(quotation),
                  .definition = measured + compared + " after these steps" + per_seed,
                  .threshold = "0: both are as good",
                  .expected = Ruling::open,
                  .because = std::move(because)},
                 [=, &recipe] {
                   const double rate = recipe.error_rate(static_cast<size_t>(models.seeds()));
                   return as_recorded(all_below(0, models.lost(one, other, rate)), models.seeds(), {"recovery"});
                 });
  };
  less(
      "Within 200 steps a trained model recovers further with Performer's positive features if they are redrawn at "
      "each step",
      "Positive softmax with feature redrawing is necessary to match the Transformer", redrawn, drawn_once,
      "m = 128, redrawn minus drawn once", "the source trains for far longer, and 200 steps may not show it");
  less(
      "Within 200 steps a trained model recovers further with Performer's positive features than with trigonometric "
      "ones",
      "However on PG-19, Trigonometric (TRIG) softmax approximation becomes highly unstable (full curve in Appendix "
      "D.2)",
      redrawn, trigonometric, "128 positive features minus 128 trigonometric ones (m = 64), both redrawn",
      "on this model trigonometric features have the larger error, and training may end in NaN");
  less(
      "Within 200 steps a trained model recovers further with Performer, which approximates its softmax, than with "
      "linear attention "
      "(1 + elu), which does not",
      "", redrawn, linear, "Performer with m = 128 minus linear attention with 1 + elu",
      "both are far from softmax on this model's heads before training");
}

const bool registered =
    add(RecipeEntry{.text = {.name = "transfer-and-recovery",
                             .summary = "A trained model that goes on training with another attention",
                             .formula = "Does a short training take the damage of an approximation away?",
                             .reference = "Choromanski et al. 2020, arXiv:2009.14794, Fig. 5"},
                    .write = write});

}  // namespace
}  // namespace attnbench::transfer_and_recovery_recipe
