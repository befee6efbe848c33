#include "experiments/depth_layers.hpp"

#include <fmt/format.h>

#include <cmath>

#include "harness/core/scaling.hpp"

namespace attnbench {

namespace {

constexpr Index hidden_factor = 4;  // width of the feed-forward over that of the tokens

// Weights of one tensor, outputs x inputs: independent N(0, 1 / inputs), so that entries of size 1 stay so.
Matrix<double> random_weights(const Task& task, std::string_view name, Index layer, Index outputs, Index inputs) {
  Generator generator = Streams(task.cell.seed).stream("depth", name, layer, task.replicate);
  return standard_normal(generator, outputs, inputs) / std::sqrt(static_cast<double>(inputs));
}

Transformer<double> random_transformer(const Task& task, Index layers) {
  const Index d = task.cell.problem.shape.d, width = task.cell.problem.shape.dv, hidden = hidden_factor * width;
  Transformer<double> transformer{.heads = 1, .d = d, .dv = width};
  const Norm<double> plain{Matrix<double>::Ones(1, width), Matrix<double>::Zero(1, width)};
  for (Index l = 0; l < layers; ++l)
    transformer.layers.push_back({.attention_norm = plain,
                                  .feed_forward_norm = plain,
                                  .queries = random_weights(task, "queries", l, d, width),
                                  .keys = random_weights(task, "keys", l, d, width),
                                  .values = random_weights(task, "values", l, width, width),
                                  .out = random_weights(task, "out", l, width, width),
                                  .up = random_weights(task, "up", l, hidden, width),
                                  .up_shift = Matrix<double>::Zero(1, hidden),
                                  .down = random_weights(task, "down", l, width, hidden),
                                  .down_shift = Matrix<double>::Zero(1, width)});
  return transformer;
}

// The first layers of a model.
std::shared_ptr<const Transformer<double>> first_layers(std::shared_ptr<const Transformer<double>> all, Index layers) {
  const auto there = static_cast<Index>(all->layers.size());
  if (layers > there) throw Skip(fmt::format("{} layers were asked for and the model has {}", layers, there));
  if (layers == there) return all;
  auto first = std::make_shared<Transformer<double>>(*all);
  first->layers.resize(static_cast<size_t>(layers));
  return first;
}

}  // namespace

DepthLayers::DepthLayers(const Task& task) : task_(task), shape_(task.cell.problem.shape) {
  if (shape_.nq != shape_.nk)
    throw Skip(fmt::format("layers are composed, so queries and keys are of the same tokens; there are {} and {}",
                           shape_.nq, shape_.nk));
  if (in_float(shape_.precision)) throw Skip("layers are composed in double; use --precision f64");
  const Index layers = task.cell.experiment.integer("layers");
  if (find<InputEntry>(task.cell.input.name()).transformer) {
    transformer_ = first_layers(tokens(Purpose::measured).transformer.in<double>(), layers);
    path_ = task.cell.input.integer("head");
  } else {
    if (task.cell.problem.heads != 1)
      throw Skip("a law's layers have one head each; use --heads 1, or the input model with its own");
    transformer_ = std::make_shared<Transformer<double>>(random_transformer(task, layers));
  }
  const Params params("methods", "softmax");
  softmax_ = make_approximation<double>({.shape = shape_, .params = params, .streams = Streams(0)});  // draws nothing
}

EmbeddedTokens DepthLayers::tokens(Purpose purpose) const {
  const auto& entry = find<InputEntry>(task_.cell.input.name());
  if (!entry.transformer) return {transformer_, draw_cell_head(task_.cell, task_.replicate, 0, purpose).V};
  return entry.transformer(task_.cell.input, {.nq = shape_.nq,
                                              .nk = shape_.nk,
                                              .d = shape_.d,
                                              .dv = shape_.dv,
                                              .streams = Streams(task_.cell.seed),
                                              .replicate = task_.replicate,
                                              .purpose = purpose});
}

std::vector<Matrix<double>> DepthLayers::states(Context& context, LayerParts parts, Purpose purpose,
                                                const Choose& choose) const {
  const double scale = std::sqrt(task_.cell.problem.logit_scale) * edge_scale(shape_.d);
  const Extras extra = extras_for(task_.cell.method, shape_, {}, "a layer of a transformer", [](const Need&) {
    return "run an experiment on single heads, such as attention-error";
  });
  return hidden_states(context, *transformer_, tokens(purpose).X, parts,
                       [&](Index layer, Index head, std::span<const HeadData<double>> heads, const Out<double>& out) {
                         const HeadData<double>& drawn = heads[static_cast<size_t>(head)];
                         const HeadData<double> scaled{scale * drawn.Q, scale * drawn.K, drawn.V, extra};
                         choose(layer, head, scaled)->attend(scaled.view(), shape_.mask, context, out);
                       });
}

DepthLayers::Choose DepthLayers::exact() const {
  return [softmax = softmax_](Index, Index, const HeadData<double>&) { return softmax; };
}

DepthLayers::Method DepthLayers::method(Index layer, Index head, const HeadData<double>* calibration) const {
  std::optional<Head<double>> view;
  if (calibration) view.emplace(calibration->view());
  return make_approximation<double>({.shape = shape_,
                                     .params = task_.cell.method,
                                     .streams = Streams(Streams(task_.cell.seed).stream("depth layer", layer)()),
                                     .head = head,
                                     .replicate = task_.replicate,
                                     .calibration = view ? &*view : nullptr,
                                     .layer = layer,
                                     .layers = std::ssize(transformer_->layers)});
}

}  // namespace attnbench
