// Linformer's Table 3: how much faster than softmax, and how much smaller, by the projected length k and by n.
// Published for whole models on a V100: 1.5 and 1.3 times at n = 512 (k = 128, 256), 3.4, 3.2, 2.8, 2.2 and 1.3 times
// at n = 4096 (k = 128 to 2048). What carries over to any machine is the order: a larger k gains less, a larger n more.
#include "experiments/recipes/blocks.hpp"
#include "experiments/recipes/growth.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;

const std::string exact = "softmax", materialised = "softmax:form=materialised";

const Description text{
    .name = "linformer-table3",
    .summary = "Linformer's speed and memory over softmax's, by projected length and by n",
    .formula = "Linformer gains more the longer the sequence, and less the longer what it is projected to.",
    .reference = "Wang et al. 2020, arXiv:2006.04768, Table 3"};

struct Row {
  Index n;
  std::vector<Index> k;
};
std::vector<Row> table(RecipeSize size) {
  if (size == RecipeSize::smoke) return {{256, {8, 16}}, {512, {8, 16}}};
  if (size == RecipeSize::quick) return {{512, {128, 256}}, {4096, {128, 256, 512, 2048}}};
  return {{512, {128, 256}},
          {1024, {128, 256, 512}},
          {2048, {128, 256, 512, 1024}},
          {4096, {128, 256, 512, 1024, 2048}},
          {8192, {128, 256, 512, 1024, 2048}},
          {16384, {128, 256, 512, 1024, 2048}}};
}

std::string method(Index k) { return fmt::format("linformer:r={}", k); }
std::string experiment(RecipeSize size) { return "speed:" + turns(size); }

// What keeps its matrix is called for its memory alone.
const std::string for_memory = "speed:blocks=2,turn=1,pair=false";
constexpr Index largest_matrix = 4096;

std::vector<RunRequest> runs(RecipeSize size) {
  std::vector<RunRequest> all;
  for (const auto& [n, projected] : table(size)) {
    RunRequest request{.experiment = experiment(size),
                       .methods = {exact},
                       .inputs = {"gaussian"},
                       .n = {n},
                       .causal = false,
                       .precision = Precision::f32};
    for (const Index k : projected) request.methods.push_back(method(k));
    all.push_back(request);
    if (n > largest_matrix) continue;
    request.experiment = for_memory;
    request.methods = {materialised};
    all.push_back(request);
  }
  return all;
}

std::vector<Figure> figures(RecipeSize size) {
  const Panel speed{.title = "time",
                    .where = {{"experiment", experiment(size)},
                              {"input", "gaussian"},
                              {"causal", 0},
                              {"precision", "f32"},
                              {"threads", 1},
                              {"method",
                               [&] {
                                 Specs all;
                                 const Row longest = table(size).back();
                                 for (const Index k : longest.k) all.push_back(method(k));
                                 return all;
                               }()}},
                    .x = {"r"},
                    .x_label = "projected length k",
                    .x_scale = "log2",
                    .y = "speedup",
                    .y_label = "times faster than softmax",
                    .y_scale = "log2",
                    .interval = "median",
                    .theory = "speedup_by_flops",
                    .series = {"method", "n"}};
  Panel memory = speed;
  memory.title = "memory";
  memory.y = "peak_bytes";
  memory.y_label = "peak memory beyond inputs and output";
  memory.theory = "";
  memory.where["experiment"] = Specs{experiment(size), for_memory};
  memory.references = {exact, materialised};
  return {figure("linformer-table3", text, "What Linformer gains over softmax",
                 "One head, d = dv = 64, float, one thread, bidirectional: medians of the ratios within a block, with "
                 "distribution-free 95 % intervals; lines are the ratios of FLOPs. Published, of whole models on a "
                 "V100: 1.5 and 1.3 times at n = 512 (k = 128, 256); 3.4, 3.2, 2.8, 2.2, 1.3 at n = 4096 (k = 128 to "
                 "2048); 20, 18, 16, 14, 7.9 at n = 65,536; memory 1.7 and 1.5, 14 to 2.3, 60 to 18 times less than "
                 "softmax that keeps its matrix.",
                 {speed, memory})};
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  const auto rows = table(size);
  const auto speedups = [&](Index k, Index n) { return results.array({{"method", method(k)}, {"n", n}}, "speedup"); };
  // Of each pair, the gain that should be less over the other one, block by block.
  struct Order {
    std::string what;
    std::vector<double> less, more;
  };
  const auto compared = [](const std::vector<Order>& orders) {
    std::vector<Comparison> all;
    for (const auto& [what, less, more] : orders)
      all.push_back({what, median_of(ratios(less, more), share_of_error_rate(orders.size()))});
    return all;
  };
  std::vector<Order> by_k, by_n;
  for (const auto& [n, projected] : rows)
    for (size_t i = 1; i < projected.size(); ++i)
      by_k.push_back({fmt::format("k = {} over {}, n = {}", projected[i], projected[i - 1], n),
                      speedups(projected[i], n), speedups(projected[i - 1], n)});
  for (size_t i = 1; i < rows.size(); ++i)
    for (const Index k : rows[i - 1].k)
      by_n.push_back({fmt::format("n = {} over {}, k = {}", rows[i - 1].n, rows[i].n, k), speedups(k, rows[i - 1].n),
                      speedups(k, rows[i].n)});
  std::vector<Bounded> memory;
  for (const auto& [n, projected] : rows) {
    if (n > largest_matrix) continue;
    const double whole = results.scalar({{"method", materialised}, {"n", n}}, "peak_bytes").at(0);
    for (const Index k : projected)
      memory.push_back({fmt::format("k = {}, n = {}, in bytes", k, n),
                        results.scalar({{"method", method(k)}, {"n", n}}, "peak_bytes").at(0), whole});
  }
  return {all_below(1, "The longer what it is projected to, the less Linformer gains over softmax (ratio of speedups)",
                    compared(by_k)),
          all_below(1, "The longer the sequence, the more Linformer gains over softmax (ratio of speedups)",
                    compared(by_n)),
          all_at_most("It takes at most the memory of softmax that keeps its matrix", memory)};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
