// The cost of dropping small weights. methods.md F1, F5: a row that keeps a set of keys with mass p, renormalised, is
// off by exactly 2 (1 - p) in L1, and KL(A' || A) = -log p; no k keys keep more than the k largest. So small weights
// can be dropped where they are small together.
#include <fmt/format.h>

#include <cmath>

#include "experiments/recipes/real_heads.hpp"

namespace attnbench::small_weights_recipe {
namespace {

const std::vector<std::string> laws{"gaussian", "gaussian:scale=3"};  // logits of standard deviation 1 and 9

std::string keeping(Index k) { return fmt::format("top-k:k={}", k); }

struct Runs {
  Index n, n_heads;
  std::vector<Index> kept;
  Cells errors, rows, heads;
};

Runs run(Recipe& recipe) {
  const Index n = recipe.sized<Index>(64, 256), n_heads = recipe.sized<Index>(64, 256, 1024);
  const auto heads = telling_heads(recipe);
  Runs runs{n, n_heads, {n / 32, n / 16, n / 8, n / 4, n / 2}, {}, {}, {}};
  RunRequest errors{.experiment = "attention-error", .methods = {}, .inputs = laws, .n = {n}};
  for (const Index k : runs.kept) errors.methods.push_back(keeping(k));
  for (const RealHead& head : heads)
    if (errors.inputs.size() < 5) errors.inputs.push_back(head.input());
  runs.errors = recipe.run(errors);
  RunRequest masses = errors;
  masses.methods = {"softmax"};
  masses.experiment = "sparsity";
  masses.sweep = {{"top", {std::to_string(n / 32), std::to_string(n / 8)}}};
  runs.rows = recipe.run(masses);
  masses.n = {n_heads};
  masses.replicates = recipe.sized<Index>(2, 18, texts);
  masses.experiment = "sparsity:by_row=false";
  masses.sweep = {{"top", {std::to_string(n_heads / 32), std::to_string(n_heads / 8)}}};
  runs.heads = run_on(recipe, masses, telling_heads_of_models(recipe));
  return runs;
}

void draw(Recipe& recipe, const Runs& runs) {
  const Panel off{.title = "the rows",
                  .cells = runs.errors,
                  .x = {"k"},
                  .x_label = "keys that a row keeps",
                  .x_scale = "log2",
                  .y = "row_l1",
                  .y_label = "L1 error of a row, 2 (1 - p)",
                  .series = {"input"}};
  Panel output = off;
  output.title = "the output";
  output.y = "relative_output_error";
  output.y_label = "|A'V - AV| / |AV|";
  output.y_scale = "log10";
  recipe.figure("small-weights", "The cost of dropping small weights",
                fmt::format("The largest weights of each row, renormalised; n = {}, d = 64, one input each. Of normal "
                            "queries and keys of scale 1, bidirectional, small weights are many and hold most of the "
                            "mass; of scale 3, and in heads of the project's byte-level model, causal, a few keys hold "
                            "it.",
                            runs.n),
                {off, output});
}

void judge_identities(Recipe& recipe, const Runs& runs) {
  recipe.judge({.text = "A row of attention that is cut to its k largest weights, of mass p, and renormalised is off "
                        "by 2 (1 - p) in L1 and by -log p in KL(A' || A)",
                .definition = fmt::format(
                    "row by row, |L1 - 2 (1 - p)| and |KL + log p| (nats), A' the cut rows and A those of softmax, k = "
                    "n/32 and n/8, n = {}, d = 64: normal inputs of standard deviation 1 and 3 without a mask and "
                    "heads of this project's byte-level model, causal, one input or text each",
                    runs.n),
                .threshold = "1e-12: an identity, to rounding",
                .because = "what is kept grows by the factor 1/p"},
               [=] {
                 std::vector<Bounded> off;
                 const auto n = static_cast<size_t>(runs.n);
                 for (const RecipeCell& cell : runs.rows.method("softmax").all()) {
                   const std::string input = cell.asked.input.spec();
                   const Index k = cell.asked.experiment.integer("top");
                   const auto mass = runs.rows.input(input).where({{"top", k}}).arrays("top_mass_rows", n).at(0);
                   const Cells sparse = runs.errors.input(input).method(keeping(k));
                   const auto distance = sparse.arrays("row_l1_rows", n).at(0),
                              divergence = sparse.arrays("kl_estimate_to_exact_rows", n).at(0);
                   for (size_t i = 0; i < n; ++i) {
                     off.push_back(
                         {fmt::format("L1 on {}, k = {}", input, k), std::abs(distance[i] - 2 * (1 - mass[i])), 1e-12});
                     off.push_back({fmt::format("KL on {}, k = {}", input, k),
                                    std::abs(divergence[i] + std::log(mass[i])), 1e-12});
                   }
                 }
                 return all_at_most(off);
               });
}

void judge_mass(Recipe& recipe, const Runs& runs) {
  const auto heads = telling_heads_of_models(recipe);
  const double rate = recipe.error_rate(heads.size());
  for (const Index share : {8, 32}) {
    const Index k = runs.n_heads / share;
    recipe.judge(
        {.text = fmt::format("How large a share of its attention a row loses that keeps only its {} largest weights, "
                             "on heads of {}",
                             k, three_models),
         .source =
             "Kitaev et al. 2020, arXiv:2001.04451, section 2; Hung-yi Lee 2021, lecture on self-attention variants",
         .quotation =
             "Since softmax is dominated by the largest elements, for each query q_i we only need to focus on the "
             "keys in K that are closest to q_i. For example, if K is of length 64K, for each q_i we could only "
             "consider a small subset of, say, the 32 or 64 closest keys.",
         .paraphrase = "The lecture: estimate which weights are small and set those to 0.",
         .definition =
             fmt::format("1 - p, p the mass of a row's {0} largest weights, mean over rows (rows that see {0} keys or "
                         "fewer lose nothing); the L1 error of the row, cut and renormalised, is twice this. The "
                         "source's example keeps 32 or 64 of 64K keys. {1}",
                         k, heads_in_words(heads, runs.n_heads)),
         .threshold =
             "the sources give an illustration and no bound: 0.01, 0.05, 0.1 and 0.25 are there for the reader",
         .expected = Ruling::measured,
         .because = "it depends on how concentrated a head is"},
        [=] {
          std::vector<Comparison> lost;
          for (const RealHead& head : heads) {
            Samples mass = runs.heads.input(head.input()).where({{"top", k}}).scalar("top_mass");
            for (auto& [replicate, value] : mass) value = 1 - value;
            lost.push_back({head.name(), median_of(mass, rate)});
          }
          return values_of(lost, {0.01, 0.05, 0.1, 0.25});
        });
  }
}

void write(Recipe& recipe) {
  const Runs runs = run(recipe);
  draw(recipe, runs);
  judge_identities(recipe, runs);
  judge_mass(recipe, runs);
}

const bool registered =
    add(RecipeEntry{.text = {.name = "small-weights",
                             .summary = "Small weights can be dropped as far as they are small together",
                             .formula = "How much does a row of attention lose when its small weights are dropped?",
                             .reference = "Kitaev et al. 2020, arXiv:2001.04451; Hung-yi Lee 2021"},
                    .write = write});

}  // namespace
}  // namespace attnbench::small_weights_recipe
