// Reformer attends from queries to queries: tokens are hashed once, as both, and K is not read. What has keys of its
// own (a decoder over an encoder's output, any pretrained softmax) is not what it computes. methods.md Z: true of
// shared-QK hashing, which is how the paper and its code hash.
#include <fmt/format.h>

#include "harness/runner/recipe.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;

const std::string reformer = "reformer", everything = "reformer:buckets=2,rounds=8,chunk=4096";
const Specs compared{"softmax", "linear", "local", reformer, "uniform"};
const std::string experiment = "attention-error:matrix=false";
const std::string law = "gaussian", real = "model:layer=2,head=1";

const Description text{
    .name = "reformer-decoding",
    .summary = "Reformer with queries and keys that differ",
    .formula = "Reformer cannot decode where keys differ from queries: its hashing takes them as one.",
    .reference = "Katharopoulos et al. 2020, arXiv:2006.16236, section 2.1 (source 004)"};

std::vector<Index> lengths(RecipeSize size) {
  if (size == RecipeSize::smoke) return {64};
  if (size == RecipeSize::quick) return {64, 128, 256};
  return {64, 128, 256, 512, 1024};
}

std::vector<RunRequest> runs(RecipeSize size) {
  const Index replicates = size == RecipeSize::smoke ? 2 : 8;
  const RunRequest errors{.experiment = experiment,
                          .methods = {reformer, everything, "uniform"},
                          .inputs = {law, real},
                          .n = lengths(size),
                          .causal = false,
                          .replicates = replicates};
  RunRequest reading = errors;
  reading.experiment = "dependence";
  reading.methods = compared;
  reading.inputs = {law};
  return {errors, reading};
}

std::vector<Figure> figures(RecipeSize) {
  const Panel error{.title = "normal queries and keys",
                    .where = {{"experiment", experiment}, {"input", law}, {"causal", 0}, {"d", 64}},
                    .x = {"n"},
                    .x_label = "sequence length n",
                    .x_scale = "log2",
                    .y = "relative_output_error",
                    .y_label = "|A'V - AV| / |AV|",
                    .y_scale = "log2"};
  Panel trained = error, keys = error;
  trained.title = "a trained head (layer 2, head 1)";
  trained.where["input"] = real;
  keys.title = "what other keys change";
  keys.where["experiment"] = "dependence";
  keys.y = "change_by_keys";
  keys.y_label = "change of the output / output";
  keys.y_scale = "linear";
  return {
      figure("reformer-decoding", text, "Reformer where keys are not queries",
             "Bidirectional, d = 64; 95 % intervals over inputs and draws. Even where nearly every token is a "
             "candidate (2 buckets, 8 rounds) the weights are those of other logits. Right: all keys replaced, normal "
             "queries and keys.",
             {error, trained, keys})};
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  std::vector<Bounded> change;
  std::vector<Comparison> error;
  const double rate = share_of_error_rate(lengths(size).size());
  for (const Index n : lengths(size)) {
    const std::string what = fmt::format("n = {}", n);
    const auto found = [&](const std::string& of, const std::string& method, const std::string& metric) {
      return results.scalar({{"experiment", of}, {"method", method}, {"input", law}, {"n", n}}, metric);
    };
    for (const auto& [replicate, value] : found("dependence", reformer, "change_by_keys"))
      change.push_back({what, value, 0});
    error.push_back({what, ratio(found(experiment, "uniform", "relative_output_error"),
                                 found(experiment, everything, "relative_output_error"), rate)});
  }
  return {all_at_most("Reformer's output does not depend on the keys (change with other keys)", change),
          all_below(1.05,
                    "Where keys are independent of queries Reformer, with nearly every token as a candidate, gains "
                    "nothing over the mean of V (error of the mean over its own, below 1.05)",
                    error)};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
