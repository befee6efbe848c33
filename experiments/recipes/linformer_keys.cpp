// Whether Linformer picks representative keys. It attends to r linear combinations of all of them: A = softmax(q (E
// k)^T) F gives every key a weight, of either sign for random F. A selection of r keys leaves n - r weights of a row at
// 0.
#include <fmt/format.h>

#include "harness/runner/recipe.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;

const Specs projections{"gaussian", "mean-pool", "convolution"};
const Specs laws{"gaussian", "clustered", "ar1"};
// Weights of rows that sum to one are some 1 / n; what rounding leaves of a zero is below 1e-15.
const std::string experiment = "sparsity:threshold=1e-12";

const Description text{.name = "linformer-keys",
                       .summary = "Linformer attends to combinations of all keys, and selects none",
                       .formula =
                           "Linformer picks r representative keys and attends to them: a row has r weights, the other "
                           "n - r are zero.",
                       .reference = "Hung-yi Lee 2021 (source 003); Wang et al. 2020, arXiv:2006.04768, eq. 7"};

Index length(RecipeSize size) { return size == RecipeSize::smoke ? 64 : 128; }

std::vector<Index> budgets(RecipeSize size) {
  if (size == RecipeSize::smoke) return {16};
  return {8, 16, 32, 64};
}

std::string method(const std::string& projection, Index r) {
  return fmt::format("linformer:projection={},r={}", projection, r);
}
std::string selection(Index k) { return fmt::format("top-k:k={}", k); }

std::vector<RunRequest> runs(RecipeSize size) {
  RunRequest request{
      .experiment = experiment, .methods = {"softmax"}, .inputs = laws, .n = {length(size)}, .causal = false};
  for (const Index r : budgets(size)) {
    for (const auto& projection : projections) request.methods.push_back(method(projection, r));
    request.methods.push_back(selection(r));
  }
  return {request};
}

std::vector<Figure> figures(RecipeSize size) {
  Specs drawn;
  for (const Index r : budgets(size)) {
    for (const auto& projection : projections) drawn.push_back(method(projection, r));
    drawn.push_back(selection(r));
  }
  return {figure(
      "linformer-keys", text, "Weights that are zero",
      fmt::format("n = {}, d = 64, bidirectional, normal inputs: share of the weights below 1e-12. A "
                  "selection of r keys leaves 1 - r / n of them at zero; Linformer none.",
                  length(size)),
      {{.title = "normal inputs",
        .where =
            {{"experiment", experiment}, {"input", "gaussian"}, {"n", length(size)}, {"causal", 0}, {"method", drawn}},
        .x = {"r", "k"},
        .x_label = "combinations r, or keys k",
        .x_scale = "log2",
        .y = "fraction_below",
        .y_label = "share of the weights that are zero"}})};
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  const Index n = length(size);
  const auto non_zero = [&](const std::string& given, Index r, const std::string& input) {
    std::vector<Bounded> shares;
    for (const auto& [replicate, zero] : results.scalar({{"method", given}, {"input", input}}, "fraction_below"))
      shares.push_back(
          {fmt::format("{} on {}", given, input), static_cast<double>(n) * (1 - zero), static_cast<double>(r)});
    return shares;
  };
  std::vector<Bounded> of_linformer, of_selection;
  for (const auto& input : laws)
    for (const Index r : budgets(size)) {
      for (const auto& projection : projections)
        for (const Bounded& one : non_zero(method(projection, r), r, input)) of_linformer.push_back(one);
      for (const Bounded& one : non_zero(selection(r), r, input)) of_selection.push_back(one);
    }
  return {all_at_most({"Linformer picks r representative keys (mean number of weights of a row that are not zero, "
                       "at most r)",
                       Verdict::Outcome::fail},
                      of_linformer),
          all_at_most("A method that picks k keys has at most k weights a row (top-k)", of_selection)};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
