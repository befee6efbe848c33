// Where an approximation overtakes exact softmax, per d and m. By FLOPs (methods.md H, d = dv): linear attention with F
// features that cost nothing at n = F, with m dense random features at n = 2m.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <numbers>

#include "experiments/recipes/growth.hpp"

namespace attnbench::crossover_recipe {
namespace {

struct Method {
  std::string spec;
  double by_flops;  // the n from which on it takes fewer FLOPs
};
// m = 4 d is the case of Su's rule: keys four times as wide.
std::vector<Method> methods(Index d) {
  const auto width = static_cast<double>(d);
  return {{"linear", width}, {"performer:m=64", 128}, {fmt::format("performer:m={}", 4 * d), 8 * width}};
}

void write(Recipe& recipe) {
  const auto widths = recipe.sized<std::vector<Index>>({8, 16}, {32, 64}, {32, 64, 128});
  const auto lengths = recipe.sized<std::vector<Index>>({32, 64}, {32, 64, 128, 256, 512, 1024, 2048},
                                                        {16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192});
  struct Crossing {
    std::string name;
    Index d;
    double by_flops;
    Cells curve;
  };
  std::vector<Crossing> all;
  std::vector<Panel> panels;
  for (const Index d : widths) {
    std::vector<std::string> specs;
    for (const auto& method : methods(d)) specs.push_back(method.spec);
    const Cells cells = recipe.run({.experiment = "speed:" + turns(recipe),
                                    .methods = specs,
                                    .inputs = {"gaussian"},
                                    .n = lengths,
                                    .d = {d},
                                    .causal = false,
                                    .precision = Precision::f32});
    panels.push_back(speedup_panel(fmt::format("d = {}", d), cells));
    for (const auto& [spec, by_flops] : methods(d))
      all.push_back({fmt::format("{}, d = {}", spec, d), d, by_flops, cells.method(spec)});
  }
  recipe.figure("crossover", "Where approximations overtake softmax",
                "One head, dv = d, float, one thread, bidirectional: medians of the ratios within a block, with "
                "distribution-free 95 % intervals; lines are the ratios of FLOPs. The legend has the n from which on a "
                "method is faster, d by d.",
                panels);

  // The measured n over the one that a rule gives, of those that `chosen` takes.
  const auto over = [=, &recipe](auto&& rule, auto&& chosen) {
    std::vector<Comparison> comparisons;
    const auto count = static_cast<size_t>(std::count_if(all.begin(), all.end(), chosen));
    for (const Crossing& one : all) {
      if (!chosen(one)) continue;
      std::vector<double> n = crossings(one.curve);
      for (double& length : n) length /= rule(one);
      comparisons.push_back({one.name, median_of(n, recipe.error_rate(count))});
    }
    return comparisons;
  };
  const auto every = [](const Crossing&) { return true; };
  const auto wide = [](const Crossing& one) { return one.by_flops == 8 * static_cast<double>(one.d); };  // m = 4 d
  const std::string measured = fmt::format(
      "the n from which on the speedup over this project's tuned exact softmax stays at or above 1, interpolated "
      "between the measured lengths ({} to {}) on logarithmic scales, one n for each block of turns, and the median "
      "over blocks; 0 where the method is faster from the first length on. One head, d = dv = {}, gaussian inputs, "
      "bidirectional, float, one CPU thread",
      lengths.front(), lengths.back(), fmt::join(widths, ", "));
  recipe.judge(
      {.text = "On one CPU thread, linear attention and Performer overtake softmax at no more than twice the length at "
               "which their FLOPs are equal to softmax's",
       .definition = measured + "; over the n at which a call takes as many FLOPs as softmax: n = F for linear "
                                "attention with F features (1 + elu: F = d), n = 2 m for Performer with m random "
                                "features (m = 64 and m = 4 d). Each method at each d is judged by itself",
       .threshold = "2: within a factor of two of a count of operations that leaves memory and exponentials "
                    "out",
       .expected = Ruling::open,
       .because = "it depends on the engines, which a count of operations does not know"},
      [=] {
        std::vector<Region> regions;
        for (const Comparison& one : over([](const Crossing& c) { return c.by_flops; }, every))
          regions.push_back({one.what, {{"", one.estimate}}});
        return below_where(2, regions);
      });
  recipe.judge(
      {.text = "On one CPU thread, Performer with four times as many features as channels overtakes softmax at about n "
               "= 16 d, at every d",
       .source = "Su 2021, kexue.fm/archives/8610",
       .paraphrase = "linear attention that is as good takes heads four times as wide and is therefore faster "
                     "only from about n = 16 d on",
       .definition =
           measured +
           "; of Performer with m = 4 d features, over 16 d. The source counts operations of linear attention whose "
           "heads are four times as wide; features four times as many as channels stand for such heads here",
       .threshold = "between 1/sqrt(2) and sqrt(2): nearer to 16 d than to 8 d or 32 d on a scale of factors. The "
                    "source says from where on, so a crossover much below it refutes the number as much as one above",
       .expected = Ruling::refuted,
       .because = "m = 4 d dense features take fewer FLOPs from n = 8 d on, half of the rule"},
      [=] {
        const auto rule = [](const Crossing& one) { return 16.0 * static_cast<double>(one.d); };
        return all_between(std::numbers::sqrt2 / 2, std::numbers::sqrt2, over(rule, wide));
      });
  recipe.judge(
      {.text = "On one CPU thread, too, Performer with four times as many features as channels overtakes softmax at "
               "about n = 18 d ln d, at every d",
       .source = "huggingface/transformers issue 7675",
       .paraphrase = "measured on a GPU, the published implementation is faster than BERT's attention from "
                     "about n = 18 d ln d on",
       .definition =
           measured +
           "; of Performer with m = 4 d features, over 18 d ln d. The source's rule has no number of features; "
           "it reports a GPU, the published implementation and BERT's attention. This is another machine, "
           "code and attention",
       .threshold = "between 1/2 and 2: a measured crossover is reproduced when it is met within a factor of "
                    "two, from either side",
       .expected = Ruling::open,
       .because = "another machine and other code"},
      [=] {
        const auto rule = [](const Crossing& one) {
          return 18 * static_cast<double>(one.d) * std::log(static_cast<double>(one.d));
        };
        return all_between(0.5, 2, over(rule, wide));
      });
}

const bool registered =
    add(RecipeEntry{.text = {.name = "crossover",
                             .summary = "The length from which an approximation is faster than softmax",
                             .formula = "From which sequence length on is linear attention faster than softmax, and do "
                                        "published rules give that length?",
                             .reference = "Su 2021, kexue.fm/archives/8610; huggingface/transformers issue 7675"},
                    .write = write});

}  // namespace
}  // namespace attnbench::crossover_recipe
