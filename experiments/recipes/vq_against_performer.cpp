// Codes against random features at equal cost: source 001 sets Transformer-VQ beside Performer as two linear attentions
// with n x c and n x m matrices. methods.md D, A1: VQ errs by what quantising keys moves their logits, on clustered
// keys little; positive features err by exp(|q + k|^2) / m, whatever the structure of the keys.
#include <fmt/format.h>

#include "experiments/recipes/field.hpp"
#include "experiments/recipes/real_heads.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;

const std::string experiment = "attention-error:matrix=false";
const std::string codes = "vq", features = "performer";
const Specs clustered{"clustered:spread=0.1", "clustered:spread=0.5"};
constexpr Index share = 4;  // judged: budgets of one over this of softmax's FLOPs

const Description text{.name = "vq-against-performer",
                       .summary = "Codes of keys against random features, at equal FLOPs",
                       .formula = "At equal FLOPs attention to a codebook errs less than random features do.",
                       .reference = "Su 2023, kexue.fm/archives/9862 (source 001); Lingle 2023, arXiv:2309.16354"};

Index length(RecipeSize size) { return size == RecipeSize::smoke ? 64 : size == RecipeSize::quick ? 256 : 1024; }

std::vector<Index> shares(RecipeSize size) {
  if (size == RecipeSize::smoke) return {share};
  if (size == RecipeSize::quick) return {8, share, 2};
  return {16, 8, share, 2};
}

Specs inputs(RecipeSize size) {
  Specs all{"gaussian", "ar1"};
  all.insert(all.end(), clustered.begin(), clustered.end());
  for (const auto& head : inputs_of(telling_heads(size))) all.push_back(head);
  return all;
}

Match budget(RecipeSize size, Index one_over) {
  return {Match::Cost::flops, softmax_flops(length(size)) / static_cast<double>(one_over)};
}

std::string at_share(const std::string& method, RecipeSize size) {
  const Index n = length(size);
  return matched(Params("methods", method), {.nq = n, .nk = n, .d = 64, .dv = 64}, budget(size, share)).spec();
}

std::vector<RunRequest> runs(RecipeSize size) {
  RunRequest beside{.experiment = experiment,
                    .methods = {"uniform"},
                    .inputs = inputs(size),
                    .n = {length(size)},
                    .causal = false,
                    .replicates = size == RecipeSize::smoke ? 2 : 6};
  std::vector<RunRequest> all{beside};
  for (const Index one_over : shares(size)) {
    RunRequest request = beside;
    request.methods = {codes, features};
    request.match = budget(size, one_over);
    all.push_back(request);
  }
  return all;
}

std::vector<Figure> figures(RecipeSize size) {
  std::vector<Panel> panels;
  for (const auto& input : inputs(size))
    panels.push_back({.title = input,
                      .kind = "trade",
                      .where = {{"experiment", experiment}, {"input", input}, {"n", length(size)}, {"causal", 0}},
                      .x = budget_names(),
                      .x_label = "FLOPs of a call",
                      .x_scale = "log2",
                      .y = "relative_output_error",
                      .y_label = "error of the output",
                      .y_scale = "log10",
                      .references = {"uniform"},
                      .x_metric = "flops"});
  return {figure("vq-against-performer", text, "Codes against random features",
                 fmt::format("n = {}, d = dv = 64, bidirectional; budgets up to 1/2 of softmax's FLOPs. Dotted: "
                             "the mean of V. The codebook is learnt from other tokens of the same law or text.",
                             length(size)),
                 panels)};
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  const auto all = inputs(size);
  const auto found = [&](const std::string& method, const std::string& input) {
    return results.scalar({{"method", method}, {"input", input}}, "relative_output_error");
  };
  const auto over = [&](const std::string& other, const std::string& input, size_t comparisons) {
    return Comparison{
        input, ratio(found(at_share(codes, size), input), found(other, input), share_of_error_rate(comparisons))};
  };
  std::vector<Comparison> in_clusters;
  for (const auto& input : clustered) in_clusters.push_back(over(at_share(features, size), input, clustered.size()));
  std::vector<Region> everywhere, against_mean;
  for (const auto& input : all) {
    everywhere.push_back({input, {over(at_share(features, size), input, all.size())}});
    against_mean.push_back({input, {over("uniform", input, all.size())}});
  }
  using Outcome = Verdict::Outcome;
  return {
      all_below(1,
                "At a quarter of softmax's FLOPs codes err less than positive features where keys are clustered "
                "(ratio)",
                in_clusters),
      below_where(1,
                  {"At a quarter of softmax's FLOPs codes err less than positive features (ratio)", Outcome::ambiguous},
                  everywhere),
      below_where(1, {"At a quarter of softmax's FLOPs codes err less than the mean of V (ratio)", Outcome::ambiguous},
                  against_mean)};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
