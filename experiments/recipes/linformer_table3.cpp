// Linformer's Table 3: speed-up over softmax and memory saved, by the projected length k and by n. Published for whole
// models on a V100; the order should hold on any machine: a larger k gains less, a larger n more.
#include <fmt/format.h>

#include "experiments/recipes/growth.hpp"

namespace attnbench::linformer_table3_recipe {
namespace {

constexpr Index largest_matrix = 4096;
const std::string table3 = "Wang et al. 2020, arXiv:2006.04768, section 5.3 and Table 3";
const std::string published =
    "From Table 3, we see that even with n = 512 and k = 128, Linformer has 1.5x faster inference time and allows for "
    "a 1.7x larger maximum batch size than the Transformer. As sequence length increases, the inference-time speed-up "
    "and memory savings are even more dramatic.";

struct Row {
  Index n;
  std::vector<Index> projected;
  Cells cells;
  Cells of(Index k) const { return cells.method(fmt::format("linformer:r={}", k)); }
};

std::vector<Row> run_table(Recipe& recipe) {
  const std::vector<Index> all{128, 256, 512, 1024, 2048};
  const auto lengths = recipe.sized<std::vector<Index>>({512, 1024}, {512, 2048}, {512, 1024, 2048, 4096, 8192, 16384});
  std::vector<Row> rows;
  for (const Index n : lengths) {
    Row row{.n = n};
    for (const Index k : all)
      if (k < n) row.projected.push_back(k);
    RunRequest request{.experiment = "speed:" + turns(recipe),
                       .methods = {"softmax"},
                       .inputs = {"gaussian"},
                       .n = {n},
                       .causal = false,
                       .precision = Precision::f32};
    for (const Index k : row.projected) request.methods.push_back(fmt::format("linformer:r={}", k));
    row.cells = recipe.run(request);
    if (n <= largest_matrix) {  // run only to measure its memory
      request.experiment = "speed:blocks=2,turn=1,pair=false";
      request.methods = {"softmax:form=materialised"};
      row.cells = row.cells + recipe.run(request);
    }
    rows.push_back(row);
  }
  return rows;
}

void draw(Recipe& recipe, const std::vector<Row>& rows) {
  Cells all, linformer;
  for (const Row& row : rows) {
    all = all + row.cells;
    for (const Index k : row.projected) linformer = linformer + row.of(k);
  }
  Panel memory = time_panel("memory", all, "peak memory beyond inputs and output");
  memory.y = "peak_bytes";
  memory.slope = false;
  recipe.figure("linformer-table3", "Linformer's time and memory beside softmax's",
                "One head, d = dv = 64, float, one thread, bidirectional: medians of the ratios within a block, with "
                "distribution-free 95 % intervals; lines are the ratios of FLOPs; r is the projected length. "
                "Published, of whole models on a V100: 1.5 and 1.3 times at n = 512 (k = 128, 256); 3.4, 3.2, 2.8, "
                "2.2, 1.3 at n = 4096 (k = 128 to 2048); 20, 18, 16, 14, 7.9 at n = 65,536; memory 1.7 and 1.5, 14 to "
                "2.3, 60 to 18 times less than softmax that keeps its matrix.",
                {speedup_panel("time", linformer), memory});
}

// Two speedups; the ratio is `less`, which should be the smaller one, over `more`.
struct Order {
  std::string what;
  Cells less, more;
};

Finding ordered(const Recipe& recipe, const std::vector<Order>& orders) {
  std::vector<Comparison> all;
  for (const auto& [what, less, more] : orders)
    all.push_back({what, median_of(times(less, more, "speedup"), recipe.error_rate(orders.size()))});
  return all_below(1, all);
}

void write(Recipe& recipe) {
  const auto rows = run_table(recipe);
  draw(recipe, rows);
  std::vector<Order> by_k, by_n;
  for (const Row& row : rows)
    for (size_t i = 1; i < row.projected.size(); ++i)
      by_k.push_back({fmt::format("k = {} over {}, n = {}", row.projected[i], row.projected[i - 1], row.n),
                      row.of(row.projected[i]), row.of(row.projected[i - 1])});
  for (size_t i = 1; i < rows.size(); ++i)
    for (const Index k : rows[i - 1].projected)
      by_n.push_back(
          {fmt::format("n = {} over {}, k = {}", rows[i - 1].n, rows[i].n, k), rows[i - 1].of(k), rows[i].of(k)});
  const std::string speedup =
      "Linformer's speed-up over this project's tiled softmax, which never holds the n x n matrix, block by block; "
      "attention alone, one head, d = 64, float, one thread, no mask (the table: whole models on a V100). The ratio of "
      "two speed-ups, the median over blocks: ";
  recipe.judge({.text = "On one CPU thread, Linformer's speed-up over softmax attention shrinks with every step to a "
                        "larger projected length k, at every n",
                .source = table3,
                .paraphrase = "at each n the table's speed-up falls from column to column, such as 3.4, 3.2, 2.8, 2.2, "
                              "1.3 times at n = 4096 for k = 128 to 2048",
                .definition = speedup + "the one with the next larger k over the one with the smaller, at each n",
                .threshold = "1: equal speed-ups",
                .because = "Linformer's operations are 4 n k d"},
               [=, &recipe] { return ordered(recipe, by_k); });
  recipe.judge({.text = "On one CPU thread, Linformer's speed-up over softmax attention grows with every step to a "
                        "longer sequence, at every projected length k",
                .source = table3,
                .quotation = published,
                .definition = speedup + "the one at the shorter n over the one at the next longer, at each k",
                .threshold = "1: equal speed-ups",
                .because = "Linformer's operations grow as n, those of softmax as n^2"},
               [=, &recipe] { return ordered(recipe, by_n); });
  recipe.judge(
      {.text =
           "By what factor Linformer's attention needs less memory than softmax attention that keeps its n x n matrix",
       .source = table3,
       .quotation = published,
       .definition =
           "peak memory of a call beyond inputs and output, one head, d = 64, float, no mask: of softmax attention "
           "that keeps its n x n matrix over that of Linformer. Linformer works in blocks here and never holds its n x "
           "k matrix, so that the factor is not n / k. The paper's factors are of the largest batch of whole models: "
           "1.7 (k = 128) and 1.5 (k = 256) at n = 512, 14 to 2.3 (k = 128 to 2048) at n = 4096",
       .threshold = "none: of attention alone no number is published",
       .expected = Ruling::measured,
       .because = "Linformer surely saves memory, because it has no n x n matrix"},
      [=] {
        std::vector<Comparison> savings;
        for (const Row& row : rows) {
          if (row.n > largest_matrix) continue;
          const double whole = row.cells.method("softmax:form=materialised").scalar("peak_bytes").at(0);
          for (const Index k : row.projected)
            savings.push_back(
                {fmt::format("n = {}, k = {}", row.n, k), certain(whole / row.of(k).scalar("peak_bytes").at(0))});
        }
        return values_of(savings);
      });
}

const bool registered =
    add(RecipeEntry{.text = {.name = "linformer-table3",
                             .summary = "Linformer's speed and memory over softmax's, by projected length and by n",
                             .formula = "Does Linformer gain more the longer the sequence, and less the longer the "
                                        "projected length?",
                             .reference = "Wang et al. 2020, arXiv:2006.04768, Table 3"},
                    .write = write});

}  // namespace
}  // namespace attnbench::linformer_table3_recipe
