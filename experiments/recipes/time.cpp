// Time and memory against sequence length, with exponents: softmax quadratic, the rest linear in n.
#include "experiments/recipes/growth.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;

const std::string exact = "softmax", materialised = "softmax:form=materialised", floor_of_time = "identity";

Specs approximations(RecipeSize size) {
  Specs all{"performer", "linear", "linformer", "nystrom", "vq", "local"};
  if (size != RecipeSize::quick) all.insert(all.end(), {"performer:features=trig", "truncated:window=16"});
  return all;
}

Specs with(const Specs& first, const Specs& others) {
  Specs all = first;
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

std::vector<Index> lengths(RecipeSize size) {
  if (size == RecipeSize::smoke) return {64, 128};
  if (size == RecipeSize::quick) return {1024, 2048, 4096};
  return {256, 512, 1024, 2048, 4096, 8192};
}
// Further ones without softmax, which takes seconds there for a call.
std::vector<Index> lengths_without_softmax(RecipeSize size) {
  return size == RecipeSize::full ? std::vector<Index>{16384, 32768, 65536} : std::vector<Index>{};
}
Index longest_whole_matrix(RecipeSize size) { return size == RecipeSize::full ? 4096 : 2048; }

const Description text{
    .name = "time",
    .summary = "Time and memory against sequence length",
    .formula = "Exact attention takes time quadratic in the sequence length, the approximations linear.",
    .reference =
        "Katharopoulos et al. 2020, arXiv:2006.16236, Fig. 1; Choromanski et al. 2020, "
        "arXiv:2009.14794, Fig. 3"};

std::string experiment(RecipeSize size) { return "speed:" + turns(size); }
std::string without_softmax(RecipeSize size) { return experiment(size) + ",pair=false"; }

std::vector<RunRequest> runs(RecipeSize size) {
  const RunRequest paired{.experiment = experiment(size),
                          .methods = with({exact}, with(approximations(size), {floor_of_time})),
                          .inputs = {"gaussian"},
                          .n = lengths(size),
                          .causal = false,
                          .precision = Precision::f32};
  RunRequest whole_matrix = paired;  // of 64 MB at n = 4096
  whole_matrix.methods = {materialised};
  std::erase_if(whole_matrix.n, [size](Index n) { return n > longest_whole_matrix(size); });
  RunRequest alone = paired;
  alone.experiment = without_softmax(size);
  alone.methods = with(approximations(size), {floor_of_time});
  alone.n = lengths_without_softmax(size);
  if (alone.n.empty()) return {paired, whole_matrix};
  return {paired, whole_matrix, alone};
}

std::vector<Figure> figures(RecipeSize size) {
  const Specs computing = with({exact}, with(approximations(size), {materialised}));
  const nlohmann::json where{{"experiment", Specs{experiment(size), without_softmax(size)}},
                             {"input", "gaussian"},
                             {"causal", 0},
                             {"precision", "f32"},
                             {"threads", 1},
                             {"method", with(computing, {floor_of_time})}};
  const Panel time = time_panel("time of one head", where);
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

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  std::vector<Index> all = lengths(size);
  const auto quadratic = growths(results, nlohmann::json::object(), {exact}, all);
  for (const Index n : lengths_without_softmax(size)) all.push_back(n);
  return {exponents_above(
              1.9, {"The time of exact attention grows as the square of the sequence length: exponent above 1.9"},
              quadratic),
          exponents_below(1.05, {"The time of the approximations grows as the sequence length: exponents below 1.05"},
                          growths(results, nlohmann::json::object(), approximations(size), all))};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
