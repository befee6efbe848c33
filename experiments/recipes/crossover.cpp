// Where an approximation overtakes exact softmax, per d and m. By FLOPs (methods.md H, d = dv): linear attention with F
// features that cost nothing at n = F, with m dense random features at n = 2m. Published: beyond n = 16 d (Su 2021,
// kexue.fm/archives/8610: linear attention wants four times the width), at about n = 18 d ln d (measured,
// huggingface/transformers #7675).
#include <functional>

#include "experiments/recipes/growth.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;

const Specs methods{"linear", "performer:m=64", "performer:m=256"};

std::vector<Index> widths(RecipeSize size) {
  return size == RecipeSize::smoke ? std::vector<Index>{8, 16} : std::vector<Index>{32, 64, 128};
}

std::vector<Index> lengths(RecipeSize size) {
  if (size == RecipeSize::smoke) return {32, 64};
  if (size == RecipeSize::quick) return {32, 64, 128, 256, 512, 1024, 2048};
  return {16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192};
}

// By FLOPs, d = dv.
double predicted(const std::string& method, Index d) {
  const Params params("methods", method);
  return static_cast<double>(params.has("m") ? 2 * params.integer("m") : d);
}

const Description text{
    .name = "crossover",
    .summary = "The length from which an approximation is faster than softmax",
    .formula =
        "Linear attention is faster from n = F on when features cost nothing, from n = 2m on with m dense "
        "random features, if time goes by FLOPs.",
    .reference = "Su 2021, kexue.fm/archives/8610; huggingface/transformers issue 7675"};

std::string experiment(RecipeSize size) { return "speed:" + turns(size); }

std::vector<RunRequest> runs(RecipeSize size) {
  return {{.experiment = experiment(size),
           .methods = methods,
           .inputs = {"gaussian"},
           .n = lengths(size),
           .d = widths(size),
           .causal = false,
           .precision = Precision::f32}};
}

std::vector<Figure> figures(RecipeSize size) {
  std::vector<Panel> panels;
  for (const Index d : widths(size))
    panels.push_back(speedup_panel(fmt::format("d = {}", d), {{"experiment", experiment(size)},
                                                              {"input", "gaussian"},
                                                              {"causal", 0},
                                                              {"precision", "f32"},
                                                              {"threads", 1},
                                                              {"d", d},
                                                              {"method", methods}}));
  return {
      figure("crossover", text, "Where approximations overtake softmax",
             "One head, dv = d, float, one thread, bidirectional: medians of the ratios within a block, with "
             "distribution-free 95 % intervals; lines are the ratios of FLOPs. The legend has the n from which on a "
             "method is faster, d by d.",
             panels)};
}

// The n from which on the method is faster, one a block.
std::vector<double> crossings(const Results& results, const std::string& method, Index d, RecipeSize size) {
  std::vector<double> n;
  std::vector<std::vector<double>> speedups;
  for (const Index length : lengths(size)) {
    n.push_back(static_cast<double>(length));
    speedups.push_back(results.array({{"method", method}, {"n", length}, {"d", d}}, "speedup"));
  }
  std::vector<double> all;
  for (size_t block = 0; block < speedups[0].size(); ++block) {
    std::vector<double> of_block;
    for (const auto& blocks : speedups)
      if (block < blocks.size()) of_block.push_back(blocks[block]);
    if (of_block.size() == n.size()) all.push_back(last_rise_through_one(n, of_block));
  }
  return all;
}

// Measured n over expected(method, d), for each method and d.
std::vector<Region> ratios(const Results& results, RecipeSize size,
                           const std::function<double(const std::string&, Index)>& expected) {
  std::vector<Region> regions;
  for (const auto& method : methods)
    for (const Index d : widths(size)) {
      std::vector<double> all = crossings(results, method, d, size);
      for (double& n : all) n /= expected(method, d);
      regions.push_back({fmt::format("{}, d = {}", method, d),
                         {{"", median_of(all, share_of_error_rate(methods.size() * widths(size).size()))}}});
    }
  return regions;
}

double sixteen_d(const std::string&, Index d) { return 16 * static_cast<double>(d); }
double eighteen_d_log_d(const std::string&, Index d) {
  return 18 * static_cast<double>(d) * std::log(static_cast<double>(d));
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  std::vector<std::string> found;
  for (const Region& region : ratios(results, size, [](const auto&, Index) { return 1.0; }))
    found.push_back(fmt::format("{}: {}", region.name, region.comparisons[0].estimate.text()));
  const auto below = [&](double bound, const Statement& statement, const auto& expected) {
    return below_where(bound, statement, ratios(results, size, expected));
  };
  Verdict by_flops =
      below(2,
            {"Approximations are faster than softmax from at most twice the length that FLOPs say: F for linear "
             "attention with F features, 2 m for m random ones",
             Verdict::Outcome::ambiguous, "counts of floating-point operations"},
            predicted);
  by_flops.numbers = fmt::format("n: {}", fmt::join(found, "; "));
  Verdict by_width = below(1,
                           {"Approximations are faster than softmax from n = 16 d on", Verdict::Outcome::ambiguous,
                            "Su 2021, kexue.fm/archives/8610"},
                           sixteen_d),
          by_log = below(1,
                         {"Approximations are faster than softmax from n = 18 d ln d on", Verdict::Outcome::ambiguous,
                          "huggingface/transformers issue 7675, measured"},
                         eighteen_d_log_d);
  for (Verdict* verdict : {&by_width, &by_log}) verdict->numbers = "measured over that n: " + verdict->numbers;
  return {by_flops, by_width, by_log};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
