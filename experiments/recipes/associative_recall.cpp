// Associative recall with several queries: models that learn which value belonged to a key, from recorded rows of
// scripts/train.
#include <cmath>

#include "experiments/recipes/trained.hpp"

namespace attnbench::associative_recall_recipe {
namespace {

constexpr size_t sequences = 64;  // held out
const double chance = std::log2(16);

const TrainedWith softmax{"softmax"}, elu{"linear"}, exponentials{"linear:features=exp"}, polynomial{"polynomial"},
    window{"local:window=16"};

const std::string measured =
    "bits of a value, after 1500 steps of 32 sequences, of a causal model with 2 layers of 4 heads of 32 and rotary "
    "positions; a sequence is 8 pairs of a key and a value, each out of 16, and 8 random ones of these keys, "
    "each followed by its value; ";
const std::string per_seed = ", sequence by sequence, median over 64 held-out sequences; one comparison a seed";
const std::string source = "Arora et al. 2024, arXiv:2402.18668, abstract";

Finding recorded(const Finding& finding, const TrainedModels& models) {
  return as_recorded(finding, models.seeds(), {"recall"});
}

void judge_state(Recipe& recipe, const TrainedModels& models) {
  const double rate = recipe.error_rate(static_cast<size_t>(models.seeds()));
  recipe.judge({.text = "After 1500 steps a small model with softmax recalls the values of 8 keys",
                .definition = measured + "softmax, median over 64 held-out sequences; one comparison a seed",
                .threshold = "0.04 bits: one per cent of the entropy of a value, log2 16 bits",
                .because = "two layers can do it: one notes the key before each value, the other looks for the key. "
                           "If softmax could not learn the task, the other numbers would say nothing"},
               [=] { return recorded(all_below(0.01 * chance, models.bits(softmax, "bits_by_text", rate)), models); });
  recipe.judge(
      {.text = "After 1500 steps a small model with linear attention (1 + elu) recalls worse than one with "
               "softmax",
       .source = source,
       .quotation = "efficient alternatives to attention (e.g. H3, Mamba, RWKV) maintain a fixed-size recurrent "
                    "state, but struggle at recall",
       .definition = measured + "linear attention minus softmax" + per_seed +
                     "; the source has larger models and longer sequences",
       .threshold = "0.04 bits: one per cent of the entropy of a value, log2 16 bits",
       .because = "the state of a head has 32 features, which all pairs share; its weights are dense"},
      [=] { return recorded(all_above(0.01 * chance, models.lost(elu, softmax, rate)), models); });
  recipe.judge(
      {.text = "After 1500 steps a small model with linear attention recalls better if its state is larger: 528 "
               "features of the polynomial kernel against 32 of 1 + elu",
       .source = source,
       .quotation = "we identify a key tradeoff between a model's state size and recall ability",
       .definition = measured + "the polynomial kernel of degree 2 minus 1 + elu" + per_seed,
       .threshold = "0: both recall as well",
       .because = "the square of a product is sharper than 1 + elu as well, so size is not all that differs"},
      [=] { return recorded(all_below(0, models.lost(polynomial, elu, rate)), models); });
}

void judge_values(Recipe& recipe, const TrainedModels& models) {
  recipe.judge({.text = "How many bits more a model needs to recall a value with exponentials as features or with a "
                        "window of 16 than with softmax",
                .definition = measured +
                              "linear attention with exponentials, and softmax over a window of 16, which two "
                              "layers extend to the whole sequence, minus softmax" +
                              per_seed,
                .threshold = "none is claimed",
                .expected = Ruling::measured,
                .because = "no source gives the number for models of this kind"},
               [=, &recipe] {
                 const double rate = recipe.error_rate(2 * static_cast<size_t>(models.seeds()));
                 return recorded(
                     values_of(models.each_lost({{"exponentials", exponentials}, {"window", window}}, softmax, rate)),
                     models);
               });
}

void write(Recipe& recipe) {
  const TrainedModels models(recipe, "recall", true, sequences, {softmax, elu, exponentials, polynomial, window});
  recipe.figure("associative-recall", "Learning to recall the value of a key",
                "Held-out bits of a value during training, means over seeds with t intervals; chance is log2 16 = 4 "
                "bits. A sequence has 8 pairs of a key and a value, and then asks for 8 of them at random.",
                {models.curves("8 pairs, 8 queries")});
  judge_state(recipe, models);
  judge_values(recipe, models);
}

const bool registered =
    add(RecipeEntry{.text = {.name = "associative-recall",
                             .summary = "Models that learn which value belonged to a key, by their attention",
                             .formula = "Does attention with a state of fixed size recall as well as softmax?",
                             .reference = "Arora et al. 2023, arXiv:2312.04927; Arora et al. 2024, arXiv:2402.18668"},
                    .write = write});

}  // namespace
}  // namespace attnbench::associative_recall_recipe
