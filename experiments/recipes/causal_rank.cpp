// The rank of linear attention under a causal mask. methods.md H2: a triangular matrix without a zero on its
// diagonal has full rank, so causal linear attention has full rank with any features. Su (kexue 9889) withdraws the
// argument from rank for that reason. Exact rank does not tell how near to singular the matrix is: the condition number
// does. The effective rank of the causal mean of V (uniform) tells how much the mask alone contributes.
#include <fmt/format.h>

#include "experiments/recipes/real_heads.hpp"

namespace attnbench::causal_rank_recipe {
namespace {

const Specs linear{"linear", "linear:inputs=unscaled", "performer:m=64"};

// At most half of a pair's replicates are allowed to lack a rank: "in at least half of the draws or texts".
Finding judge_full(const Recipe& recipe, const Cells& cells, const Specs& methods, const std::vector<LawOrHead>& inputs,
                   Index n) {
  std::vector<Region> regions;
  for (const auto& method : methods) {
    regions.push_back({method, {}});
    for (const auto& [name, spec, part, d] : inputs) {
      Samples missing = cells.method(method).input(spec).scalar("numerical_rank");
      for (auto& [replicate, rank] : missing) rank = static_cast<double>(n) - rank;
      regions.back().comparisons.push_back(
          {name, median_of(missing, recipe.error_rate(methods.size() * inputs.size()))});
    }
  }
  Finding finding = below_where(0.5, regions);  // ranks are whole numbers
  finding.numbers = "n less the numerical rank: " + finding.numbers;
  return finding;
}

Panel panel(const LawOrHead& input, const Cells& cells, const std::string& metric, const std::string& label) {
  const bool condition = metric == "condition";  // no mean: some matrices are singular and have no condition number
  return {.title = input.name,
          .cells = cells.input(input.input),
          .x = {"n"},
          .x_label = "sequence length n",
          .x_scale = "log2",
          .y = metric,
          .y_label = label,
          .y_scale = condition ? "log10" : "log2",
          .interval = condition ? "median" : "mean"};
}

void write(Recipe& recipe) {
  const Index n = recipe.sized<Index>(64, 128, 512);
  const std::vector<LawOrHead> laws{{"gaussian", "gaussian"}, {"ar1", "ar1"}};
  const std::vector<RealHead> heads = telling_heads_of_models(recipe);
  const std::vector<LawOrHead> inputs = laws_and_heads(laws, heads);
  Specs methods = linear;
  methods.insert(methods.end(), {"softmax", "uniform"});
  const auto run = [&](const Specs& of, const Specs& on_laws, const std::vector<RealHead>& on_heads,
                       const std::vector<Index>& lengths, bool causal) {
    const RunRequest request{.experiment = "rank:by_index=false",
                             .methods = of,
                             .inputs = on_laws,
                             .n = lengths,
                             .causal = causal,
                             .replicates = recipe.sized<Index>(2, texts)};
    return recipe.run(request) + run_on(recipe, request, on_heads);
  };
  const Cells causal = run(methods, inputs_of(laws), heads, {n}, true),
              whole = run(linear, inputs_of(laws), heads, {n}, false);
  const LawOrHead shown[] = {laws.front(), {typical_head.name(), typical_head.input()}};
  const Cells over_n = causal + run(methods, {shown[0].input}, {typical_head}, {n / 8, n / 4, n / 2}, true);

  std::vector<Panel> panels;
  for (const LawOrHead& input : shown)
    for (const auto& [metric, label] : {std::pair{"numerical_rank", "numerical rank"},
                                        {"effective_rank", "effective rank"},
                                        {"condition", "condition  sigma_1 / sigma_n"}})
      panels.push_back(panel(input, over_n, metric, label));
  recipe.figure("causal-rank", "Rank under a causal mask",
                "d = 64, 64 features, causal; 95 % intervals over draws of the law or over texts. All of these are "
                "triangular and of rank n exactly. Numerically some are not: what lies below sigma_1 n 2.2e-16 is "
                "rounding, and a matrix that has such has no condition. Uniform is the causal mean of V, which "
                "compares no tokens.",
                panels);

  const std::string where = fmt::format(
      "independent normal tokens (gaussian) and tokens correlated by 0.9 with their neighbours (ar1), n = {}, d = 64, "
      "medians over {} draws, and heads. {}",
      n, causal.all().front().replicates, heads_in_words(heads, n, false));
  recipe.judge(
      {.text = "Causal attention matrices, which are of full rank in exact arithmetic, are of full numerical rank in "
               "double precision on every input",
       .definition = "n less the numerical rank of the attention matrix (singular values above sigma_1 n 2.2e-16), of "
                     "softmax, of the mean of V, of linear attention with 1 + elu and of Performer with 64 random "
                     "features. A method holds where this is below the threshold on every input: " +
                     where,
       .threshold = "0.5: ranks are whole numbers, so at least half of the matrices are of rank n",
       .expected = Ruling::open,
       .because = "in exact arithmetic a triangle without a zero on its diagonal is of full rank; how many singular "
                  "values rounding leaves is known of none of them"},
      [=, &recipe] {
        return judge_full(recipe, causal, {"linear", "performer:m=64", "softmax", "uniform"}, inputs, n);
      });
  // Effective rank of the first over that of the second, by linear method and input.
  const auto ratios = [=, &recipe](const Specs& of, auto&& numerator, auto&& denominator) {
    std::vector<Comparison> all;
    for (const auto& method : of)
      for (const auto& [name, spec, part, d] : inputs)
        all.push_back({fmt::format("{} on {}", method, name),
                       median_ratio(numerator(method).input(spec).scalar("effective_rank"),
                                    denominator(method).input(spec).scalar("effective_rank"),
                                    recipe.error_rate(of.size() * inputs.size()))});
    return all;
  };
  recipe.judge(
      {.text = "On every input, a causal mask raises the effective rank of linear attention, with 1 + elu and with 64 "
               "random features",
       .definition = "the effective rank without the mask over that with it, of the same draws; the effective rank is "
                     "exp(H), H the entropy of the singular values over their sum. Linear attention with 1 + elu on q "
                     "and k times d^-1/4 and on raw q and k, and Performer with 64 random features, each on " +
                     where,
       .threshold = "1: equal ranks",
       .because = "the mask makes a matrix of rank n of one of rank 64 at most"},
      [=] {
        return all_below(1, ratios(
                                linear, [&](auto& method) { return whole.method(method); },
                                [&](auto& method) { return causal.method(method); }));
      });
  recipe.judge(
      {.text = "How many times as large the effective rank of causal linear attention is as that of causal averaging, "
               "which has no queries or keys",
       .definition =
           "the effective rank, exp(H) with H the entropy of the singular values over their sum, of linear attention "
           "with 1 + elu over that of the causal mean of V, which compares no tokens; both under the mask. At 1 the "
           "rank is that of the mask. Features of q and k times d^-1/4 and of raw q and k, on " +
           where,
       .threshold = "none has a reason: the ratios are given, with the counts below 1.05, 1.1 and 1.5",
       .expected = Ruling::measured,
       .because = "nobody gives a bound"},
      [=] {
        return values_of(ratios(
                             {"linear", "linear:inputs=unscaled"}, [&](auto& method) { return causal.method(method); },
                             [&](auto&) { return causal.method("uniform"); }),
                         {1.05, 1.1, 1.5});
      });
}

const bool registered =
    add(RecipeEntry{.text = {.name = "causal-rank",
                             .summary = "Causal linear attention is of full rank, and little of that is attention",
                             .formula = "Under a causal mask, is the rank of linear attention the attention's or the "
                                        "mask's?",
                             .reference = "Su 2023, kexue.fm/archives/9889"},
                    .write = write});

}  // namespace
}  // namespace attnbench::causal_rank_recipe
