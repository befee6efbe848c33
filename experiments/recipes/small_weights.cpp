// What dropping small weights costs. methods.md F1, F5: a row that keeps a set of keys with mass p, renormalised, is
// off by exactly 2 (1 - p) in L1, and KL(A' || A) = -log p; no k keys keep more than the k largest. So small weights
// can be dropped where they are small together. Of normal logits of standard deviation s the largest share r keeps
//   p = Phi(s - z), Phi(-z) = r,  for many keys: less than half of the mass for an eighth of the keys at s = 1.
#include <fmt/format.h>

#include <cmath>

#include "experiments/recipes/real_heads.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;

// Logits of standard deviation 1 and 9, and a head of the transformer.
const Specs laws{"gaussian", "gaussian:scale=3"};
constexpr Index share = 8;  // a row keeps one over this of its keys

const Description text{
    .name = "small-weights",
    .summary = "Small weights can be dropped as far as they are small together",
    .formula = "Small attention weights can be dropped: a row that keeps the mass p is off by 2 (1 - p).",
    .reference = "Hung-yi Lee 2021 (source 003)"};

Index length(RecipeSize size) { return size == RecipeSize::smoke ? 64 : 256; }

Specs all_inputs(RecipeSize size) {
  Specs all = laws;
  for (const auto& head : inputs_of(telling_heads(size == RecipeSize::full ? RecipeSize::full : RecipeSize::quick)))
    all.push_back(head);
  return all;
}

std::vector<Index> kept(RecipeSize size) {
  const Index n = length(size);
  return {n / 32, n / 16, n / share, n / 4, n / 2};
}

std::string keeping(Index k) { return fmt::format("top-k:k={}", k); }
std::string concentration(Index k) { return fmt::format("sparsity:top={}", k); }
nlohmann::json concentration_where(const std::string& input, Index k) {
  return {{"experiment", "sparsity"}, {"method", "softmax"}, {"input", input}, {"top", k}};
}
const std::string error = "attention-error";

std::vector<RunRequest> runs(RecipeSize size) {
  RunRequest errors{
      .experiment = error, .methods = {"uniform"}, .inputs = all_inputs(size), .n = {length(size)}, .causal = false};
  for (const Index k : kept(size)) errors.methods.push_back(keeping(k));
  std::vector<RunRequest> all{errors};
  for (const Index k : {kept(size).front(), length(size) / share}) {
    RunRequest masses = errors;
    masses.experiment = concentration(k);
    masses.methods = {"softmax"};
    all.push_back(masses);
  }
  return all;
}

std::vector<Figure> figures(RecipeSize size) {
  const Panel off{.title = "the rows",
                  .where = {{"experiment", error},
                            {"input", all_inputs(size)},
                            {"n", length(size)},
                            {"causal", 0},
                            {"method",
                             [&] {
                               Specs all;
                               for (const Index k : kept(size)) all.push_back(keeping(k));
                               return all;
                             }()}},
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
  return {
      figure("small-weights", text, "What dropping small weights costs",
             fmt::format("n = {}, d = 64, bidirectional; the largest weights of each row, renormalised. With normal "
                         "queries and keys of scale 1 small weights are many and hold most of the mass; of scale 3, "
                         "and in trained heads, a few keys hold it.",
                         length(size)),
             {off, output})};
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  constexpr double rounding = 1e-12;
  std::vector<Bounded> l1, kl;
  std::vector<Region> lost;
  const Index eighth = length(size) / share;
  for (const auto& input : all_inputs(size)) {
    for (const Index k : {kept(size).front(), eighth}) {
      const auto mass = results.array(concentration_where(input, k), "top_mass_rows");
      const nlohmann::json sparse{{"experiment", error}, {"method", keeping(k)}, {"input", input}};
      const auto distance = results.array(sparse, "row_l1_rows");
      const auto divergence = results.array(sparse, "kl_estimate_to_exact_rows");
      const std::string what = fmt::format("{}, k = {}", input, k);
      for (size_t i = 0; i < std::min(mass.size(), distance.size()); ++i) {
        l1.push_back({what, std::abs(distance[i] - 2 * (1 - mass[i])), rounding});
        if (divergence.size() == mass.size())
          kl.push_back({what, std::abs(divergence[i] + std::log(mass[i])), rounding});
      }
    }
    const auto mass = results.scalar(concentration_where(input, eighth), "top_mass");
    lost.push_back({input, {{"", certain(1 - mass.at(0))}}});
  }
  return {all_at_most("A row that keeps its k largest weights is off by 2 (1 - p), p their mass (difference)", l1),
          all_at_most("KL(A' || A) of such a row is -log p (difference, nats)", kl),
          below_where(0.1,
                      {"All but the largest eighth of each row's weights can be dropped (mass lost, below 0.1)",
                       Verdict::Outcome::conditional},
                      lost)};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
