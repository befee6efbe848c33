// Whether truncating linear attention to a band loses its linear complexity. If code forms the matrix and masks it,
// yes: n^2 (F + dv). If it evaluates only the band, no: n (2 w + 1) (F + dv), linear in n (methods.md F). A mask is not
// a product of features, so both lose the state of linear attention (one pass at every w).
#include "experiments/recipes/growth.hpp"

namespace attnbench::truncation_cost_recipe {
namespace {

const std::string whole = "linear", formed = "truncated:window=65536", banded = "truncated:window=16";

void write(Recipe& recipe) {
  RunRequest request{
      .experiment = "speed:" + turns(recipe) + ",pair=false",
      .methods = {whole, formed, banded},
      .inputs = {"gaussian"},
      .n = recipe.sized<std::vector<Index>>({32, 64}, {1024, 2048, 4096}, {1024, 2048, 4096, 8192, 16384}),
      .causal = false,
      .precision = Precision::f32};
  const Cells timed = recipe.run(request);
  request.experiment = "layer-flops";
  request.methods = {formed, banded};
  request.n = {16384, 32768};
  const Cells counted = recipe.run(request);

  recipe.figure("truncation-cost", "Time of a truncated linear attention",
                "One head, d = dv = 64, elu + 1, float, one thread, bidirectional: medians over blocks with "
                "distribution-free 95 % intervals; n^a is the exponent of the last three lengths. window = 65536 forms "
                "all weights, as masking them does; window = 16 those of the band alone.",
                {time_panel("time of one head", timed)});

  const std::string source = "Su 2021, kexue.fm/archives/8338, section on concentrated attention (集中注意)";
  const std::string quotation =
      "当然，这样把Attention矩阵先算出来然后前行截断的方式，使得线性Attention的复杂度不再是线性的了，因此不具备实用价值"
      "，"
      "仅用于理论验证。 (Of course this way, to compute the attention matrix first and then to truncate it by force, "
      "makes "
      "the complexity of linear attention linear no more, so it has no practical value and serves as a theoretical "
      "check "
      "only.)";
  const std::string setting =
      "seconds of a call, one head, d = dv = 64, 1 + elu, float, one thread, no mask beside the band, n = 1024 to 4096 "
      "(at full size 16384), medians over blocks of turns; ";
  recipe.judge(
      {.text = "Linear attention cut to a band of fixed width takes operations that grow as n^2 if its matrix is "
               "formed first, and as n if only the band is evaluated",
       .source = source + ", for the matrix; the band is ours",
       .quotation = quotation,
       .definition = "operations by the methods' formulas, which tests hold against what is counted, at n = 32768 over "
                     "those at 16384, over 4 with the matrix formed and over 2 with only the band evaluated, w = 16 "
                     "tokens to each side; one head, d = dv = 64, 1 + elu, no mask beside the band",
       .threshold = "1 within 0.1 %: the rows at both ends see fewer keys, w (w + 1) of n (2 w + 1) weights or "
                    "0.05 % at n = 16384",
       .because = "n^2 (F + dv) and n (2 w + 1) (F + dv) products"},
      [=] {
        const auto doubling = [&](const std::string& what, const std::string& method, double factor) {
          const auto flops = [&](Index n) { return counted.method(method).n(n).scalar("attention_flops").at(0); };
          return Comparison{what, certain(flops(32768) / flops(16384) / factor)};
        };
        return all_between(0.999, 1.001,
                           {doubling("with the matrix formed, over 4", formed, 4),
                            doubling("with the band alone, over 2", banded, 2)});
      });
  recipe.judge({.text = "On one CPU thread, linear attention that is cut to a band after its matrix was formed takes "
                        "time that grows as n^2",
                .source = source,
                .quotation = quotation,
                .definition = setting + "the factor of every doubling of n is judged; a band as wide as the sequence, "
                                        "so that all weights are formed, as masking does",
                .threshold = "every doubling multiplies the time by at least 3.5: 4 / 1.15, rounded, by the rule for "
                             "growth. The source says linear no more",
                .because = "every weight is computed"},
               [=, &recipe] { return grows_as(recipe, quadratic_growth, curves_of(timed, {formed})); });
  recipe.judge(
      {.text = "On one CPU thread, linear attention that is evaluated on a band alone takes time that grows no faster "
               "than linearly in n",
       .definition = setting + "the factor of every doubling of n is judged; a band of w = 16 tokens to each side",
       .threshold = "every doubling multiplies the time by at most 2.3: 2 and the 15 % of the rule for growth",
       .because = "n (2 w + 1) (F + dv) operations"},
      [=, &recipe] { return grows_as(recipe, linear_growth, curves_of(timed, {banded})); });
}

const bool registered =
    add(RecipeEntry{.text = {.name = "truncation-cost",
                             .summary = "The cost of truncating linear attention to a band",
                             .formula = "Does truncating linear attention to a band lose its linear complexity?",
                             .reference = "Su 2021, kexue.fm/archives/8338"},
                    .write = write});

}  // namespace
}  // namespace attnbench::truncation_cost_recipe
