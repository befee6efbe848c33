// From which length the polynomial kernel of degree 2 is cheaper than softmax. With D^2 features 4 n D^2 (D + 1)
// against 4 n^2 D FLOPs: n > D^2 (1 + 1/D). The kernel needs D (D + 1) / 2 of them, q_l q_m = q_m q_l, so n > (D + 1)^2
// / 2: half as long, methods.md C5. Time has what FLOPs do not: exponentials of softmax, and making features.
#include <fmt/format.h>

#include <cmath>

#include "experiments/recipes/growth.hpp"
#include "harness/statistics/power_law.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;

const std::string polynomial = "polynomial", exact = "softmax";

const Description text{.name = "polynomial-crossover",
                       .summary = "The length from which the polynomial kernel is cheaper than softmax",
                       .formula =
                           "Attention with the polynomial kernel of degree 2 is favourable for n > D^2, and with "
                           "symmetric features for n > D (D + 1) / 2.",
                       .reference = "Katharopoulos et al. 2020, arXiv:2006.16236, section 3.2.1 (source 004)"};

std::vector<Index> widths(RecipeSize size) {
  return size == RecipeSize::smoke ? std::vector<Index>{8} : std::vector<Index>{16, 32};
}
std::vector<Index> lengths(RecipeSize size) {
  if (size == RecipeSize::smoke) return {32, 64};
  if (size == RecipeSize::quick) return {32, 64, 128, 256, 512, 1024, 2048};
  return {32, 64, 128, 256, 512, 1024, 2048, 4096, 8192};
}

std::string timed(RecipeSize size) { return "speed:" + turns(size); }

Index features(Index d) { return d * (d + 1) / 2; }
// By FLOPs, the normaliser counted: n D = F (D + 1).
Index symmetric(Index d) { return (d + 1) * (d + 1) / 2; }

std::vector<RunRequest> runs(RecipeSize size) {
  std::vector<RunRequest> all{{.experiment = timed(size),
                               .methods = {polynomial},
                               .inputs = {"gaussian"},
                               .n = lengths(size),
                               .d = widths(size),
                               .causal = false,
                               .precision = Precision::f32}};
  for (const Index d : widths(size))
    all.push_back({.experiment = "layer-flops",
                   .methods = {polynomial, exact},
                   .inputs = {"gaussian"},
                   .n = {features(d), symmetric(d) + 1, d * d + 1},
                   .d = {d},
                   .causal = false,
                   .precision = Precision::f32});
  return all;
}

std::vector<Figure> figures(RecipeSize size) {
  std::vector<Panel> panels;
  for (const Index d : widths(size))
    panels.push_back(speedup_panel(fmt::format("D = {}: D^2 = {}, D (D + 1) / 2 = {}", d, d * d, features(d)),
                                   {{"experiment", timed(size)},
                                    {"input", "gaussian"},
                                    {"causal", 0},
                                    {"precision", "f32"},
                                    {"d", d},
                                    {"method", polynomial}}));
  return {figure("polynomial-crossover", text, "Where the polynomial kernel overtakes softmax",
                 "One head, dv = d = D, float, one thread, bidirectional: medians of the ratios within a block, with "
                 "distribution-free 95 % intervals; lines are the ratios of FLOPs. The legend has the n from which on "
                 "it is faster.",
                 panels)};
}

// The n from which on it is faster over the n that is claimed, one a block.
std::vector<double> crossings(const Results& results, RecipeSize size, Index d, Index claimed) {
  std::vector<double> n, all;
  std::vector<std::vector<double>> speedups;
  for (const Index length : lengths(size)) {
    n.push_back(static_cast<double>(length));
    speedups.push_back(results.array({{"experiment", timed(size)}, {"n", length}, {"d", d}}, "speedup"));
  }
  for (size_t block = 0; block < speedups[0].size(); ++block) {
    std::vector<double> of_block;
    for (const auto& blocks : speedups)
      if (block < blocks.size()) of_block.push_back(blocks[block]);
    if (of_block.size() == n.size()) all.push_back(last_rise_through_one(n, of_block) / static_cast<double>(claimed));
  }
  return all;
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  std::vector<Comparison> square, half;
  std::vector<Region> time_square, time_half;
  const double rate = share_of_error_rate(widths(size).size());
  for (const Index d : widths(size)) {
    // FLOPs of the polynomial kernel over softmax's.
    const auto over_softmax = [&](Index n) {
      const auto flops = [&](const std::string& method) {
        return results
            .scalar({{"experiment", "layer-flops"}, {"method", method}, {"d", d}, {"n", n}}, "attention_flops")
            .at(0);
      };
      return flops(polynomial) / flops(exact);
    };
    const std::string what = fmt::format("D = {}", d);
    square.push_back({what, certain(over_softmax(d * d + 1))});
    half.push_back({fmt::format("{}, n = {}", what, symmetric(d) + 1), certain(over_softmax(symmetric(d) + 1))});
    half.push_back({fmt::format("{}, softmax over polynomial at n = {}", what, features(d)),
                    certain(1 / over_softmax(features(d)))});
    time_square.push_back({what, {{"", median_of(crossings(results, size, d, d * d), rate)}}});
    time_half.push_back({what, {{"", median_of(crossings(results, size, d, features(d)), rate)}}});
  }
  using Outcome = Verdict::Outcome;
  return {
      all_below(1, "For n > D^2 the polynomial kernel takes fewer FLOPs than softmax (ratio at n = D^2 + 1)", square),
      all_below(1,
                "With symmetric features already beyond n = (D + 1)^2 / 2, and not at D (D + 1) / 2: the normaliser "
                "counts as a channel (ratios of FLOPs on both sides)",
                half),
      below_where(1, {"It is faster than softmax from n = D^2 on (measured n over that)", Outcome::ambiguous},
                  time_square),
      below_where(1, {"It is faster than softmax from n = D (D + 1) / 2 on (measured n over that)", Outcome::ambiguous},
                  time_half)};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
