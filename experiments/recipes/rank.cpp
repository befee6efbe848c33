// Rank against length, and the spectrum at one length: source 000's argument. Linear attention's rank is capped at its
// features, banding raises it, softmax is full, and a causal mask makes everything full (structurally).
#include "harness/runner/recipe.hpp"

namespace attnbench {
namespace {

const std::vector<std::string> methods{
    "softmax",     "performer:m=64", "linear", "truncated:window=16", "truncated:base=performer,m=64,window=16",
    "vq:codes=64", "uniform"};

const Description text{.name = "rank",
                       .summary = "Rank and spectrum of the attention matrix",
                       .formula =
                           "The rank of linear attention is at most its number of features; truncating it to a band "
                           "raises the rank; softmax attention is of full rank.",
                       .reference = "Su 2021, kexue.fm/archives/8338; Wang et al. 2020, arXiv:2006.04768, Fig. 1"};

Index longest(RecipeSize size) { return size == RecipeSize::smoke ? 64 : 1024; }

std::vector<RunRequest> runs(RecipeSize size) {
  const Index n = longest(size);
  RunRequest request{.experiment = "rank",
                     .methods = methods,
                     .inputs = {"gaussian", "gaussian:scale=0.5", "model"},
                     .n = {n / 16, n / 8, n / 4, n / 2, n},
                     .causal = false,
                     .replicates = size == RecipeSize::full    ? 10
                                   : size == RecipeSize::quick ? 5
                                                               : 2};
  RunRequest causal = request;
  causal.inputs = {"model"};
  causal.causal = true;
  return {request, causal};
}

Panel ranks(const std::string& title, const std::string& input, int causal, const std::string& metric,
            const std::string& label) {
  return {.title = title,
          .where = {{"experiment", "rank"}, {"input", input}, {"causal", causal}, {"method", methods}},
          .x = {"n"},
          .x_label = "sequence length n",
          .x_scale = "log2",
          .y = metric,
          .y_label = label,
          .y_scale = "log2"};
}

Panel spectrum(const std::string& title, const std::string& input, int causal, Index n) {
  return {.title = title,
          .kind = "profile",
          .where = {{"experiment", "rank"}, {"input", input}, {"causal", causal}, {"n", n}, {"method", methods}},
          .x_label = "index k / n",
          .y = "cumulative_spectrum",
          .y_label = "sum of the first k singular values / all",
          .normalise_x = true};
}

std::vector<Figure> figures(RecipeSize size) {
  const Index n = longest(size);
  const std::string at = ", n = " + std::to_string(n);
  return {
      figure(
          "rank", text, "Rank against sequence length",
          "Numerical rank (singular values above sigma_1 n 2.2e-16, in double) and effective rank exp H(sigma / sum). "
          "Linear attention stops at its features (64); a band of half width 16 lifts it; d = 64. The real head is "
          "layer 2, head 1 of the byte-level transformer.",
          {ranks("gaussian, bidirectional", "gaussian", 0, "numerical_rank", "numerical rank"),
           ranks("real head, bidirectional", "model", 0, "numerical_rank", "numerical rank"),
           ranks("gaussian, bidirectional", "gaussian", 0, "effective_rank", "effective rank"),
           ranks("gaussian, scale 0.5, bidirectional", "gaussian:scale=0.5", 0, "effective_rank", "effective rank"),
           ranks("real head, bidirectional", "model", 0, "effective_rank", "effective rank"),
           ranks("real head, causal", "model", 1, "effective_rank", "effective rank")}),
      figure(
          "spectrum", text, "Normalised cumulative spectrum",
          "Share of the singular values' sum in the first k. A curve that rises at once is a matrix of low effective "
          "rank.",
          {spectrum("gaussian, bidirectional" + at, "gaussian", 0, n),
           spectrum("real head, bidirectional" + at, "model", 0, n),
           spectrum("real head, causal" + at, "model", 1, n)})};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures});

}  // namespace
}  // namespace attnbench
