// Error against cost on real heads, every method at the same FLOPs: what is a budget worth, and to whom.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/recipes/field.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;

const std::string experiment = "attention-error:matrix=false";

Index length(RecipeSize size) { return size == RecipeSize::smoke ? 64 : size == RecipeSize::quick ? 512 : 1024; }

std::vector<Index> layers(RecipeSize size) {
  if (size == RecipeSize::smoke) return {2};
  return {0, 1, 2, 3};
}

std::string input(Index layer) { return fmt::format("model:layer={},head=0", layer); }

// Of softmax's FLOPs: one over these.
std::vector<Index> shares(RecipeSize size) {
  if (size == RecipeSize::smoke) return {4};
  if (size == RecipeSize::quick) return {8, 4, 2};
  return {16, 8, 4, 2};
}
constexpr Index judged_share = 4;

const Description text{.name = "error-at-equal-flops",
                       .summary = "Error against cost on real heads, at equal FLOPs",
                       .formula =
                           "At a quarter of softmax's FLOPs some approximation errs less than the mean of V on every "
                           "layer; no pattern errs less than the k largest weights of each row.",
                       .reference = "Hung-yi Lee 2021 (source 003); Tay et al. 2020, arXiv:2011.04006, Fig. 3"};

// A request a share, and what needs no budget or is a bound beside it.
std::vector<RunRequest> runs(RecipeSize size) {
  const Index n = length(size);
  RunRequest beside{.experiment = experiment,
                    .methods = {"softmax", "uniform"},
                    .inputs = {},
                    .n = {n},
                    .causal = false,
                    .replicates = size == RecipeSize::full ? 5 : 2};
  for (const Index layer : layers(size)) beside.inputs.push_back(input(layer));
  std::vector<RunRequest> all;
  for (const Index share : shares(size)) {
    RunRequest matched = beside;
    matched.methods = field_methods();
    matched.match = Match{Match::Cost::flops, softmax_flops(n) / static_cast<double>(share)};
    all.push_back(matched);
    beside.methods.push_back(fmt::format("top-k:k={}", n / share));
  }
  all.push_back(beside);
  return all;
}

Panel panel(RecipeSize size, Index layer) {
  return {.title = fmt::format("layer {}", layer),
          .kind = "trade",
          .where = {{"experiment", experiment}, {"input", input(layer)}, {"n", length(size)}, {"causal", 0}},
          .x = budget_names(),
          .x_label = "FLOPs of a call",
          .x_scale = "log2",
          .y = "relative_output_error",
          .y_label = "error of the output",
          .y_scale = "log10",
          .references = {"uniform"},
          .x_metric = "flops",
          .bound = {"top-k"},
          .bound_x = "pattern_flops",
          .y_most = 2};
}

std::vector<Figure> figures(RecipeSize size) {
  std::vector<Panel> panels;
  for (const Index layer : layers(size)) panels.push_back(panel(size, layer));
  return {figure("error-at-equal-flops", text, "Error against cost on real heads",
                 fmt::format("Heads of the byte-level transformer, seen bidirectionally, n = {}, d = dv = 64. Budgets "
                             "are chosen for up to 1/2 of softmax's FLOPs (vertical line); methods without one stand "
                             "where they are. Dotted: the mean of V, and the k largest weights of each row at the cost "
                             "of attention to k keys that are given, which no pattern has. Mixers have weights that "
                             "were drawn, not trained.",
                             length(size)),
                 panels)};
}

std::string at_share(const std::string& method, Index n, Index share) {
  return matched(Params("methods", method), {.nq = n, .nk = n, .d = 64, .dv = 64},
                 {Match::Cost::flops, softmax_flops(n) / static_cast<double>(share)})
      .spec();
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  const Index n = length(size);
  const auto error = [&](const std::string& method, Index layer) {
    return results.scalar({{"method", method}, {"input", input(layer)}}, "relative_output_error");
  };
  const double rate = share_of_error_rate(field_methods().size() * layers(size).size());
  std::vector<Region> regions;
  Specs best_words;
  for (const Index layer : layers(size)) {
    Comparison best;
    for (const auto& method : field_methods()) {
      const std::string spec = at_share(method, n, judged_share);
      const Estimate found = ratio(error(spec, layer), error("uniform", layer), rate);
      if (best.what.empty() || found.interval.high < best.estimate.interval.high) best = {spec, found};
    }
    regions.push_back({fmt::format("layer {}", layer), {best}});
    best_words.push_back(fmt::format("layer {}: {} by {}", layer, best.estimate.text(), best.what));
  }
  Verdict beats_mean = below_where(
      1,
      {"At a quarter of softmax's FLOPs some approximation errs less than the mean of V on every layer of the "
       "byte-level transformer",
       Verdict::Outcome::ambiguous},
      regions);
  beats_mean.numbers = fmt::format("least ratios: {}", fmt::join(best_words, "; "));

  std::vector<Comparison> to_patterns;
  for (const Index layer : layers(size))
    for (const auto& method : pattern_methods())
      to_patterns.push_back({fmt::format("{} on layer {}", method, layer),
                             ratio(error(fmt::format("top-k:k={}", n / judged_share), layer),
                                   error(at_share(method, n, judged_share), layer),
                                   share_of_error_rate(pattern_methods().size() * layers(size).size()))});
  return {beats_mean,
          // They hold more of each row's mass than any other k keys; the error of the output follows where values are
          // not arranged against it.
          all_below(1, {"The k largest weights of each row err less than any pattern of as many pairs"}, to_patterns)};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
