// The FLOPs of one transformer layer by formulas: attention, projections and feed-forward part, of width D = heads d.
// Su, kexue.fm/archives/8610; a multiplication and an addition are 2 FLOPs.
//   projections 2 n D (2 heads d + 2 heads dv),  feed-forward 4 n D (feed_forward D),  softmax 2 n^2 heads (d + dv)
// With dv = d and feed_forward = 4 projections and attention exceed the feed-forward part from n = 2 D on, and
// attention all the rest from n = 6 D on.
#include "harness/experiment/experiment.hpp"

namespace attnbench::layer_flops_experiment {
namespace {

void measure(const Task& task, Recorder& record) {
  const Cell& cell = task.cell;
  const auto& shape = cell.problem.shape;
  const auto n = static_cast<double>(shape.nq), heads = static_cast<double>(cell.experiment.integer("layer_heads"));
  const auto d = static_cast<double>(shape.d), dv = static_cast<double>(shape.dv), D = heads * d;
  const double attention = heads * find<MethodEntry>(cell.method.name()).cost(cell.method, shape).flops,
               projections = 4 * n * D * heads * (d + dv),
               feed_forward = 4 * n * D * D * cell.experiment.real("feed_forward");
  record.scalar("attention_flops", "FLOP", attention);
  record.scalar("projection_flops", "FLOP", projections);
  record.scalar("feed_forward_flops", "FLOP", feed_forward);
  record.scalar("layer_flops", "FLOP", attention + projections + feed_forward);
  record.scalar("with_projections_over_feed_forward", "1", (attention + projections) / feed_forward);
  record.scalar("over_rest", "1", attention / (projections + feed_forward));
}

const bool registered = add(ExperimentEntry{
    .text = {.name = "layer-flops",
             .summary = "FLOPs of attention beside projections and feed-forward part of a transformer layer",
             .formula = "heads cost(method) + 4 n D heads (d + dv) + 4 n feed_forward D^2, D = heads d",
             .reference = "Su 2021, kexue.fm/archives/8610",
             .cost = "nothing is run: cost formulas, which tests hold against what is counted"},
    .parameters = {Parameter::integer("layer_heads", 12, "heads of the layer; nothing is run for each", 1),
                   Parameter::real("feed_forward", 4, "width of the feed-forward part over that of the layer", 0.01,
                                   1000)},
    .metrics = {{"attention_flops", "FLOP", "of all heads' attention, without projections"},
                {"projection_flops", "FLOP", "of the projections to Q, K and V and of the outputs"},
                {"feed_forward_flops", "FLOP", "of the feed-forward part"},
                {"layer_flops", "FLOP", "their sum"},
                {"with_projections_over_feed_forward",
                 "1",
                 "(attention + projections) / feed-forward part",
                 {},
                 "FLOPs / those of the feed-forward part",
                 "log10"},
                {"over_rest",
                 "1",
                 "attention / (projections + feed-forward part)",
                 {},
                 "FLOPs of attention / of the rest",
                 "log10"}},
    .headline = {.metric = "over_rest", .label = "FLOPs of attention / of the rest of the layer"},
    .work = [](const Cell&) { return Work{}; },  // nothing is run
    .run = measure,
});

}  // namespace
}  // namespace attnbench::layer_flops_experiment
