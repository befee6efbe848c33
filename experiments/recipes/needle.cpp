// Retrieval: whether a method still finds the one key that a query is aimed at, and how much of its weight it gives it.
// Softmax gives the needle nearly all (logit 12 among keys whose logits are N(0, 12^2 / 64)); what replaces it by sums
// of features spreads the weight however far the needle stands out.
#include <fmt/format.h>

#include "harness/runner/recipe.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;

const Specs by_content{"top-k:k=8", "vq:codes=64", "routing:clusters=8", "improved-clustered:clusters=64,top=32"},
    elementwise{"linear", "linear:features=exp", "linear:features=relu", "cosformer", "efficient"},
    others{"performer", "taylor", "nystrom", "linformer:r=32", "local:window=64"};

const std::string experiment = "attention-error:by_row=false";

const Description text{.name = "needle",
                       .summary = "Whether the method still finds the one key that a query is aimed at",
                       .formula =
                           "Softmax attention retrieves: one key of n can take nearly all of the weight. Linear "
                           "attention with elementwise features cannot: its weight on any key is about 1/n, even where "
                           "that is the largest.",
                       .reference = "Su 2021, kexue.fm/archives/8338, for linear attention as average pooling"};

std::vector<Index> lengths(RecipeSize size) {
  if (size == RecipeSize::smoke) return {64, 128};
  if (size == RecipeSize::quick) return {128, 256, 512};
  return {128, 256, 512, 1024, 2048};
}

std::vector<RunRequest> runs(RecipeSize size) {
  RunRequest request{.experiment = experiment,
                     .methods = {"softmax", "uniform"},
                     .inputs = {"needle"},
                     .n = lengths(size),
                     .causal = false,
                     .replicates = size == RecipeSize::smoke   ? 2
                                   : size == RecipeSize::quick ? 8
                                                               : 10};
  for (const Specs* methods : {&by_content, &elementwise, &others})
    request.methods.insert(request.methods.end(), methods->begin(), methods->end());
  return {request};
}

std::vector<Figure> figures(RecipeSize size) {
  std::vector<Panel> panels;
  for (const bool weight : {false, true})
    for (const auto& [title, methods] :
         {std::pair{"keys by content", by_content}, {"elementwise features", elementwise}, {"others", others}}) {
      Specs drawn = methods;
      drawn.insert(drawn.end(), {"softmax", "uniform"});
      panels.push_back(
          {.title = title,
           .where = {{"experiment", experiment},
                     {"input", "needle"},
                     {"method", drawn},
                     {"n", lengths(size)},
                     {"causal", 0}},
           .x = {"n"},
           .x_label = "sequence length n",
           .x_scale = "log2",
           .y = weight ? "needle_weight" : "needle_found",
           .y_label = weight ? "mean weight on the needle" : "share of rows with most weight on the needle",
           .y_scale = weight ? "log10" : "linear"});
    }
  return {figure("needle", text, "Finding one key among n",
                 "The needle's logit is 12, those of other keys are N(0, 1.5^2); d = 64, bidirectional; means over "
                 "rows with 95 % intervals over inputs and draws. Found: the largest weight of the row is at the "
                 "needle. A method can point at the needle with a weight that says nothing.",
                 panels)};
}

Samples mapped(Samples samples, const std::function<double(double)>& function) {
  for (auto& [replicate, value] : samples) value = function(value);
  return samples;
}

// A comparison for each of the methods and lengths: a function of the metric and n.
std::vector<Comparison> over_lengths(const Results& results, RecipeSize size, const Specs& methods,
                                     const std::string& metric, const std::function<double(double, double)>& function) {
  const double rate = share_of_error_rate(methods.size() * lengths(size).size());
  std::vector<Comparison> all;
  for (const auto& method : methods)
    for (const Index n : lengths(size)) {
      const auto samples = results.scalar({{"method", method}, {"n", n}}, metric);
      const auto at_n = [&](double value) { return function(value, static_cast<double>(n)); };
      all.push_back({fmt::format("{}, n = {}", method, n), mean(mapped(samples, at_n), rate)});
    }
  return all;
}

// Which of the others keep the needle: a region a method.
Verdict judge_half(const Results& results, RecipeSize size) {
  Specs methods(by_content.begin() + 1, by_content.end());
  methods.insert(methods.end(), others.begin(), others.end());
  const auto all = over_lengths(results, size, methods, "needle_weight", [](double weight, double) { return weight; });
  const size_t of_each = lengths(size).size();
  std::vector<Region> regions;
  for (size_t m = 0; m < methods.size(); ++m) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(m * of_each);
    regions.push_back({methods[m], {first, first + static_cast<std::ptrdiff_t>(of_each)}});
  }
  return below_where(
      0.5,
      {"At these budgets an approximation gives the needle less than half of the weight", Verdict::Outcome::ambiguous},
      regions);
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  return {
      all_below(0.01, "Softmax, and softmax over the 8 heaviest keys alone, miss the needle in less than 1 % of rows",
                over_lengths(results, size, {"softmax", "top-k:k=8"}, "needle_found",
                             [](double found, double) { return 1 - found; })),
      all_below(5, "Linear attention with elementwise features gives the needle less than five times the weight 1/n",
                over_lengths(results, size, elementwise, "needle_weight",
                             [](double weight, double n) { return n * weight; })),
      judge_half(results, size)};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
