// Time and memory against sequence length, with exponents: softmax quadratic, the rest linear in n.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

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

std::vector<Index> lengths(RecipeSize size) {
  if (size == RecipeSize::smoke) return {64, 128};
  if (size == RecipeSize::quick) return {256, 1024, 2048, 4096, 8192};
  return {256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536};
}
// Further ones without softmax, which takes a second there for a call.
std::vector<Index> lengths_without_softmax(RecipeSize size) {
  return size == RecipeSize::quick ? std::vector<Index>{16384} : std::vector<Index>{};
}

const Description text{
    .name = "time",
    .summary = "Time and memory against sequence length",
    .formula = "Exact attention takes time quadratic in the sequence length, the approximations linear.",
    .reference =
        "Katharopoulos et al. 2020, arXiv:2006.16236, Fig. 1; Choromanski et al. 2020, "
        "arXiv:2009.14794, Fig. 3"};

std::string experiment(RecipeSize size) {
  return size == RecipeSize::smoke ? "speed:blocks=2,turn=1" : "speed:blocks=9,turn=10";
}
std::string without_softmax(RecipeSize size) { return experiment(size) + ",pair=false"; }

std::vector<RunRequest> runs(RecipeSize size) {
  const RunRequest paired{.experiment = experiment(size),
                          .methods = with({exact}, with(approximations, {floor_of_time})),
                          .inputs = {"gaussian"},
                          .n = lengths(size),
                          .causal = false,
                          .precision = Precision::f32};
  RunRequest whole_matrix = paired;  // of 64 MB at n = 4096
  whole_matrix.methods = {materialised};
  std::erase_if(whole_matrix.n, [](Index n) { return n > 4096; });
  RunRequest alone = paired;
  alone.experiment = without_softmax(size);
  alone.methods = with(approximations, {floor_of_time});
  alone.n = lengths_without_softmax(size);
  if (alone.n.empty()) return {paired, whole_matrix};
  return {paired, whole_matrix, alone};
}

std::vector<Figure> figures(RecipeSize size) {
  const Specs computing = with({exact}, with(approximations, {materialised}));
  const nlohmann::json where{{"experiment", Specs{experiment(size), without_softmax(size)}},
                             {"input", "gaussian"},
                             {"causal", 0},
                             {"precision", "f32"},
                             {"threads", 1},
                             {"method", with(computing, {floor_of_time})}};
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
  speedup.where["experiment"] = experiment(size);
  Panel roofline = time;
  roofline.slope = false;
  roofline.where["method"] = computing;
  roofline.title = "against the roofline";
  roofline.y = "roofline_fraction";
  roofline.y_label = "least time by the machine's rates / time";
  Panel memory = roofline;
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

// One exponent a block of turns, over the last three of the lengths; none when they begin below `least`.
Samples exponents(const Results& results, const std::string& method, const std::vector<Index>& all, Index least) {
  Samples samples;
  if (all.size() < 3 || all[all.size() - 3] < least) return samples;
  std::vector<double> n;
  std::vector<std::vector<double>> seconds;
  for (size_t i = all.size() - 3; i < all.size(); ++i) {
    n.push_back(static_cast<double>(all[i]));
    seconds.push_back(results.array({{"method", method}, {"n", all[i]}}, "seconds"));
  }
  const size_t blocks = std::min({seconds[0].size(), seconds[1].size(), seconds[2].size()});
  for (size_t b = 0; b < blocks; ++b)
    samples[static_cast<Index>(b)] = exponent(n, std::vector{seconds[0][b], seconds[1][b], seconds[2][b]});
  return samples;
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  using Outcome = Verdict::Outcome;
  // From there on the fixed costs of a call are small against its length.
  constexpr Index least_exact = 2048, least_linear = 4096;
  const std::string quadratic =
                        fmt::format("Exact attention takes quadratic time (n >= {}: exponent above 1.9)", least_exact),
                    linear = fmt::format("The approximations take linear time (n >= {}: exponent at most 1.05)",
                                         least_linear);
  const auto of_exact = mean(exponents(results, exact, lengths(size), least_exact), share_of_error_rate(1));
  if (of_exact.replicates == 0) {
    const std::string needed = "needs three lengths from there on: reproduce --quick or --full";
    return {{Outcome::ambiguous, quadratic, needed}, {Outcome::ambiguous, linear, needed}};
  }
  std::vector<Index> all = lengths(size);
  for (const Index n : lengths_without_softmax(size)) all.push_back(n);
  std::vector<Comparison> compared;
  std::vector<std::string> numbers;
  for (const auto& method : approximations) {
    compared.push_back(
        {method, mean(exponents(results, method, all, least_linear), share_of_error_rate(approximations.size()))});
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
