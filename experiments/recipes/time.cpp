// Time against sequence length, with the exponent: softmax quadratic, the rest linear in n.
#include "harness/runner/recipe.hpp"

namespace attnbench {
namespace {

const std::vector<std::string> methods{"softmax", "performer", "performer:features=trig", "linear", "linformer",
                                       "vq",      "local",     "truncated:window=16"};

const Description text{
    .name = "time",
    .summary = "Time against sequence length",
    .formula = "Exact attention takes time quadratic in the sequence length, the approximations linear.",
    .reference =
        "Katharopoulos et al. 2020, arXiv:2006.16236, Fig. 1; Choromanski et al. 2020, "
        "arXiv:2009.14794, Fig. 3"};

std::vector<RunRequest> runs(RecipeSize size) {
  RunRequest request{.experiment = size == RecipeSize::smoke ? "speed:blocks=2,turn=1" : "speed:blocks=9,turn=15",
                     .methods = methods,
                     .inputs = {"gaussian"},
                     .n = {256, 512, 1024, 2048, 4096},
                     .causal = false,
                     .precision = Precision::f32};
  if (size == RecipeSize::smoke) request.n = {64, 128};
  if (size == RecipeSize::full) request.n = {256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536};
  return {request};
}

std::vector<Figure> figures(RecipeSize) {
  const nlohmann::json where{{"experiment", "speed"}, {"input", "gaussian"}, {"causal", 0},
                             {"precision", "f32"},    {"threads", 1},        {"method", methods}};
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
  return {
      figure("time", text, "Time against sequence length",
             "One head, d = dv = 64, float, one thread, bidirectional: medians with distribution-free 95 % intervals; "
             "n^a is the fitted exponent. Each block of turns gives one ratio to softmax measured beside it.",
             {time, speedup})};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures});

}  // namespace
}  // namespace attnbench
