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
  const Index n = recipe.sized<Index>(64, 256, 1024);
  const std::vector<LawOrHead> laws{{"gaussian", "gaussian"}, {"clustered", "clustered"}, {"ar1", "ar1"}};
  const std::vector<RealHead> heads = telling_heads_of_models(recipe);
  const std::vector<LawOrHead> inputs = laws_and_heads(laws, heads);
  RunRequest request{.experiment = "attention-error:matrix=false",
                     .methods = {"uniform"},
                     .inputs = inputs_of(laws),
                     .n = {n},
                     .causal = false,
                     .replicates = recipe.sized<Index>(2, texts)};
  const Cells mean = recipe.run(request) + run_on(recipe, request, heads);
  Cells principal, drawn;
  const auto compress = [&](Shape shape, const auto& run) {
    shape.mask.causal = false;  // no compression has a causal form
    const Match half{Match::Cost::flops, softmax_flops(shape) / 2};
    // At any budget, there are at most d components.
    const Index components = matched(Params("methods", "principal-keys"), shape, half).integer("r");
    RunRequest one = request;
    one.methods = {fmt::format("principal-keys:r={}", std::min(shape.d, components))};
    principal = principal + run(one);
    one.methods.clear();
    for (const auto& projection : projections) one.methods.push_back("linformer:projection=" + projection);
    one.match = half;
    drawn = drawn + run(one);
  };
  compress({.nq = n, .nk = n, .d = 64, .dv = 64}, [&](const RunRequest& one) { return recipe.run(one); });
  for (const auto& of_model : by_model(heads))
    compress(of_model.front().shape(n), [&](const RunRequest& one) { return run_on(recipe, one, of_model); });
  const auto of = [=](const std::string& projection) { return drawn.where({{"projection", projection}}); };
  recipe.figure(
      "linformer-compression", "Four ways to compress keys and values",
      fmt::format("No mask, half of softmax's FLOPs at most; random inputs with n = {}, d = 64, medians over inputs "
                  "and draws. {}. Dotted: the mean of V. Projections are drawn, not trained; the principal components "
                  "are those of the head's own keys, and computing them counts.",
                  n, heads_in_words(heads, n, false)),
      errors_against_flops(drawn + principal + mean, inputs_of(inputs)));
  const auto against = [=, &recipe](const Cells& other) {
    std::vector<Comparison> comparisons;
    for (const LawOrHead& input : inputs)
      comparisons.push_back(
          {input.name,
           median_ratio(of("mean-pool").input(input.input).scalar("relative_output_error"),
                        other.input(input.input).scalar("relative_output_error"), recipe.error_rate(inputs.size()))});
    return comparisons;
  };
  const std::string measured = fmt::format(
      "relative Frobenius error of the output of Linformer with mean pooling of segments, at half of softmax's FLOPs "
      "at most, over that of {{}}{{}}; no mask (compressed keys have no causal form). Gaussian, clustered and AR(1) "
      "inputs with n = {}, d = 64, medians over {} inputs and draws. {}",
      n, request.replicates, heads_in_words(heads, n, false));
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
