// Whether truncating linear attention to a band loses its linear complexity. methods.md F: where code forms the matrix
// and masks it, yes, n^2 F; evaluated on the band alone, n (2 w + 1) (F + dv), which is linear in n. A mask is no
// product of features, so the state of linear attention (one pass, whatever w) is lost either way.
#include <fmt/format.h>

#include <cmath>

#include "experiments/recipes/growth.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;

const std::string whole = "linear", formed = "truncated:window=65536", banded = "truncated:window=16";

const Description text{.name = "truncation-cost",
                       .summary = "What truncating linear attention to a band costs",
                       .formula = "Truncating linear attention to a band loses its linear complexity.",
                       .reference = "Su 2021, kexue.fm/archives/8338 (source 000)"};

std::vector<Index> lengths(RecipeSize size) {
  if (size == RecipeSize::smoke) return {32, 64};
  if (size == RecipeSize::quick) return {1024, 2048, 4096};
  return {1024, 2048, 4096, 8192, 16384};
}

std::string timed(RecipeSize size) { return "speed:" + turns(size) + ",pair=false"; }
const std::string counted = "layer-flops";
// Far apart, where what a block of rows does at its edges counts for nothing.
const std::vector<Index> counted_lengths{16384, 32768};

std::vector<RunRequest> runs(RecipeSize size) {
  const RunRequest timing{.experiment = timed(size),
                          .methods = {whole, formed, banded},
                          .inputs = {"gaussian"},
                          .n = lengths(size),
                          .causal = false,
                          .precision = Precision::f32};
  RunRequest counting = timing;
  counting.experiment = counted;
  counting.n = counted_lengths;
  return {timing, counting};
}

std::vector<Figure> figures(RecipeSize size) {
  return {
      figure("truncation-cost", text, "Time of a truncated linear attention",
             "One head, d = dv = 64, elu + 1, float, one thread, bidirectional: medians with distribution-free 95 % "
             "intervals; n^a is the fitted exponent. window = 65536 forms all weights, as masking them does; "
             "window = 16 those of the band alone.",
             {time_panel("time of one head", {{"experiment", timed(size)},
                                              {"input", "gaussian"},
                                              {"causal", 0},
                                              {"precision", "f32"},
                                              {"method", Specs{whole, formed, banded}}})})};
}

Estimate below_square(const Estimate& exponent) {
  return {2 - exponent.value, {2 - exponent.interval.high, 2 - exponent.interval.low}, exponent.replicates};
}

// 2 less the exponent of FLOPs against n.
Estimate below_square_by_flops(const Results& results, const std::string& method) {
  const auto flops = [&](Index n) {
    return results.scalar({{"experiment", counted}, {"method", method}, {"n", n}}, "attention_flops").at(0);
  };
  const Index first = counted_lengths.front(), last = counted_lengths.back();
  return certain(2 - std::log(flops(last) / flops(first)) /
                         std::log(static_cast<double>(last) / static_cast<double>(first)));
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  const std::string first = "with the matrix formed", second = "with the band alone";
  using Outcome = Verdict::Outcome;
  const auto found = growths(results, {{"experiment", timed(size)}}, {formed, banded}, lengths(size));
  std::vector<Region> by_time;
  std::vector<std::string> words;
  for (const Growth& growth : found) {
    by_time.push_back({growth.method == formed ? first : second, {{"", below_square(growth.judged())}}});
    words.push_back(growth.text());
  }
  Verdict of_time =
      below_where(0.25,
                  {fmt::format("Truncation makes its time grow as n^2 up to n = {} (2 less the exponent below 0.25)",
                               lengths(size).back()),
                   Outcome::conditional},
                  by_time);
  if (!words.empty()) of_time.numbers = fmt::format("{}", fmt::join(words, "; "));
  return {below_where(0.25,
                      {"Truncation makes the FLOPs of linear attention grow as n^2 (2 less their exponent below 0.25)",
                       Outcome::conditional},
                      {{first, {{"", below_square_by_flops(results, formed)}}},
                       {second, {{"", below_square_by_flops(results, banded)}}}}),
          of_time};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
