// Figure 2 of "Transformers are RNNs": models that learn to copy a word, from recorded rows of scripts/train.
#include <cmath>

#include "experiments/recipes/trained.hpp"

namespace attnbench::copy_task_recipe {
namespace {

constexpr size_t sequences = 64;  // held out
const double chance = std::log2(10);

const TrainedWith softmax{"softmax"}, linear{"linear"}, exponentials{"linear:features=exp"},
    hashed{"reformer:buckets=8,rounds=4,chunk=128", 1}, window{"local:window=16"};

const std::string measured =
    "bits of a symbol of the second word, after 2000 steps of 16 sequences, of a causal model with 2 layers of 4 heads "
    "of 32 and rotary positions; sequences are 0 w 0 w 0 with a word w of 63 random symbols out of 10, 128 tokens "
    "read; ";

void write(Recipe& recipe) {
  const TrainedModels models(recipe, "copying", true, sequences, {softmax, linear, hashed, exponentials, window});
  recipe.figure(
      "copy-task", "Learning to copy",
      "Held-out bits of a symbol during training, means over seeds with t intervals; chance is log2 10 = 3.32 "
      "bits. Reformer draws new hashes at each step. A window of 16 reaches 32 tokens back through two "
      "layers, and the symbol to copy is 63 back.",
      {models.curves("copying a word of 63 symbols")});
  const std::string source = "Katharopoulos et al. 2020, arXiv:2006.16236, section 4.1.1 and Fig. 2";
  const std::string quotation =
      "We observe that linear converges smoothly and reaches a lower loss than lsh due to the lack of noise introduced "
      "by hashing. In particular, it reaches the same loss as softmax.";
  const std::string smaller =
      "; the source has 4 layers of 8 heads, words of any length up to half of 128 tokens, and longer training";
  recipe.judge(
      {.text =
           "After 2000 steps a small model with linear attention (1 + elu) copies a word as well as one with softmax",
       .source = source,
       .quotation = quotation,
       .definition = measured +
                     "linear attention minus softmax, sequence by sequence, median over 64 held-out "
                     "sequences; one comparison a seed" +
                     smaller,
       .threshold = "0.033: one per cent of the entropy of a symbol, log2 10 bits; the source says \"the same\"",
       .expected = Ruling::open,
       .because = "nothing is known in advance of models this small"},
      [=, &recipe] {
        return as_recorded(
            all_below(0.01 * chance,
                      models.lost(linear, softmax, recipe.error_rate(static_cast<size_t>(models.seeds())))),
            models.seeds(), {"copying"});
      });
  recipe.judge({.text = "After 2000 steps a small model with linear attention (1 + elu) copies a word better than one "
                        "with Reformer's hashed attention",
                .source = source,
                .quotation = quotation,
                .definition = measured +
                              "linear attention minus Reformer (4 rounds of 8 buckets, chunks that hold the "
                              "sequence), sequence by sequence, median over 64 held-out sequences; one "
                              "comparison a seed" +
                              smaller,
                .threshold = "0: both learn it as well",
                .expected = Ruling::open,
                .because = "nothing is known in advance of models this small"},
               [=, &recipe] {
                 return as_recorded(
                     all_below(0, models.lost(linear, hashed, recipe.error_rate(static_cast<size_t>(models.seeds())))),
                     models.seeds(), {"copying"});
               });
  recipe.judge({.text = "A model whose attention cannot reach the first word learns nothing about the second",
                .definition = measured + "softmax over a window of 16, which two layers extend to 32 tokens, while the "
                                         "symbol to copy is 63 tokens back; median over 64 held-out sequences, one "
                                         "comparison a seed",
                .threshold = "3.29 bits: 99 % of log2 10, the entropy of a symbol",
                .because = "symbols are independent, so no model can do better without the first word; this tests the "
                           "task, its mask of the loss and the causal mask"},
               [=, &recipe] {
                 return as_recorded(
                     all_above(0.99 * chance, models.bits(window, "bits_by_text",
                                                          recipe.error_rate(static_cast<size_t>(models.seeds())))),
                     models.seeds(), {"copying"});
               });
}

const bool registered = add(
    RecipeEntry{.text = {.name = "copy-task",
                         .summary = "Models that learn to copy a word, by their attention",
                         .formula = "Does linear attention learn to copy as well as softmax, and better than hashing?",
                         .reference = "Katharopoulos et al. 2020, arXiv:2006.16236, Fig. 2"},
                .write = write});

}  // namespace
}  // namespace attnbench::copy_task_recipe
