// Performer's Fig. 3: time of forward and backward against length, with the line where attention returns V. The
// published figure times whole models; here it is attention, beside the FLOPs of the layer around it. Regular model:
// h = 8, d = 64, feed-forward width 2048 = 4 D. By FLOPs a Performer layer costs, over one whose attention is free,
//   1 + h (4 m d + 4 m (d + 1)) / (24 D^2) = 1.17 for m = 256, whatever n;   softmax 1 + n / (6 D).
#include <fmt/format.h>

#include "experiments/recipes/blocks.hpp"
#include "experiments/recipes/growth.hpp"

namespace attnbench {
namespace {

using Specs = std::vector<std::string>;

const std::string exact = "softmax", performer = "performer", free_attention = "identity";
const Specs drawn{exact, performer, free_attention};
// As training-step has them: what one measured the other need not.
const Specs methods{exact,       "softmax:form=materialised", performer,     "linear", "polynomial",
                    "cosformer", "linear:backward=subtract",  free_attention};
const std::string layer = "layer-flops:layer_heads=8";

const Description text{.name = "performer-fig3",
                       .summary = "Forward and backward against length, with the line where attention returns V",
                       .formula =
                           "Performer takes time linear in the length, forward and backward, and comes near to the "
                           "speed of attention that returns V.",
                       .reference = "Choromanski et al. 2020, arXiv:2009.14794, Fig. 3"};

std::vector<Index> lengths(RecipeSize size) {
  if (size == RecipeSize::smoke) return {64, 128};
  if (size == RecipeSize::quick) return {512, 1024, 2048, 4096};
  return {512, 1024, 2048, 4096, 8192, 16384};
}
// Of layers nothing is run.
const std::vector<Index> layer_lengths{512, 1024, 2048, 4096, 8192, 16384, 32768};

std::string step(RecipeSize size) { return "training-step:" + turns(size); }

std::vector<RunRequest> runs(RecipeSize size) {
  const RunRequest steps{.experiment = step(size),
                         .methods = methods,
                         .inputs = {"gaussian"},
                         .n = lengths(size),
                         .causal = true,
                         .precision = Precision::f32};
  RunRequest flops = steps;
  flops.experiment = layer;
  flops.methods = drawn;
  flops.n = layer_lengths;
  flops.causal = false;
  return {steps, flops};
}

std::vector<Figure> figures(RecipeSize size) {
  const Panel time = time_panel("forward and backward of attention",
                                {{"experiment", step(size)},
                                 {"input", "gaussian"},
                                 {"causal", 1},
                                 {"precision", "f32"},
                                 {"threads", 1},
                                 {"method", drawn}},
                                "seconds per training step");
  Panel share = time, whole = time;
  share.title = "backward over forward";
  share.y = "backward_over_forward";
  share.y_label = "time of backward / time of forward";
  share.y_scale = "linear";
  share.slope = false;
  whole.title = "a layer, by FLOPs";
  whole.where = {{"experiment", layer}, {"input", "gaussian"}, {"causal", 0}, {"method", drawn}};
  whole.y = "layer_flops";
  whole.y_label = "FLOPs over those with attention that returns V";
  whole.interval = "mean";
  whole.slope = false;
  whole.ratio_to = free_attention;
  return {figure("performer-fig3", text, "Forward and backward against length",
                 "One head, d = dv = 64, float, one thread, causal: medians with distribution-free 95 % intervals; n^a "
                 "is the fitted exponent. identity returns V: the published line of the greatest speed. Right: the "
                 "layer of the published regular model around it, where random features cost a sixth of the rest at "
                 "any length.",
                 {time, share, whole})};
}

std::vector<double> seconds(const Results& results, const std::string& method, Index n, RecipeSize size) {
  return results.array({{"experiment", step(size)}, {"method", method}, {"n", n}}, "seconds");
}

std::vector<Verdict> judge(const Results& results, RecipeSize size) {
  const Index last = lengths(size).back();
  const double rate = share_of_error_rate(1);
  const auto growth_of = [&](const std::string& method) {
    return growths(results, {{"experiment", step(size)}}, {method}, lengths(size));
  };
  const auto over_softmax = ratios(seconds(results, performer, last, size), seconds(results, exact, last, size));
  std::vector<Comparison> over_free;
  for (const Index n : layer_lengths) {
    const auto flops = [&](const std::string& method) {
      return results.scalar({{"experiment", layer}, {"method", method}, {"n", n}}, "layer_flops").at(0);
    };
    over_free.push_back({fmt::format("n = {}", n), certain(flops(performer) / flops(free_attention))});
  }
  return {
      exponents_below(
          1.1, fmt::format("Performer's forward and backward take linear time up to n = {} (exponent below 1.1)", last),
          growth_of(performer)),
      exponents_above(1.75, fmt::format("Softmax's take quadratic time up to n = {} (exponent above 1.75)", last),
                      growth_of(exact)),
      all_below(1, fmt::format("At n = {} Performer's take less time than softmax's (ratio in the same block)", last),
                {{fmt::format("n = {}", last), median_of(over_softmax, rate)}}),
      all_below(1.2,
                "A layer with Performer costs at most a fifth more FLOPs than one whose attention returns V, at "
                "any length (ratio, h = 8, d = 64, m = 256)",
                over_free)};
}

const bool registered = add(RecipeEntry{.text = text, .runs = runs, .figures = figures, .judge = judge});

}  // namespace
}  // namespace attnbench
