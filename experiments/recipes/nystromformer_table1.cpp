// Nystroemformer's Table 1: time and memory of self-attention by length. Published per instance on a 1080 Ti, n = 512
// to 8192: Transformer .8 to 155 ms and 54 to 10,233 MB, the others some 20 times less at the end. What carries over to
// any machine is how they grow: softmax that keeps its matrix as n^2 in both, the others as n.
#include <fmt/format.h>

#include "experiments/recipes/blocks.hpp"
#include "experiments/recipes/growth.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;

const std::string transformer = "softmax:form=materialised", few_landmarks = "nystrom:landmarks=32",
                  landmarks = "nystrom";
// Longformer's window of 257 is a half width of 128.
const Specs linear{few_landmarks, landmarks, "linformer", "longformer:window=128"};

Specs all_methods() {
  Specs all{transformer};
  all.insert(all.end(), linear.begin(), linear.end());
  return all;
}

const Description text{.name = "nystromformer-table1",
                       .summary = "Time and memory of self-attention by length: quadratic once, linear four times",
                       .formula =
                           "Time and memory of softmax attention grow as n^2, those of Nystroemformer, Linformer and "
                           "Longformer as n; fewer landmarks take less time.",
                       .reference = "Xiong et al. 2021, arXiv:2102.03902, Table 1"};

std::vector<Index> lengths(RecipeSize size) {
  if (size == RecipeSize::smoke) return {256, 512};
  if (size == RecipeSize::quick) return {1024, 2048, 4096};
  return {512, 1024, 2048, 4096, 8192};
}

std::string experiment(RecipeSize size) { return "speed:" + turns(size) + ",pair=false"; }

std::vector<RunRequest> runs(RecipeSize size) {
  return {{.experiment = experiment(size),
           .methods = all_methods(),
           .inputs = {"gaussian"},
           .n = lengths(size),
           .causal = false,
           .precision = Precision::f32}};
}

std::vector<Figure> figures(RecipeSize size) {
  const Panel time = time_panel("time of one head", {{"experiment", experiment(size)},
                                                     {"input", "gaussian"},
                                                     {"causal", 0},
                                                     {"precision", "f32"},
                                                     {"threads", 1},
                                                     {"method", all_methods()}});
  Panel memory = time;
  memory.title = "memory of one head";
  memory.y = "peak_bytes";
  memory.y_label = "peak memory beyond inputs and output";
  return {figure("nystromformer-table1", text, "Time and memory of self-attention",
                 "One head, d = dv = 64, float, one thread, bidirectional: medians with distribution-free 95 % "
                 "intervals; n^a is the fitted exponent. Published, of a module on a 1080 Ti, at n = 1024, 2048, 4096: "
                 "Transformer 2.4, 10, 33 ms and 186, 685, 2620 MB; Linformer (256) 1.3, 2.7, 5.3 ms and 81, 165, 366 "
                 "MB; Longformer (257) 4.6, 9.2, 18.5 ms and 65, 130, 263 MB; 64 landmarks 1.3, 2.7, 5.9 ms and 63, "
                 "118, 229 MB; 32 landmarks 1.2, 2.6, 5.6 ms and 49, 96, 193 MB.",
                 {time, memory})};
}

double doublings(RecipeSize size) {
  return std::log(static_cast<double>(lengths(size).back()) / static_cast<double>(lengths(size).front()));
}

std::vector<double> seconds(const Results& results, const std::string& method, Index n) {
  return results.array({{"method", method}, {"n", n}}, "seconds");
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  const Index first = lengths(size).front(), last = lengths(size).back();
  const auto growths_of = [&](const Specs& methods) {
    return growths(results, nlohmann::json::object(), methods, lengths(size));
  };
  std::vector<Comparison> order;
  for (const auto& [less, more] : {std::pair{linear[0], linear[1]}, {linear[1], linear[2]}, {linear[2], transformer}}) {
    const auto over = ratios(seconds(results, less, last), seconds(results, more, last));
    order.push_back({fmt::format("{} over {}", less, more), median_of(over, share_of_error_rate(3))});
  }
  const auto growth_of_memory = [&](const std::string& method) {
    const auto peak = [&](Index n) { return results.scalar({{"method", method}, {"n", n}}, "peak_bytes").at(0); };
    return std::log(peak(last) / peak(first)) / doublings(size);
  };
  std::vector<Bounded> memory{{"2 less the exponent of " + transformer, 2 - growth_of_memory(transformer), 0.1}};
  for (const auto& method : linear) memory.push_back({"exponent of " + method, growth_of_memory(method), 1.1});
  const std::string span = fmt::format("from n = {} to {}", first, last);
  return {
      exponents_above(1.75,
                      fmt::format("Softmax that keeps its matrix takes time as n^2 up to n = {} (exponent above "
                                  "1.75)",
                                  last),
                      growths_of({transformer})),
      exponents_below(1.15, fmt::format("The approximations take time as n up to n = {} (exponents below 1.15)", last),
                      growths_of(linear)),
      all_below(1,
                fmt::format("At n = {} 32 landmarks take less time than 64, these less than Linformer's 256 and "
                            "these less than softmax (ratios)",
                            last),
                order),
      all_at_most(fmt::format("Memory grows as n^2 with softmax that keeps its matrix, and at most as n with the "
                              "others, {} (exponents to 0.1)",
                              span),
                  memory)};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
