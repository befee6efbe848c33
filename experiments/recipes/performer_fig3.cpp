// Performer's Fig. 3: time of forward and backward against length, with the line where attention returns V. The
// published figure times whole models; here it is attention, beside the FLOPs of the layer around it. Regular model:
// h = 8, d = 64, feed-forward width 2048 = 4 D. By FLOPs a Performer layer costs, over one whose attention is free,
//   1 + h (4 m d + 4 m (d + 1)) / (24 D^2) = 1.17 for m = 256 at every n;   softmax 1 + n / (6 D).
#include <fmt/format.h>

#include "experiments/recipes/growth.hpp"

namespace attnbench::performer_fig3_recipe {
namespace {

const std::vector<std::string> methods{"softmax", "performer", "identity"};
const std::string paper = "Choromanski et al. 2020, arXiv:2009.14794, section 4.1, Fig. 3";
const std::string nearly_linear =
    "We observed (Fig. 3) that in terms of L, the Performer reaches nearly linear time and sub-quadratic memory "
    "consumption (since the explicit O(L^2) attention matrix is not stored).";
const std::string step_defined =
    "seconds of forward and backward of causal attention (training-step), one head, d = 64, m = 256 positive features, "
    "float, one CPU thread; the figure is of whole models on a V100";

void draw(Recipe& recipe, const Cells& steps, const Cells& layers) {
  const Panel time = time_panel("forward and backward of attention", steps, "seconds per training step");
  Panel share = time, whole = time;
  share.title = "backward over forward";
  share.y = "backward_over_forward";
  share.y_label = "time of backward / time of forward";
  share.y_scale = "linear";
  share.slope = false;
  whole.title = "a layer, by FLOPs";
  whole.cells = layers;
  whole.y = "layer_flops";
  whole.y_label = "FLOPs over those with attention that returns V";
  whole.interval = "mean";
  whole.slope = false;
  whole.ratio_to = "identity";
  recipe.figure("performer-fig3", "Forward and backward against length",
                "One head, d = dv = 64, float, one thread, causal: medians with distribution-free 95 % intervals; n^a "
                "is the fitted exponent. identity returns V: the published line of the greatest speed. Right: the "
                "layer of the published regular model around it, where random features cost a sixth of the rest at "
                "any length; FLOPs are counted, and have no intervals.",
                {time, share, whole});
}

void judge_times(Recipe& recipe, const Cells& steps, Index last) {
  recipe.judge(
      {.text = fmt::format("On one CPU thread, forward and backward of Performer's causal attention take time linear "
                           "in n, at every doubling up to n = {}",
                           last),
       .source = paper,
       .quotation = nearly_linear,
       .definition =
           step_defined + ". The factor by which each doubling of n multiplies them, the median over blocks of turns",
       .threshold = "at most 2.3 for every doubling: the common rule for linear growth, 15 % above 2 for caches",
       .because = "the algorithm takes O(n m d) operations"},
      [=, &recipe] { return grows_as(recipe, linear_growth, curves_of(steps, {"performer"})); });
  recipe.judge(
      {.text = fmt::format("On one CPU thread, forward and backward of exact causal softmax attention take time "
                           "quadratic in n, at every doubling up to n = {}",
                           last),
       .source = paper,
       .paraphrase = "regular attention's line in the figure, of O(L^2 d) by section 2.2",
       .definition =
           step_defined + ". The factor by which each doubling of n multiplies them, the median over blocks of turns",
       .threshold =
           "at least 3.5 for every doubling: the common rule for quadratic growth, an eighth below 4 for fixed costs",
       .because = "the algorithm takes O(n^2 d) operations"},
      [=, &recipe] { return grows_as(recipe, quadratic_growth, curves_of(steps, {"softmax"})); });
  recipe.judge(
      {.text = fmt::format("On one CPU thread at n = {}, forward and backward of Performer's causal attention take "
                           "less time than those of softmax attention",
                           last),
       .source = paper,
       .quotation = nearly_linear,
       .definition =
           step_defined +
           ". Those of Performer over those of softmax attention in the same block of turns, the median over blocks",
       .threshold = "1: equal times",
       .because = "at that length Performer takes fewer operations by far"},
      [=, &recipe] {
        const auto performer = steps.method("performer").n(last).turns("seconds"),
                   softmax = steps.method("softmax").n(last).turns("seconds");
        std::vector<double> quotient;
        for (size_t b = 0; b < std::min(performer.size(), softmax.size()); ++b)
          quotient.push_back(performer[b] / softmax[b]);
        return all_below(1, {{fmt::format("n = {}", last), median_of(quotient, recipe.error_rate(1))}});
      });
}

void write(Recipe& recipe) {
  const auto lengths =
      recipe.sized<std::vector<Index>>({64, 128}, {512, 1024, 2048}, {512, 1024, 2048, 4096, 8192, 16384});
  const std::vector<Index> layer_lengths{512, 1024, 2048, 4096, 8192, 16384, 32768};  // FLOPs only: no layer is run
  const RunRequest step{.experiment = "training-step:" + turns(recipe),
                        .methods = methods,
                        .inputs = {"gaussian"},
                        .n = lengths,
                        .causal = true,
                        .precision = Precision::f32};
  RunRequest layer = step;
  layer.experiment = "layer-flops:layer_heads=8";
  layer.n = layer_lengths;
  layer.causal = false;
  const Cells steps = recipe.run(step), layers = recipe.run(layer);
  draw(recipe, steps, layers);
  judge_times(recipe, steps, lengths.back());
  recipe.judge(
      {.text = "How many times as many FLOPs a layer with Performer takes as the same layer whose attention returns V",
       .source = paper,
       .quotation = "In fact, the Performer achieves nearly optimal speedup and memory efficiency possible, "
                    "depicted by the \"X\"-line when attention is replaced with the \"identity function\" "
                    "simply returning the V-matrix.",
       .definition =
           "FLOPs by formulas of a layer (projections, attention, feed-forward part) of the published regular model "
           "with Performer, h = 8, d = 64, feed-forward width 2048, m = 256, no mask, over those of the same layer "
           "with attention that returns V, n = 512 to 32768. The source speaks of measured speed and memory",
       .threshold = "none: \"nearly\" gives no number, so shares below 1.1, 1.2 and 1.5 are counted",
       .expected = Ruling::measured,
       .because = "by the formulas it is 1 + h (4 m d + 4 m (d + 1)) / (24 D^2) = 1.17 at any length"},
      [=] {
        std::vector<Comparison> over_free;
        for (const Index n : layer_lengths) {
          const auto flops = [&](const std::string& method) {
            return layers.method(method).n(n).scalar("layer_flops").at(0);
          };
          over_free.push_back({fmt::format("n = {}", n), certain(flops("performer") / flops("identity"))});
        }
        return values_of(over_free, {1.1, 1.2, 1.5});
      });
}

const bool registered =
    add(RecipeEntry{.text = {.name = "performer-fig3",
                             .summary = "Forward and backward against length, with the line where attention returns V",
                             .formula = "Does Performer take time linear in the length, forward and backward, and how "
                                        "near does it come to attention that returns V?",
                             .reference = "Choromanski et al. 2020, arXiv:2009.14794, Fig. 3"},
                    .write = write});

}  // namespace
}  // namespace attnbench::performer_fig3_recipe
