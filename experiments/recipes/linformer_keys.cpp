// Linformer attends to r linear combinations of all keys: A = softmax(q (E k)^T) F gives every key a weight, of either
// sign for random F. A selection of r keys leaves n - r weights of a row at 0. The recipe also compares combinations.
#include <fmt/format.h>

#include <algorithm>

#include "experiments/recipes/field.hpp"
#include "experiments/recipes/real_heads.hpp"
#include "harness/runner/match.hpp"

namespace attnbench::linformer_keys_recipe {
namespace {

const std::vector<std::string> projections{"gaussian", "mean-pool", "convolution"};

std::string linformer(const std::string& projection, Index r) {
  return fmt::format("linformer:projection={},r={}", projection, r);
}
std::string selection(Index k) { return fmt::format("top-k:k={}", k); }

void state_combinations(Recipe& recipe) {
  const Index n = recipe.sized<Index>(64, 128);
  const auto budgets = recipe.sized<std::vector<Index>>({16}, {8, 16, 32, 64});
  // Weights of rows that sum to one are about 1 / n; rounding turns a zero into less than 1e-15.
  RunRequest request{.experiment = "sparsity:threshold=1e-12",
                     .methods = {},
                     .inputs = {"gaussian", "clustered", "ar1"},
                     .n = {n},
                     .causal = false};
  for (const Index r : budgets) {
    for (const auto& projection : projections) request.methods.push_back(linformer(projection, r));
    request.methods.push_back(selection(r));
  }
  const Cells all = recipe.run(request);
  recipe.figure(
      "linformer-keys", "Weights that are zero",
      fmt::format("n = {}, d = 64, no mask, normal inputs: share of the weights below 1e-12. A selection of r "
                  "keys leaves 1 - r / n of them at zero; Linformer leaves none.",
                  n),
      {{.title = "normal inputs",
        .cells = all.input("gaussian"),
        .x = {"r", "k"},
        .x_label = "combinations r, or keys k",
        .x_scale = "log2",
        .y = "fraction_below",
        .y_label = "share of the weights that are zero"}});
  recipe.judge(
      {.text = "Linformer gives every key a weight: with random, pooling or convolutional projections no entry of its "
               "attention matrix is zero",
       .source = "Wang et al. 2020, arXiv:2006.04768, section 4, eq. 7",
       .quotation = "We first project the original (n x d)-dimensional key and value layers KW^K_i and VW^V_i "
                    "into (k x d)-dimensional projected key and value layers.",
       .definition = fmt::format(
           "the share of entries below 1e-12 in magnitude of the matrix softmax(q (E k)^T) F that maps values to "
           "outputs: E and F of independent normal entries, mean pooling of segments, or a strided convolution with "
           "normal weights; r = {} to {} rows, n = {}, d = 64, no mask, Gaussian, clustered and AR(1) inputs, every "
           "draw. The source says that keys are projected; this is what follows from it",
           budgets.front(), budgets.back(), n),
       .threshold = "0: a dense projection gives every key a weight, and a selection of r keys would leave "
                    "1 - r / n at zero",
       .because = "rows of E and F have no zeros, or cover all segments"},
      [=] {
        std::vector<Bounded> zeros;
        for (const Index r : budgets)
          for (const auto& projection : projections)
            for (const std::string input : {"gaussian", "clustered", "ar1"})
              for (const auto& [replicate, zero] :
                   all.method(linformer(projection, r)).input(input).scalar("fraction_below"))
                zeros.push_back({fmt::format("{} on {}", linformer(projection, r), input), zero, 0});
        return all_at_most(zeros);
      });
}

// Compares drawn projections with the principal components of the keys.
void state_compression(Recipe& recipe) {
  const Index n = recipe.sized<Index>(64, 256, 1024), d = 64;
  std::vector<std::string> inputs{"gaussian", "clustered", "ar1"};
  for (const auto& head : inputs_of(telling_heads(recipe))) inputs.push_back(head);
  RunRequest request{.experiment = "attention-error:matrix=false",
                     .methods = {"uniform"},
                     .inputs = inputs,
                     .n = {n},
                     .causal = false,
                     .replicates = recipe.sized<Index>(2, texts)};
  const Cells mean = recipe.run(request);
  const Match half{Match::Cost::flops, softmax_flops(n) / 2};
  // At any budget, there are at most d components.
  const Params components = matched(Params("methods", "principal-keys"), {.nq = n, .nk = n, .d = d, .dv = d}, half);
  request.methods = {fmt::format("principal-keys:r={}", std::min(d, components.integer("r")))};
  const Cells principal = recipe.run(request);
  request.methods.clear();
  for (const auto& projection : projections) request.methods.push_back("linformer:projection=" + projection);
  request.match = half;
  const Cells drawn = recipe.run(request);
  const auto of = [=](const std::string& projection) { return drawn.where({{"projection", projection}}); };
  recipe.figure(
      "linformer-compression", "Four ways to compress keys and values",
      fmt::format("n = {}, d = dv = 64, no mask, half of softmax's FLOPs at most; medians over inputs (texts, on "
                  "heads of the byte-level model) and draws. Dotted: the mean of V. Projections are drawn, "
                  "not trained; the principal components are those of the head's own keys, and computing them counts.",
                  n),
      errors_against_flops(drawn + principal + mean, inputs));
  const auto against = [=, &recipe](const Cells& other) {
    std::vector<Comparison> comparisons;
    for (const auto& input : inputs)
      comparisons.push_back(
          {input, median_ratio(of("mean-pool").input(input).scalar("relative_output_error"),
                               other.input(input).scalar("relative_output_error"), recipe.error_rate(inputs.size()))});
    return comparisons;
  };
  const std::string measured = fmt::format(
      "relative Frobenius error of the output of Linformer with mean pooling of segments, at half of softmax's FLOPs "
      "at most, over that of {{}}{{}}; n = {}, d = 64, no mask (compressed keys have no causal form), Gaussian, "
      "clustered and AR(1) inputs and heads of this project's byte-level model; medians over {} inputs and draws, or "
      "texts",
      n, request.replicates);
  const std::string paper = "Wang et al. 2020, arXiv:2006.04768, section 4, \"General projections\"";
  const std::string quotation =
      "For example, one can choose mean/max pooling, or convolution where the kernel and stride is set to n/k. The "
      "convolutional functions contain parameters that require training.";
  struct Other {
    Cells cells;
    std::string name, note;
    bool of_the_source = true;
  };
  for (const auto& [cells, name, note, of_the_source] :
       {Other{of("gaussian"), "random projections", ", at as many FLOPs, untrained"},
        Other{of("convolution"), "a strided convolution with random weights",
              ", at as many FLOPs, untrained, where the source trains it"},
        Other{principal, "the principal components of the keys",
              ", at as many FLOPs, or fewer, as there are at most d components", false}})
    recipe.judge({.text = "By what factor Linformer with mean pooling of keys and values errs more than with " + name +
                          ", at half of softmax's FLOPs",
                  .source = of_the_source ? paper : "",
                  .quotation = of_the_source ? quotation : "",
                  .definition = fmt::format(fmt::runtime(measured), name, note),
                  .threshold = "none: no source ranks these projections. 1 is there to be read off: below it "
                               "mean pooling errs less",
                  .expected = Ruling::measured,
                  .because = "no source gives a number"},
                 [=, cells = cells] { return values_of(against(cells), {1}); });
  recipe.judge({.text = "By what factor Linformer with mean pooling of keys and values errs more than the mean of V, "
                        "at half of softmax's FLOPs",
                .definition = fmt::format(fmt::runtime(measured), "the mean of V", ""),
                .threshold = "none: our own question. 1 is there to be read off: below it mean pooling errs less",
                .expected = Ruling::measured,
                .because = "no source gives a number"},
               [=] { return values_of(against(mean), {1}); });
}

void write(Recipe& recipe) {
  state_combinations(recipe);
  state_compression(recipe);
}

const bool registered = add(RecipeEntry{
    .text = {.name = "linformer-keys",
             .summary = "Linformer attends to combinations of all keys, and which combinations err least",
             .formula = "Which keys does Linformer attend to, and how are they best compressed without training?",
             .reference = "Wang et al. 2020, arXiv:2006.04768, eq. 7"},
    .write = write});

}  // namespace
}  // namespace attnbench::linformer_keys_recipe
