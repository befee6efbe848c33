// Keys stored as signs of projections give logits without bias. The weights that follow from them have one: E exp(l~) =
// exp(l) E exp(l~ - l), which is above exp(l).
#include <fmt/format.h>

#include "experiments/recipes/real_heads.hpp"

namespace attnbench::qjl_logits_and_weights_recipe {
namespace {

const std::vector<std::string> sketches{"qjl:m=64", "qjl:m=256", "qjl:m=1024", "turboquant:bits=3"};
const std::string rotated = "qjl:m=256,rot=true", one_bit = "qjl:m=64", law = "gaussian:scale=0.5";
const std::vector<LawOrHead> laws{{.name = "normal, logits of deviation 0.25", .input = law},
                                  {.name = "normal, logits of deviation 1", .input = "gaussian"}};

void write(Recipe& recipe) {
  const Index n = recipe.sized<Index>(64, 256, 512);
  const auto heads = telling_heads_of_models(recipe);
  const auto places = laws_and_heads(laws, heads);
  RunRequest request{
      .experiment = "logit-error", .methods = sketches, .n = {n}, .replicates = recipe.sized<Index>(2, texts)};
  request.methods.push_back(rotated);
  Cells cells = run_on(recipe, request, heads);
  request.inputs = inputs_of(laws);
  request.d = {64};
  request.replicates = recipe.sized<Index>(2, replicates_for_means);
  cells = cells + recipe.run(request);
  const Cells of_law = cells.input(law);
  recipe.figure(
      "qjl-logits-and-weights", "Errors of estimated logits, and of the weights that follow",
      fmt::format("QJL with m signs a key. Normal queries and keys of standard deviation 0.5, d = 64, n = {}; "
                  "medians over draws with 95 % intervals. Without bias the left panel is at 1, and so is the "
                  "right one.",
                  n),
      {{.title = "estimated logit over logit",
        .cells = of_law.where({{"m", std::vector<Index>{64, 256, 1024}}}),
        .x = {"m"},
        .x_label = "m, signs of a key",
        .x_scale = "log2",
        .y = "logit_slope",
        .y_label = "sum of estimate times logit / sum of logit squared",
        .interval = "median"},
       {.title = "estimated weight over weight",
        .cells = of_law.where({{"m", std::vector<Index>{64, 256, 1024}}}),
        .x = {"m"},
        .x_label = "m, signs of a key",
        .x_scale = "log2",
        .y = "weight_ratio",
        .y_label = "mean of exp(estimate - logit)",
        .interval = "median"}});
  const std::string slope = fmt::format(
      "the sum over pairs of estimate times logit, over the sum of squared logits, the mean over draws. Normal queries "
      "and keys of standard deviation 0.5 and 1, d = 64, n = {}",
      n);
  const std::string ratio = fmt::format(
      "the mean over pairs of exp(estimate - logit), the median over draws. Normal queries and keys of standard "
      "deviation 0.5 and 1 with d = 64, n = {}, and {}",
      n, heads_in_words(heads, n));
  recipe.judge({.text = "Logits that QJL and TurboQuant estimate have no bias",
                .source = "Zandieh et al. 2024, arXiv:2406.03482, Lemma 3.2; Zandieh et al. 2025, arXiv:2504.19874, "
                          "Theorem 2",
                .paraphrase = "the estimate of an inner product is unbiased",
                .definition = slope,
                .threshold = "1, within 0.01",
                .because = "E sign(w.k) w is parallel to k for normal w"},
               [=, &recipe] {
                 std::vector<Comparison> found;
                 const double rate = recipe.error_rate(laws.size() * sketches.size());
                 for (const auto& place : laws)
                   for (const auto& method : sketches)
                     found.push_back({fmt::format("{}, {}", method, place.name),
                                      mean(cells.input(place.input).method(method).scalar("logit_slope"), rate)});
                 return all_contain(1, 0.01, found);
               });
  recipe.judge(
      {.text =
           "Weights that follow from QJL's unbiased logits are too large in the mean, with one bit for each channel",
       .definition = ratio,
       .threshold = "1: no bias",
       .because = "the mean of exp is above exp of the mean, by a factor of exp(Var / 2) for normal errors"},
      [=, &recipe] {
        std::vector<Comparison> found;
        const double rate = recipe.error_rate(places.size());
        for (const auto& place : places)
          found.push_back(
              {place.name, median_of(cells.input(place.input).method(one_bit).scalar("weight_ratio"), rate)});
        return all_above(1, found);
      });
  recipe.judge({.text = "How much too large weights from sketched keys are",
                .definition = ratio,
                .threshold = "none: the values. 1.1 and 2 are there to be read off",
                .expected = Ruling::measured,
                .because = "the variance of a logit is at most pi |q|^2 |k|^2 / (2 m)"},
               [=, &recipe] {
                 std::vector<Comparison> found;
                 const double rate = recipe.error_rate(places.size() * sketches.size());
                 for (const auto& place : places)
                   for (const auto& method : sketches)
                     found.push_back({fmt::format("{}, {}", method, place.name),
                                      median_of(cells.input(place.input).method(method).scalar("weight_ratio"), rate)});
                 return values_of(found, {1.1, 2});
               });
  recipe.judge(
      {.text = "With orthogonal vectors, as in the authors' library, QJL's logits are 0.39 % too large at d = 64",
       .source = "the authors' library (amirzandieh/QJL), parameter rot",
       .paraphrase = "the rows of rotations replace normal vectors",
       .definition = slope + ", of standard deviation 0.5 alone, with qjl:rot=true",
       .threshold = "1.0039, within 0.003: sqrt(d/2) Gamma(d/2) / Gamma((d+1)/2) at d = 64",
       .because = "the norm of a normal vector and its direction are independent, and rotations fix the norm"},
      [=, &recipe] {
        const double rate = recipe.error_rate(1);
        return all_contain(1.0039, 0.003, {{"qjl:rot=true", mean(of_law.method(rotated).scalar("logit_slope"), rate)}});
      });
}

const bool registered = add(
    RecipeEntry{.text = {.name = "qjl-logits-and-weights",
                         .summary = "Sketched keys: logits without bias, weights with one",
                         .formula = "Are weights right in the mean where logits are?",
                         .reference = "Zandieh et al. 2024, arXiv:2406.03482; Zandieh et al. 2025, arXiv:2504.19874"},
                .write = write});

}  // namespace
}  // namespace attnbench::qjl_logits_and_weights_recipe
