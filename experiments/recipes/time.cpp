// Time and memory against sequence length, with exponents: softmax quadratic, the rest linear in n.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/runner/recipe.hpp"
#include "harness/statistics/power_law.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;

const std::string exact = "softmax", materialised = "softmax:form=materialised", floor_of_time = "identity";
const Specs approximations{"performer", "performer:features=trig", "linear", "linformer", "vq",
                           "local",     "truncated:window=16"};

Specs with(const Specs& first, const Specs& others) {
  Specs all = first;
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

// From here on the fixed costs of a call are small against its length.
constexpr Index least_judged = 4096;

std::vector<Index> lengths(RecipeSize size) {
  if (size == RecipeSize::smoke) return {64, 128};
  if (size == RecipeSize::quick) return {256, 1024, 4096, 8192, 16384};
  return {256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536};
}

const Description text{
    .name = "time",
    .summary = "Time and memory against sequence length",
    .formula = "Exact attention takes time quadratic in the sequence length, the approximations linear.",
    .reference =
        "Katharopoulos et al. 2020, arXiv:2006.16236, Fig. 1; Choromanski et al. 2020, "
        "arXiv:2009.14794, Fig. 3"};

std::vector<RunRequest> runs(RecipeSize size) {
  const RunRequest request{.experiment = size == RecipeSize::smoke ? "speed:blocks=2,turn=1" : "speed:blocks=9,turn=10",
                           .methods = with({exact}, with(approximations, {floor_of_time})),
                           .inputs = {"gaussian"},
                           .n = lengths(size),
                           .causal = false,
                           .precision = Precision::f32};
  RunRequest whole_matrix = request;  // of 64 MB at n = 4096
  whole_matrix.methods = {materialised};
  std::erase_if(whole_matrix.n, [](Index n) { return n > 4096; });
  return {request, whole_matrix};
}

std::vector<Figure> figures(RecipeSize) {
  const Specs methods = with({exact}, with(approximations, {materialised, floor_of_time}));
  const nlohmann::json where{{"experiment", "speed"}, {"input", "gaussian"}, {"causal", 0},
                             {"precision", "f32"},    {"threads", 1},        {"method", methods}};
  const Panel time{.title = "time of one head",
                   .where = where,
                   .x = {"n"},
                   .x_label = "sequence length n",
                   .x_scale = "log2",
                   .y = "seconds",
                   .y_label = "seconds per call",
                   .y_scale = "log10",
                   .interval = "median",
                   .slope = true};
  Panel speedup = time;
  speedup.title = "paired with exact softmax";
  speedup.y = "speedup";
  speedup.y_label = "times faster than softmax";
  speedup.slope = false;
  Panel roofline = speedup;
  roofline.title = "against the roofline";
  roofline.y = "roofline_fraction";
  roofline.y_label = "least time by the machine's rates / time";
  Panel memory = speedup;
  memory.title = "memory of one head";
  memory.y = "peak_bytes";
  memory.y_label = "peak memory beyond inputs and output";
  return {
      figure("time", text, "Time against sequence length",
             "One head, d = dv = 64, float, one thread, bidirectional: medians with distribution-free 95 % intervals; "
             "n^a is the fitted exponent. Each block of turns gives one ratio to softmax measured beside it. identity "
             "returns V: nothing can be faster. The roofline holds FLOPs and exponentials of the cost formula, inputs "
             "and output against rates measured in the same process (attnbench machine).",
             {time, speedup, roofline}),
      figure("memory", text, "Memory against sequence length",
             "The same calls: resident memory at the peak of one call, beyond inputs and output. The three lines of "
             "most code (form=materialised) keep n x n numbers; the tiled softmax and the approximations do not.",
             {memory})};
}

// One exponent a block of turns, over the lengths from least_judged on.
Samples exponents(const Results& results, const std::string& method, RecipeSize size) {
  std::vector<double> n;
  std::vector<std::vector<double>> seconds;
  for (const Index length : lengths(size)) {
    if (length < least_judged) continue;
    n.push_back(static_cast<double>(length));
    seconds.push_back(results.array({{"method", method}, {"n", length}}, "seconds"));
  }
  Samples samples;
  if (n.size() < 3) return samples;
  for (size_t block = 0; block < seconds[0].size(); ++block) {
    std::vector<double> of_block;
    for (const auto& blocks : seconds)
      if (block < blocks.size()) of_block.push_back(blocks[block]);
    if (of_block.size() == n.size()) samples[static_cast<Index>(block)] = exponent(n, of_block);
  }
  return samples;
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  using Outcome = Verdict::Outcome;
  const std::string range = fmt::format(" (n >= {}: exponent", least_judged);
  const std::string quadratic = "Exact attention takes quadratic time" + range + " above 1.9)",
                    linear = "The approximations take linear time" + range + " at most 1.05)";
  const auto estimate = [&](const std::string& method, size_t comparisons) {
    return mean(exponents(results, method, size), share_of_error_rate(comparisons));
  };
  const Estimate of_exact = estimate(exact, 1);
  if (of_exact.replicates == 0) {
    const std::string needed = fmt::format("three lengths from {} on are needed", least_judged);
    return {{Outcome::ambiguous, quadratic, needed}, {Outcome::ambiguous, linear, needed}};
  }
  std::vector<Comparison> compared;
  std::vector<std::string> numbers;
  for (const auto& method : approximations) {
    compared.push_back({method, estimate(method, approximations.size())});
    numbers.push_back(fmt::format("{}: {}", method, compared.back().estimate.text()));
  }
  Verdict all_linear = all_below(1.05, linear, compared);
  all_linear.numbers = fmt::format("{}", fmt::join(numbers, "; "));
  return {{of_exact.above(1.9)   ? Outcome::pass
           : of_exact.below(1.9) ? Outcome::fail
                                 : Outcome::ambiguous,
           quadratic, of_exact.text()},
          all_linear};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
