// Quality against speed, with memory as the size of the circle, all methods at equal FLOPs: a measured version of
// Fig. 3 of Tay et al., arXiv:2011.04006, with which Lee's lecture closes.
#include <fmt/format.h>

#include <algorithm>

#include "experiments/recipes/field.hpp"
#include "experiments/recipes/growth.hpp"
#include "experiments/recipes/real_heads.hpp"

namespace attnbench::quality_speed_memory_recipe {
namespace {

constexpr double share = 8;  // budgets are softmax's FLOPs over this

struct Setting {
  std::string title, input;
  Index n;
  bool causal;
  std::vector<std::string> candidates = {};
  Cells errors = {}, speeds = {};
};

// More about the methods of the first setting, for the table of methods.
struct More {
  Cells ranks, supports, kernels, decoding, losses;
};

// A head of the model with its own mask, and structured random inputs longer than the model's context.
std::vector<Setting> run_settings(Recipe& recipe) {
  std::vector<Setting> all{{typical_head.name() + " of the byte-level model", typical_head.input(),
                            recipe.sized<Index>(64, 256, 1024), true}};
  if (recipe.size() == RecipeSize::full) {
    all.push_back({dense_head.name() + " of the byte-level model", dense_head.input(), 1024, true});
    all.push_back({"clustered queries and keys", "clustered", 2048, false});
    all.push_back({"AR(1) tokens of correlation 0.9", "ar1", 2048, false});
  }
  for (Setting& one : all) {
    const Shape shape{.nq = one.n, .nk = one.n, .d = 64, .dv = 64, .mask = {.causal = one.causal}};
    one.candidates = field_at(shape, softmax_flops(shape) / share);
    RunRequest request{.experiment = "attention-error:matrix=false",
                       .methods = one.candidates,
                       .inputs = {one.input},
                       .n = {one.n},
                       .causal = one.causal,
                       .replicates = recipe.sized<Index>(2, texts)};
    request.methods.push_back("uniform");
    one.errors = recipe.run(request);
    request.methods.push_back("softmax");
    request.experiment = "speed:" + turns(recipe);
    request.precision = Precision::f32;
    request.replicates = 1;
    one.speeds = recipe.run(request);
  }
  return all;
}

bool draws_features(const std::string& method) {
  const Params params("methods", method);
  const auto& declared = params.declared();
  return std::any_of(declared.begin(), declared.end(),
                     [](const Parameter& parameter) { return parameter.catalogue == "projections"; });
}

// Whether the method takes in one token after another. All methods that must first learn from a head do.
bool decodes(const std::string& method) {
  const Params params("methods", method);
  if (find<MethodEntry>(params.name()).fitted(params)) return true;
  const Shape shape{.nq = 16, .nk = 16, .d = 64, .dv = 64, .mask = {.causal = true}};
  return make_approximation<float>({.shape = shape, .params = params, .streams = Streams(1)})->decoder(shape) !=
         nullptr;
}

More run_more(Recipe& recipe, const Setting& one) {
  RunRequest request{.experiment = "rank:by_index=false",
                     .methods = one.candidates,
                     .inputs = {one.input},
                     .n = {one.n},
                     .causal = one.causal,
                     .replicates = recipe.sized<Index>(2, 4)};
  request.methods.insert(request.methods.end(), {"uniform", "softmax"});
  More more;
  more.ranks = recipe.run(request);
  request.experiment = "sparsity:by_row=false";
  more.supports = recipe.run(request);
  RunRequest timed = request;
  timed.experiment = "decode:" + turns(recipe);
  timed.precision = Precision::f32;
  timed.replicates = 1;
  std::erase_if(timed.methods, [](const auto& spec) { return !decodes(spec); });
  more.decoding = recipe.run(timed);
  RunRequest kernels = request;
  kernels.experiment = fmt::format("kernel-error:draws={},pairs=16,by_pair=false", recipe.sized(64, 256));
  std::erase_if(kernels.methods, [](const auto& method) { return !draws_features(method); });
  if (!kernels.methods.empty()) more.kernels = recipe.run(kernels);
  request.experiment = "model-loss";
  request.inputs = {"model"};
  request.precision = Precision::f32;
  request.replicates = recipe.sized<Index>(2, 20, texts);
  more.losses = recipe.run(request);
  return more;
}

void draw(Recipe& recipe, const std::vector<Setting>& settings) {
  std::vector<Panel> panels;
  for (const Setting& one : settings)
    panels.push_back(
        error_against_time(fmt::format("{}, n = {}, {}", one.title, one.n, one.causal ? "causal" : "bidirectional"),
                           one.errors + one.speeds));
  recipe.headline(2, "Is it fast, and what does that cost?");
  recipe.figure("quality-speed-memory", "Quality against speed, memory as the circle",
                fmt::format("Every method at 1/{:g} of softmax's FLOPs, or as it is when it has no budget and costs no "
                            "more than softmax; d = dv = 64. Errors in double: medians over {} texts (heads of the "
                            "byte-level model, with its causal mask, which some methods have no form for) or draws. "
                            "Times in float on one thread of one head, paired with exact softmax. Dotted line: the "
                            "mean of V. Exact softmax is at 1, without error. Mixers have weights that were drawn, "
                            "not trained.",
                            share, recipe.sized<Index>(2, texts)),
                panels);
}

// The methods of the first setting in a table, one panel a column.
void tabulate(Recipe& recipe, const Setting& one, const More& more) {
  std::vector<Panel> columns{table_column(one.errors, "relative_output_error", "error of the output", "mean", "log10"),
                             table_column(more.losses, "excess_bits", "bits per byte lost", "mean", "linear")};
  if (!more.kernels.keys().empty()) {  // the budget of a smoke run is too small for random features
    columns.push_back(table_column(more.kernels, "relative_mse", "relative MSE of the kernel", "mean", "log10"));
    columns.back().theory = "relative_mse_theory";
  }
  for (const Panel& column : {table_column(more.ranks, "effective_rank", "effective rank", "mean", "log2"),
                              table_column(more.supports, "effective_support", "effective support", "mean", "log2"),
                              table_column(one.speeds, "speedup", "times faster than softmax", "median", "log2"),
                              table_column(more.decoding, "speedup", "times faster in decoding", "median", "log2"),
                              table_column(one.speeds, "peak_bytes", "peak memory", "median", "log10"),
                              table_column(one.speeds, "rounding_error", "rounding of float", "median", "log10")})
    columns.push_back(column);
  recipe.figure(
      "methods", fmt::format("Methods at 1/{:g} of softmax's FLOPs", share),
      fmt::format(
          "On {}, n = {}, {}; d = dv = 64. Error: Frobenius norm of the output's error over that of the output, in "
          "double. Bits per byte: of the whole model with the method in every head, not trained again, above exact "
          "attention. Kernel: E (K'/K - 1)^2 of random features, with the closed form. Effective rank exp H(sigma / "
          "sum) and effective support exp H(row) of the attention matrix. Times in float on one thread, paired with "
          "exact softmax: of a whole sequence, and of one more token after it. Rounding: float against double, the "
          "check that every method passes before it is timed. A method without a causal form, an attention matrix or "
          "a decoder has no number there.",
          one.title, one.n, one.causal ? "causal" : "bidirectional"),
      columns);
}

// The larger of two numbers: below 1 if both are.
Estimate larger_of(const Estimate& a, const Estimate& b) {
  return {std::max(a.value, b.value),
          {std::max(a.interval.low, b.interval.low), std::max(a.interval.high, b.interval.high)},
          std::min(a.count, b.count)};
}

// One region per setting: whether some candidate is both faster than softmax and more accurate than the mean of V.
std::vector<Region> faster_and_better(const std::vector<Setting>& settings, double rate) {
  std::vector<Region> regions;
  for (const Setting& one : settings) {
    Region region{fmt::format("{}, n = {}", one.title, one.n), {}};
    region.rule = Region::Rule::some;
    for (const auto& method : one.candidates) {
      std::vector<double> slower = one.speeds.method(method).turns("speedup");
      for (double& speedup : slower) speedup = 1 / speedup;
      const Estimate error = median_ratio(one.errors.method(method).scalar("relative_output_error"),
                                          one.errors.method("uniform").scalar("relative_output_error"), rate);
      region.comparisons.push_back({method, larger_of(median_of(slower, rate), error)});
    }
    regions.push_back(region);
  }
  return regions;
}

void write(Recipe& recipe) {
  const auto settings = run_settings(recipe);
  draw(recipe, settings);
  tabulate(recipe, settings.front(), run_more(recipe, settings.front()));
  size_t intervals = 0;
  for (const Setting& one : settings) intervals += 2 * one.candidates.size();
  recipe.judge(
      {.text = "On one CPU thread, some approximation, at an eighth of softmax's FLOPs where it has a budget, is "
               "faster than exact attention and errs less than the mean of V",
       .definition = fmt::format(
           "of each candidate the larger of two ratios: its seconds over those of this project's tiled softmax, the "
           "median over blocks of turns (one head, float, one thread), and the relative Frobenius error of its output, "
           "in double, over that of the mean of V, the median over {} texts or inputs and draws. Candidates are up to "
           "30 forms of this project's methods, with budgets for an eighth of softmax's FLOPs; those without a budget "
           "are candidates too if they cost no more than softmax. d = dv = 64. Settings: one head of this project's "
           "byte-level model, causal (methods without a causal form are no candidates), n = {}; at full size another "
           "head, and clustered and AR(1) inputs without a mask",
           recipe.sized<Index>(2, texts), settings.front().n),
       .threshold =
           "1: as fast as softmax, or as wrong as the mean of V, which needs neither queries nor keys. A setting holds "
           "if both ratios of one candidate surely lie below 1, and fails if every candidate surely has one above",
       .expected = Ruling::open,
       .because = "nothing is known beforehand"},
      [=, &recipe] { return below_where(1, faster_and_better(settings, recipe.error_rate(intervals))); });
}

const bool registered =
    add(RecipeEntry{.text = {.name = "quality-speed-memory",
                             .summary = "Quality against speed, memory as the circle",
                             .formula = "Is some approximation faster than exact attention and nearer to it than the "
                                        "mean of V?",
                             .reference = "Tay et al. 2020, arXiv:2011.04006, Fig. 3"},
                    .write = write});

}  // namespace
}  // namespace attnbench::quality_speed_memory_recipe
