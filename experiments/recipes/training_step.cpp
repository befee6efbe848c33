// A training step of attention against sequence length: time, what the backward pass costs, and what taking keys out of
// the state again does to the gradients.
#include "harness/runner/recipe.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;

const std::string subtracting = "linear:backward=subtract";
const Specs methods{"softmax", "softmax:form=materialised", "performer", "linear", "polynomial", "cosformer", subtracting};

const Description text{
    .name = "training-step",
    .summary = "Time and gradients of a training step",
    .formula = "Forward and backward of linear attention take time linear in the sequence length and constant memory.",
    .reference =
        "Katharopoulos et al. 2020, arXiv:2006.16236, Fig. 1 and section 3.3.1; Choromanski et al. 2020, "
        "arXiv:2009.14794, Fig. 3"};

std::vector<RunRequest> runs(RecipeSize size) {
  RunRequest request{.experiment = size == RecipeSize::smoke ? "training-step:blocks=2,turn=1" : "training-step:blocks=7,turn=10",
                     .methods = methods,
                     .inputs = {"gaussian"},
                     .n = {512, 1024, 2048, 4096},
                     .causal = true,
                     .precision = Precision::f32};
  if (size == RecipeSize::smoke) request.n = {64, 128};
  if (size == RecipeSize::full) request.n = {512, 1024, 2048, 4096, 8192, 16384, 32768, 65536};
  return {request};
}

std::vector<Figure> figures(RecipeSize) {
  const Panel time{.title = "forward and backward",
                   .where = {{"experiment", "training-step"},
                             {"input", "gaussian"},
                             {"causal", 1},
                             {"precision", "f32"},
                             {"threads", 1},
                             {"method", methods}},
                   .x = {"n"},
                   .x_label = "sequence length n",
                   .x_scale = "log2",
                   .y = "seconds",
                   .y_label = "seconds per training step",
                   .y_scale = "log10",
                   .interval = "median",
                   .slope = true};
  Panel memory = time, share = time, error = time;
  memory.title = "memory beyond input, output and gradients";
  memory.y = "peak_bytes";
  memory.y_label = "peak memory in bytes";
  memory.slope = false;
  share.title = "backward over forward";
  share.y = "backward_over_forward";
  share.y_label = "time of backward / time of forward";
  share.y_scale = "linear";
  share.slope = false;
  error.title = "rounding of the gradients";
  error.y = "gradient_error";
  error.y_label = "relative error of float gradients";
  error.slope = false;
  return {figure("training-step", text, "A training step of causal attention",
                 "One head, d = dv = 64, float, one thread, causal: medians with distribution-free 95 % intervals; n^a is "
                 "the fitted exponent. backward=subtract takes each key out of the last state again instead of streaming "
                 "the states once more: its gradients lose digits as n grows.",
                 {time, memory, share, error})};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures});

}  // namespace
}  // namespace attnbench
