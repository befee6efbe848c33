// Reformer attends from queries to queries: it hashes every token once, as query and as key, and does not read K. So it
// cannot compute attention to separate keys, such as a decoder's over an encoder's output, or any pretrained softmax.
#include <fmt/format.h>

#include "experiments/recipes/real_heads.hpp"

namespace attnbench::reformer_decoding_recipe {
namespace {

const std::string reformer = "reformer", everything = "reformer:buckets=2,rounds=8,chunk=4096";
const std::string law = "gaussian", head = "model:layer=2,head=0";
const std::string section = "Katharopoulos et al. 2020, arXiv:2006.16236, section 2.1";
const std::string quotation =
    "Note that in order to be able to use LSH, Reformer constrains the keys, for the attention, to be identical to the "
    "queries. As a result this method cannot be used for decoding tasks where the keys need to be different from the "
    "queries.";

void write(Recipe& recipe) {
  const auto lengths = recipe.sized<std::vector<Index>>({64}, {64, 128, 256}, {64, 128, 256, 512, 1024});
  RunRequest request{.experiment = "attention-error:matrix=false",
                     .methods = {reformer, everything, "uniform"},
                     .inputs = {law, head},
                     .n = lengths,
                     .causal = false,
                     .replicates = recipe.sized<Index>(2, texts)};
  const Cells errors = recipe.run(request);
  request.experiment = "dependence";
  request.methods = {"softmax", "linear", "local", reformer, "uniform"};
  request.inputs = {law};
  request.replicates = recipe.sized<Index>(2, 8);
  const Cells reading = recipe.run(request);

  Panel error{.title = "normal queries and keys",
              .cells = errors.input(law),
              .x = {"n"},
              .x_label = "sequence length n",
              .x_scale = "log2",
              .y = "relative_output_error",
              .y_label = "|A'V - AV| / |AV|",
              .y_scale = "log2",
              .interval = "median"};
  Panel trained = error, keys = error;
  trained.title = "a head of the byte-level model (layer 2, head 0)";
  trained.cells = errors.input(head);
  keys.title = "how much other keys change the output";
  keys.cells = reading;
  keys.y = "change_by_keys";
  keys.y_label = "change of the output / output";
  keys.y_scale = "linear";
  recipe.figure(
      "reformer-decoding", "Reformer where keys are not queries",
      "No mask, d = 64; medians with 95 % intervals over inputs and draws. Even where nearly every token is a "
      "candidate (2 buckets, 8 rounds) the weights are those of other logits. Right: all keys are replaced, "
      "normal queries and keys.",
      {error, trained, keys});

  recipe.judge({.text = "Reformer's output does not depend on the keys",
                .source = section + "; Kitaev et al. 2020, arXiv:2001.04451, section 2",
                .quotation = quotation,
                .definition = fmt::format(
                    "|out' - out| / |out| (Frobenius) when all keys are replaced by other normal keys, queries and "
                    "values kept; normal queries and keys, d = 64, no mask, n = {} to {}, every input and draw",
                    lengths.front(), lengths.back()),
                .threshold = "0: by construction k_j = q_j / |q_j|; this tests that the code does what the paper says",
                .because = "the method reads no keys"},
               [=] {
                 std::vector<Bounded> changes;
                 for (const Index n : lengths)
                   for (const auto& [replicate, value] : reading.method(reformer).n(n).scalar("change_by_keys"))
                     changes.push_back({fmt::format("n = {}", n), value, 0});
                 return all_at_most(changes);
               });
  recipe.judge(
      {.text = "When keys are independent of queries, Reformer errs more than the mean of V",
       .source = section,
       .quotation = quotation,
       .definition = fmt::format(
           "relative Frobenius error of the output of the mean of V over that of Reformer, both to softmax attention "
           "of the queries to the keys; 2 buckets and 8 rounds, so that nearly every token is a candidate; independent "
           "normal queries and keys, d = 64, no mask, n = {} to {}, each judged, median over inputs and draws. The "
           "source says that Reformer cannot be used where keys differ from queries; we measure one such case",
           lengths.front(), lengths.back()),
       .threshold = "1: equal errors. The mean of V looks at no key",
       .because = "weights that are independent of the keys cannot estimate softmax(q.k)"},
      [=, &recipe] {
        std::vector<Comparison> ratios;
        for (const Index n : lengths) {
          const Cells here = errors.input(law).n(n);
          ratios.push_back(
              {fmt::format("n = {}", n), median_ratio(here.method("uniform").scalar("relative_output_error"),
                                                      here.method(everything).scalar("relative_output_error"),
                                                      recipe.error_rate(lengths.size()))});
        }
        return all_below(1, ratios);
      });
}

const bool registered =
    add(RecipeEntry{.text = {.name = "reformer-decoding",
                             .summary = "Reformer with queries and keys that differ",
                             .formula = "Can Reformer attend to keys that are not the queries?",
                             .reference = "Katharopoulos et al. 2020, arXiv:2006.16236, section 2.1"},
                    .write = write});

}  // namespace
}  // namespace attnbench::reformer_decoding_recipe
