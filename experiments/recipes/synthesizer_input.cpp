// Whether Synthesizer's attention is the same for all inputs. methods.md G2: with learnt logits (random, factorised) it
// is; dense variants compute row i of the logits from token i. No variant compares two tokens, so none reads keys.
#include <fmt/format.h>

#include "harness/runner/recipe.hpp"

namespace attnbench::synthesizer_input_recipe {
namespace {

const std::vector<std::string> kinds{"random", "factorised", "dense", "factorised-dense"};
const std::vector<std::string> laws{"gaussian", "clustered", "ar1"};

std::string method(const std::string& kind) { return "synthesizer:kind=" + kind; }

void write(Recipe& recipe) {
  const auto lengths = recipe.sized<std::vector<Index>>({32}, {32, 128, 512});
  RunRequest request{.experiment = "dependence",
                     .methods = {"softmax", "uniform"},
                     .inputs = laws,
                     .n = lengths,
                     .causal = false,
                     .replicates = 3};
  for (const auto& kind : kinds) request.methods.push_back(method(kind));
  const Cells all = recipe.run(request);

  std::vector<Panel> panels;
  for (const std::string of : {"queries", "keys", "values"})
    panels.push_back({.title = "other " + of,
                      .cells = all.input("gaussian"),
                      .x = {"n"},
                      .x_label = "sequence length n",
                      .x_scale = "log2",
                      .y = "change_by_" + of,
                      .y_label = "change of the output / output"});
  recipe.figure("synthesizer-input", "The inputs that the output depends on",
                "Queries, keys or values are replaced by others of the same law, gaussian, d = 64, no mask; 95 % "
                "intervals over inputs. At 0 they are not read. All Synthesizers mix values without reading keys; "
                "random ones do not read the tokens at all.",
                panels);

  // All measured changes of a metric for the given kinds of Synthesizer, each with the bound.
  const auto changes = [=](const std::vector<std::string>& of, const std::string& metric, double bound) {
    std::vector<Bounded> found;
    for (const auto& kind : of)
      for (const auto& input : laws)
        for (const Index n : lengths)
          for (const auto& [replicate, change] : all.method(method(kind)).input(input).n(n).scalar(metric))
            found.push_back({fmt::format("{}, {}, n = {}", kind, input, n), change, bound});
    return found;
  };
  const std::string paper = "Tay et al. 2020, arXiv:2005.00743",
                    setting = fmt::format(
                        "|out' - out| / |out| (Frobenius), every draw; normal, clustered and AR(1) inputs, d = 64, no "
                        "mask, n = {} to {}, weights drawn and not trained",
                        lengths.front(), lengths.back());
  recipe.judge(
      {.text = "The output of Random Synthesizer, full or factorised, does not depend on the queries",
       .source = paper + ", section 3",
       .quotation = "The basic idea of the Random Synthesizer is to not rely on pairwise token interactions or "
                    "any information from individual token but rather to learn a task-specific alignment that "
                    "works well globally across many samples.",
       .definition = "the change of the output when the queries (the tokens that the weights could depend on) are "
                     "replaced by others of the same law, and keys and values are kept: " +
                     setting,
       .threshold = "0: the weights are parameters; this tests that the code does what the paper says",
       .because = "the logits are parameters"},
      [=] {
        return all_at_most(changes({"random", "factorised"}, "change_by_queries", 0));
      });
  recipe.judge(
      {.text = "The output of Dense Synthesizer, full or factorised, changes by a tenth at least with other queries",
       .source = paper + ", section 3",
       .quotation = "conditions on each token independently, as opposed to pairwise token interactions in the "
                    "vanilla Transformer model",
       .definition = "minus the change of the output when the queries (the tokens that the weights are made from) are "
                     "replaced by others of the same law, and keys and values are kept: " +
                     setting + "; dense and factorised dense",
       .threshold = "-0.1: a change of a tenth of the output, far above rounding; the source gives no size",
       .because = "row i of the logits is a function of token i"},
      [=] {
        std::vector<Bounded> negative = changes({"dense", "factorised-dense"}, "change_by_queries", -0.1);
        for (Bounded& one : negative) one.value = -one.value;
        return all_at_most(negative);
      });
  recipe.judge({.text = "The outputs of four variants of Synthesizer do not depend on the keys",
                .source = paper + ", abstract",
                .quotation = "To this end, we propose Synthesizer, a model that learns synthetic attention weights "
                             "without token-token interactions.",
                .definition = "the change of the output when all keys are replaced by others of the same law, and "
                              "queries and values are kept: " +
                              setting + "; random and dense, full and factorised",
                .threshold = "0: keys are not read; this tests that the code does what the paper says",
                .because = "no variant compares two tokens"},
               [=] { return all_at_most(changes(kinds, "change_by_keys", 0)); });
}

const bool registered =
    add(RecipeEntry{.text = {.name = "synthesizer-input",
                             .summary = "Whether Synthesizer's attention is the same for all inputs",
                             .formula = "Do Synthesizer's attention weights depend on the input?",
                             .reference = "Tay et al. 2020, arXiv:2005.00743, section 3"},
                    .write = write});

}  // namespace
}  // namespace attnbench::synthesizer_input_recipe
