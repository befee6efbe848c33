// What users of published libraries get: each deviation that a parameter switches on, beside the method without it and
// the mean of V. Errors alone would not tell: where the honest estimate is worse than the mean of V, a bias towards it
// lowers the error.
#include <fmt/format.h>

#include "harness/core/parameters.hpp"
#include "harness/runner/recipe.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;
using Outcome = Verdict::Outcome;

struct Trap {
  std::string correct, published, name;
};
const std::vector<Trap> traps{
    {"performer", "performer:sign_fix=false", "a QR factor without its signs"},
    {"performer", "performer:norms=same-block", "the norms of the rows that QR began with"},
    {"performer", "performer:norms=sqrt-d", "all norms sqrt(d)"},
    {"performer", "performer:epsilon=0.0001", "1e-4 added to features"},
    {"performer", "performer:epsilon=0.0001,stabiliser=projection-only", "1e-4 added to features stabilised by W x"},
    {"performer", "performer:epsilon=0.0001,epsilon_kind=plain", "1e-4 added after m^-1/2"},
    {"performer", "performer:stabiliser=per-key", "a stabiliser of each key, never restored"},
    {"performer:features=relu", "performer:features=relu,epsilon=0.001", "1e-3 added to ReLU features"},
    {"reformer:chunk=32", "reformer:chunk=32,bucket_mask=false", "no mask of other buckets"},
    {"reformer:chunk=32", "reformer:chunk=32,combine=uniform", "rounds of hashing averaged"}};
const std::string defaults = traps[4].published;
const std::string real_head = "model:layer=2,head=1";
const std::string error = "attention-error:matrix=false", to_mean = "agreement:[uniform]";
const std::string unstabilised = "performer:stabiliser=projection-only", to_correct = "agreement:[performer]";

const Description text{.name = "published-bugs",
                       .summary = "What deviations of published libraries cost",
                       .formula =
                           "Implementations of random features and of hashing that deviate from their papers give the "
                           "same attention.",
                       .reference =
                           "google-research's fast attention, performer-pytorch, fast-transformers: their code as "
                           "published"};

Index length(RecipeSize size) { return size == RecipeSize::smoke ? 64 : size == RecipeSize::quick ? 256 : 512; }
Index replicates(RecipeSize size) { return size == RecipeSize::smoke ? 2 : size == RecipeSize::quick ? 12 : 24; }
Specs scales(RecipeSize size) {
  if (size == RecipeSize::smoke) return {"0.5", "2"};
  return {"0.25", "0.5", "0.7", "1", "1.4", "2"};
}
Specs large_scales(RecipeSize size) {
  if (size == RecipeSize::smoke) return {"1", "4"};
  return {"1", "2", "3", "4"};
}
std::string law(const std::string& scale) { return "gaussian:scale=" + scale; }

Specs judged_inputs(RecipeSize size) {
  Specs all{real_head};
  for (const auto& scale : scales(size)) all.push_back(law(scale));
  return all;
}

Specs all_methods() {
  Specs all{"uniform"};
  for (const auto& trap : traps)
    for (const auto& method : {trap.correct, trap.published})
      if (std::find(all.begin(), all.end(), method) == all.end()) all.push_back(method);
  return all;
}

std::vector<RunRequest> runs(RecipeSize size) {
  const RunRequest errors{.experiment = error,
                          .methods = all_methods(),
                          .inputs = {"gaussian"},
                          .n = {length(size)},
                          .causal = false,
                          .sweep = {{"scale", scales(size)}},
                          .replicates = replicates(size)};
  RunRequest on_head = errors, mean_of_values = errors, in_float = errors;
  on_head.inputs = {real_head};
  on_head.sweep = {};
  mean_of_values.experiment = to_mean;
  mean_of_values.methods = {"performer", defaults};
  in_float.experiment = to_correct;
  in_float.methods = {unstabilised};
  in_float.precision = Precision::f32;
  in_float.sweep = {{"scale", large_scales(size)}};
  return {errors, on_head, mean_of_values, in_float};
}

std::vector<Figure> figures(RecipeSize size) {
  std::vector<Panel> panels;
  for (const auto& [title, correct] : {std::pair{"positive features", "performer"},
                                       {"ReLU features", "performer:features=relu"},
                                       {"hashing", "reformer:chunk=32"}}) {
    Specs methods{correct, "uniform"};
    for (const auto& trap : traps)
      if (trap.correct == correct) methods.push_back(trap.published);
    panels.push_back({.title = title,
                      .where = {{"experiment", error}, {"input", "gaussian"}, {"method", methods}},
                      .x = {"scale"},
                      .x_label = "standard deviation of the entries of Q and K",
                      .x_scale = "log10",
                      .y = "relative_output_error",
                      .y_label = "error of the output over that of the method",
                      .y_scale = "log10",
                      .ratio_to = correct});
  }
  const Panel mean_of_values{
      .title = "1e-4 added to features stabilised by W x",
      .where = {{"experiment", to_mean}, {"input", "gaussian"}, {"method", {"performer", defaults}}},
      .x = {"scale"},
      .x_label = "standard deviation of the entries of Q and K",
      .x_scale = "log10",
      .y = "relative_output_difference",
      .y_label = "distance to the mean of V, over its norm",
      .y_scale = "log10"};
  const Panel in_float{
      .title = "float, stabilised by W x",
      .where = {{"experiment", to_correct}, {"input", "gaussian"}, {"method", unstabilised}, {"precision", "f32"}},
      .x = {"scale"},
      .x_label = "standard deviation of the entries of Q and K",
      .y = "relative_output_difference",
      .y_label = "difference to max(W x - |x|^2/2), relative",
      .y_scale = "log10"};
  return {figure("published-bugs", text, "Deviations of published libraries: error of the output",
                 fmt::format(
                     "gaussian, n = {}, d = 64, m = 256, bidirectional; 95 % intervals over inputs and draws. Below "
                     "uniform, an attention is better than the mean of V; where the method itself is worse, a "
                     "deviation towards the mean of V lowers its error.",
                     length(size)),
                 panels),
          figure("published-bugs-epsilon", text, "The mean of V, returned, and keys that underflow",
                 "Left: how far the output is from the mean of V. Right: in float, how far features stabilised by the "
                 "maximum of W x are from those of the paper, with the same random vectors; 0 but for rounding until "
                 "keys underflow.",
                 {mean_of_values, in_float})};
}

Samples output_error(const Results& results, const std::string& method, const std::string& input) {
  return results.scalar({{"experiment", error}, {"method", method}, {"input", input}}, "relative_output_error");
}

// A trap a region: its error over that of the correct code on each input.
Verdict judge_errors(const Results& results, RecipeSize size) {
  const Specs inputs = judged_inputs(size);
  std::vector<Region> regions;
  for (const auto& trap : traps) {
    Region region{trap.name, {}};
    for (const auto& input : inputs)
      region.comparisons.push_back(
          {input, ratio(output_error(results, trap.published, input), output_error(results, trap.correct, input),
                        share_of_error_rate(traps.size() * inputs.size()))});
    regions.push_back(region);
  }
  Verdict verdict =
      below_where(1.1,
                  {"What published libraries do otherwise raises the error of the output by less than a tenth",
                   Outcome::conditional},
                  regions);
  verdict.numbers = "error over that of the method, by input: " + verdict.numbers;
  return verdict;
}

// Of an output that is as far from the mean of V as that of the correct features nothing is lost.
Verdict judge_mean(const Results& results, RecipeSize size) {
  std::vector<Region> regions;
  for (const auto& scale : scales(size)) {
    const auto distance = [&](const std::string& method) {
      return results.scalar({{"experiment", to_mean}, {"method", method}, {"input", law(scale)}},
                            "relative_output_difference");
    };
    regions.push_back(
        {"entries of scale " + scale,
         {{"", ratio(distance(defaults), distance("performer"), share_of_error_rate(scales(size).size()))}}});
  }
  Verdict verdict = below_where(
      0.1,
      {"With 1e-4 added to features that are stabilised by the maximum of W x, a Performer returns the mean of V: it "
       "is "
       "less than a tenth as far from it as without the 1e-4",
       Outcome::conditional, "the defaults of performer-pytorch, whose users report errors of 73 % on normal inputs"},
      regions);
  verdict.numbers = "distance to the mean of V over that of the method at " + verdict.numbers;
  return verdict;
}

Verdict judge_underflow(const Results& results, RecipeSize size) {
  std::vector<Region> regions;
  for (const auto& scale : large_scales(size))
    regions.push_back(
        {"entries of scale " + scale,
         {{"", mean(results.scalar({{"experiment", to_correct}, {"method", unstabilised}, {"input", law(scale)}},
                                   "relative_output_difference"),
                    share_of_error_rate(large_scales(size).size()))}}});
  Verdict verdict =
      below_where(0.01,
                  {"In float, features stabilised by the maximum of W x, without an epsilon, are those of the "
                   "Performer to one part "
                   "in a hundred",
                   Outcome::conditional, "google-research's fast attention, whose users ask why it takes that maximum"},
                  regions);
  verdict.numbers = "relative difference of the output at " + verdict.numbers;
  return verdict;
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  return {judge_errors(results, size), judge_mean(results, size), judge_underflow(results, size)};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
