// Time of one decoding step and what is kept for it, against position. Source 004 (the translation of "Transformers are
// RNNs") counts a softmax step as the square of the length: that is a step that computes all rows again, not one with a
// cache of keys and values (methods.md Z).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "harness/runner/recipe.hpp"
#include "harness/statistics/power_law.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;

const std::string cached = "softmax", recomputed = "softmax:cache=false", floor_of_time = "identity";
// What they keep does not grow with the position. Sweeps would make vq's codebook better, and no step faster.
Specs bounded(RecipeSize size) {
  Specs all{"linear", "performer", "vq:sweeps=0", "local", "uniform"};
  if (size != RecipeSize::quick) all.insert(all.end(), {"sink-window", "heavy-hitter"});
  return all;
}

const Description text{
    .name = "decode",
    .summary = "Time and memory of one decoding step against position",
    .formula =
        "A step of attention with a state of constant size costs the same at any position; a step of softmax costs the "
        "square of the length, as source 004 counts it.",
    .reference = "Katharopoulos et al. 2020, arXiv:2006.16236, section 3.4; Xiao et al. 2023, arXiv:2309.17453"};

std::vector<Index> positions(RecipeSize size) {
  if (size == RecipeSize::smoke) return {64, 128};
  if (size == RecipeSize::quick) return {128, 1024, 8192, 65536};
  return {128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536};
}

// The position that steps are said to grow from: the experiment's `from`.
Index early(RecipeSize size) { return size == RecipeSize::smoke ? 64 : 1024; }

// Where a step that computes all rows again takes less than a second.
std::vector<Index> recomputed_positions(RecipeSize size) {
  if (size == RecipeSize::smoke) return {64, 128};
  if (size == RecipeSize::quick) return {1024, 4096};
  return {1024, 2048, 4096, 8192, 16384};
}

std::vector<RunRequest> runs(RecipeSize size) {
  RunRequest request{.experiment = size == RecipeSize::smoke   ? "decode:blocks=2,turn=0.2,from=64"
                                   : size == RecipeSize::quick ? "decode:blocks=32,turn=1"
                                                               : "decode:blocks=96,turn=4",
                     .methods = bounded(size),
                     .inputs = {"gaussian"},
                     .n = positions(size),
                     .causal = true,
                     .precision = Precision::f32};
  request.methods.insert(request.methods.begin(), {cached, floor_of_time});
  RunRequest again = request;
  again.methods = {recomputed};
  again.n = recomputed_positions(size);
  if (size != RecipeSize::smoke) again.experiment = "decode:blocks=24,turn=1";  // enough where a step is a turn
  return {request, again};
}

std::vector<Figure> figures(RecipeSize size) {
  Specs methods{cached, recomputed, floor_of_time};
  for (const auto& method : bounded(size)) methods.push_back(method);
  const Panel time{.title = "time of one head",
                   .where = {{"experiment", "decode"},
                             {"input", "gaussian"},
                             {"causal", 1},
                             {"precision", "f32"},
                             {"threads", 1},
                             {"method", methods}},
                   .x = {"n"},
                   .x_label = "position",
                   .x_scale = "log2",
                   .y = "seconds",
                   .y_label = "seconds per token",
                   .y_scale = "log10",
                   .interval = "median",
                   .slope = true};
  Panel memory = time;
  memory.title = "what is kept";
  memory.y = "state_bytes";
  memory.y_label = "bytes";
  memory.slope = false;
  return {figure("decode", text, "One decoding step against position",
                 "One head, d = dv = 64, float, one thread: medians with distribution-free 95 % intervals; n^a is the "
                 "fitted exponent. softmax keeps all keys and values, cache=false computes all rows again at each "
                 "step; the others keep a state or a window of constant size.",
                 {time, memory})};
}

std::vector<double> samples(const Results& results, const std::string& method, Index n, const std::string& metric) {
  return results.array({{"method", method}, {"n", n}}, metric);
}

Verdict flat(const Results& results, RecipeSize size) {
  const Index last = positions(size).back();
  std::vector<Comparison> comparisons;
  for (const auto& method : bounded(size)) {
    if (method == "uniform") continue;  // 0.07 us: a turn of 32 such steps is not timed to 5 %
    comparisons.push_back(
        {method, median_of(samples(results, method, last, "growth"), share_of_error_rate(bounded(size).size() - 1))});
  }
  return all_below(1.05,
                   {fmt::format("With a state or window of constant size a decoding step at position {} takes at most "
                                "5 % longer than at {}",
                                last, early(size))},
                   comparisons);
}

// The position from which on the speedup stays above 1.
std::string crossing(const std::vector<Index>& at, const std::vector<double>& speedups) {
  const double position = last_rise_through_one(std::vector<double>(at.begin(), at.end()), speedups);
  if (position == 0) return fmt::format("before {}", at.front());
  return std::isfinite(position) ? fmt::format("{:.0f}", position) : fmt::format("beyond {}", at.back());
}

Verdict crossover(const Results& results, RecipeSize size) {
  const auto at = positions(size);
  const double error_rate = share_of_error_rate(bounded(size).size() * at.size());
  std::vector<Comparison> comparisons;
  Specs crossings;
  for (const auto& method : bounded(size)) {
    std::vector<double> value, low, high;
    for (const Index n : at) {
      const Estimate speedup = median_of(samples(results, method, n, "speedup"), error_rate);
      value.push_back(speedup.value);
      low.push_back(speedup.interval.low);
      high.push_back(speedup.interval.high);
    }
    crossings.push_back(
        fmt::format("{}: {} ({} to {})", method, crossing(at, value), crossing(at, high), crossing(at, low)));
    std::vector<double> ratios = samples(results, method, at.back(), "speedup");
    for (double& ratio : ratios) ratio = 1 / ratio;
    comparisons.push_back({method, median_of(ratios, error_rate)});
  }
  Verdict verdict = all_below(1,
                              {fmt::format("At position {} a decoding step with a state or window of constant size "
                                           "takes less time than softmax over its cache of keys and values",
                                           at.back())},
                              comparisons);
  verdict.numbers += fmt::format("; they overtake it at position: {}", fmt::join(crossings, ", "));
  return verdict;
}

// 2 less the exponent of time against position.
Estimate below_square(const Results& results, const std::string& method, Index last, RecipeSize size) {
  const double log_ratio = std::log(static_cast<double>(last) / static_cast<double>(early(size)));
  std::vector<double> shortfalls = samples(results, method, last, "growth");
  for (double& growth : shortfalls) growth = 2 - std::log(growth) / log_ratio;
  return median_of(shortfalls, share_of_error_rate(2));
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  return {flat(results, size), crossover(results, size),
          below_where(0.25,
                      {"A decoding step of softmax attention costs the square of the length: 2 less the exponent of "
                       "time against position is below 0.25",
                       Verdict::Outcome::conditional,
                       "source 004, a translation of Katharopoulos et al. 2020, arXiv:2006.16236, section 3.4"},
                      {{"steps that compute all rows again",
                        {{"", below_square(results, recomputed, recomputed_positions(size).back(), size)}}},
                       {"steps over a cache of keys and values",
                        {{"", below_square(results, cached, positions(size).back(), size)}}}})};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
