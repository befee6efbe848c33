// How many bits per byte a model loses when a method replaces its attention, without training it again.
//   loss_i = -log2 p(byte i + 1 | bytes 0..i),   excess_i = loss_i - loss_i of the same model with exact softmax
// A bidirectional model predicts masked bytes instead: loss_i = -log2 p(byte i | the masked text) where byte i is
// masked. Both passes read the same text, so everything is paired by position: excess_bits is the mean of excess_i.
//
// Texts are the replicates: replicate r reads text r, with a draw of its own in every head. The interval of a mean
// over replicates is Student's t over texts (statistics/intervals.hpp). It holds for texts like these, and covers the
// variation of texts and of draws together. Positions of one text depend on each other, so no interval counts them as
// samples. With text=0 in the input all replicates read one text, and the interval is over draws alone.
//
// The exact pass is computed once a text and kept with its hidden states, so that a pass whose first replaced head is
// in layer l begins at layer l. Head h of layer l is head l H + h of a method that differs between heads (H heads a
// layer): per-head with one spec for every head of the model assigns a method to each.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>

#include "harness/core/needs.hpp"
#include "harness/core/scaling.hpp"
#include "harness/core/shared_budget.hpp"
#include "harness/experiment/experiment.hpp"
#include "harness/statistics/moments.hpp"

namespace attnbench::model_loss {
namespace {

// Which heads have the method: "all", a layer ("2"), a head ("2.1"), or several of these with commas between them.
class ReplacedHeads {
 public:
  ReplacedHeads(const std::string& text, Index layers, Index heads)
      : heads_(heads), replaced_(static_cast<size_t>(layers * heads), text == "all") {
    if (text == "all") return;
    size_t begin = 0, end = 0;
    do {
      end = std::min(text.find(',', begin), text.size());
      if (const std::string part = text.substr(begin, end - begin); !add(part, layers))
        throw Misuse(
            fmt::format("model-loss: replaced={} was asked for and '{}' is not in the model, which has layers 0 to {} "
                        "with heads 0 to {}; expected all, a layer (replaced=1), a head (replaced=1.0) or a list of "
                        "them (replaced=[0,1.0])",
                        text, part, layers - 1, heads - 1));
      begin = end + 1;
    } while (end < text.size());
  }

  bool has(Index layer, Index head) const { return replaced_[static_cast<size_t>(layer * heads_ + head)]; }
  // The first layer with a replaced head: every list names a head.
  Index first_layer() const {
    return static_cast<Index>(std::find(replaced_.begin(), replaced_.end(), true) - replaced_.begin()) / heads_;
  }

 private:
  bool add(const std::string& part, Index layers) {
    const size_t point = part.find('.');
    const auto layer = number(part.substr(0, point));
    if (!layer || *layer >= layers) return false;
    if (point == std::string::npos) {
      std::fill_n(replaced_.begin() + *layer * heads_, heads_, true);
      return true;
    }
    const auto head = number(part.substr(point + 1));
    if (!head || *head >= heads_) return false;
    replaced_[static_cast<size_t>(*layer * heads_ + *head)] = true;
    return true;
  }

  static std::optional<Index> number(const std::string& digits) {
    Index value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size() || value < 0) return std::nullopt;
    return value;
  }

  Index heads_;
  std::vector<bool> replaced_;
};

InputRequest request(const Cell& cell, Index replicate, Purpose purpose, Index n) {
  const Shape& shape = cell.problem.shape;
  return {.nq = n,
          .nk = n,
          .d = shape.d,
          .dv = shape.dv,
          .streams = Streams(cell.seed),
          .replicate = replicate,
          .purpose = purpose};
}

PredictionTask prediction_task(const Cell& cell, Index replicate, Index n) {
  const auto& entry = find<InputEntry>(cell.input.name());
  if (!entry.prediction)
    throw Misuse(
        fmt::format("model-loss: {} gives no model that predicts tokens; give --input model or --input "
                    "masked-model",
                    cell.input.spec()));
  PredictionTask task = entry.prediction(cell.input, request(cell, replicate, Purpose::measured, n));
  if (std::none_of(task.predicted.begin(), task.predicted.end(), [](const auto& token) { return token.has_value(); }))
    throw Misuse(
        fmt::format("model-loss: n={} was asked for, and {} predicts none of the first {} tokens of text {}; "
                    "give a larger n",
                    n, cell.input.spec(), n, replicate));
  return task;
}

std::shared_ptr<const Transformer<double>> model_of(const Cell& cell) {
  return prediction_task(cell, 0, cell.problem.shape.nk).read.transformer;
}

ReplacedHeads replaced_heads(const Cell& cell, const Transformer<double>& model) {
  return {cell.experiment.text("replaced"), std::ssize(model.layers), model.heads};
}

void check(const Cell& cell) {
  const auto model = model_of(cell);
  const Shape& shape = cell.problem.shape;
  for (const Parameter& parameter : cell.input.declared())
    for (const char* of_one_head : {"layer", "head", "key_size"})
      if (parameter.name == of_one_head &&
          cell.input.with(parameter.name, parameter.default_value).spec() != cell.input.spec())
        throw Misuse(
            fmt::format("model-loss: {} names a single head, and the loss is that of the whole model; leave out {}=, "
                        "and choose heads by model-loss:replaced=LAYER.HEAD",
                        cell.input.spec(), parameter.name));
  if (shape.d != model->d || shape.dv != model->dv || shape.nq != shape.nk)
    throw Misuse(
        fmt::format("model-loss: heads of {} x {} and {} x {} were asked for; the model's have d = {} and dv = {}, "
                    "and as many queries as keys: leave out -d and --dv",
                    shape.nq, shape.d, shape.nk, shape.dv, model->d, model->dv));
  if (const bool causal = find<InputEntry>(cell.input.name()).causal_by_default; shape.mask.causal != causal)
    throw Misuse(fmt::format("model-loss: {} {}; leave out --{}", cell.input.name(),
                             causal ? "predicts the next byte from earlier ones alone" : "reads the whole text",
                             causal ? "bidirectional" : "causal"));
  if (cell.problem.heads != 1)
    throw Misuse(
        fmt::format("model-loss: --heads {} was asked for, and the model has heads of its own; leave out --heads, "
                    "and choose heads by model-loss:replaced=LAYER.HEAD",
                    cell.problem.heads));
  replaced_heads(cell, *model);
}

// Scales a head's logits as the problem says, and rounds it like the inputs of other experiments.
template <class T>
HeadData<T> prepared(const Cell& cell, const HeadData<T>& drawn, const Extras& extra) {
  HeadData<T> head = scaled_head<T>(drawn.view(), std::sqrt(cell.problem.logit_scale) * edge_scale(drawn.Q.cols()));
  head.extra = extra;
  for (Matrix<T>* X : {&head.Q, &head.K, &head.V}) round_to<T>(cell.problem.rounding, *X);
  return head;
}

template <class T>
AttendHead<T> exact_attention(const Cell& cell, Context& context) {
  const Params params("methods", "softmax");
  const std::shared_ptr<const Approximation<T>> softmax = make_approximation<T>(
      {.shape = cell.problem.shape, .params = params, .streams = Streams(cell.seed)});  // draws nothing
  return [&cell, &context, softmax](Index, Index head, std::span<const HeadData<T>> heads, Out<T> out) {
    const HeadData<T> exact = prepared(cell, heads[static_cast<size_t>(head)], {});
    softmax->attend(exact.view(), cell.problem.shape.mask, context, out);
  };
}

// log2 p of every token, n x vocabulary.
template <class T>
Matrix<double> log2_probabilities(const Matrix<T>& logits) {
  Matrix<double> log_p = logits.template cast<double>();
  for (Index i = 0; i < log_p.rows(); ++i) {
    const double most = log_p.row(i).maxCoeff();
    log_p.row(i).array() -= most + std::log((log_p.row(i).array() - most).exp().sum());
  }
  return log_p / std::numbers::ln2;
}

// The model with softmax in every head, on one text.
template <class T>
struct ExactPass {
  std::shared_ptr<const Transformer<T>> model;
  std::vector<std::optional<Index>> predicted;  // by row of log_p, the true token
  std::vector<Matrix<T>> states;                // before each layer and after the last
  Matrix<double> log_p;
};

template <class T>
std::shared_ptr<const ExactPass<T>> exact_pass(const Task& task) {
  // A worker measures all cells of one text before those of the next. Two, for runs that compare inputs.
  static LastRead<std::shared_ptr<const ExactPass<T>>, 2> kept;
  const Cell& cell = task.cell;
  return kept.get(fmt::format("{} replicate={}", cell.input_key(), task.replicate), [&] {
    Context exact(task.context.threads());  // never rounded
    PredictionTask text = prediction_task(cell, task.replicate, cell.problem.shape.nk);
    auto pass = std::make_shared<ExactPass<T>>();
    pass->model = std::make_shared<const Transformer<T>>(text.read.transformer->cast<T>());
    pass->predicted = std::move(text.predicted);
    pass->states = hidden_states<T>(exact, *pass->model, text.read.X.cast<T>(), {}, exact_attention<T>(cell, exact));
    pass->log_p = log2_probabilities(token_logits<T>(exact, *pass->model, pass->states.back()));
    return std::shared_ptr<const ExactPass<T>>(std::move(pass));
  });
}

using CalibrationHeads = std::vector<HeadData<double>>;

// The heads of the exact model on the calibration text, layer by layer: a fitted method learns from these.
std::shared_ptr<const CalibrationHeads> calibration_heads(const Task& task) {
  static LastRead<std::shared_ptr<const CalibrationHeads>, 1> kept;
  const Cell& cell = task.cell;
  return kept.get(cell.input_key(), [&] {
    Context exact(task.context.threads());
    const EmbeddedTokens text =
        find<InputEntry>(cell.input.name())
            .transformer(cell.input, request(cell, task.replicate, Purpose::calibration, cell.problem.shape.nk));
    auto heads = std::make_shared<CalibrationHeads>();
    const auto attend = exact_attention<double>(cell, exact);
    hidden_states<double>(
        exact, *text.transformer, text.X, {.last_feed_forward = false},
        [&](Index layer, Index head, std::span<const HeadData<double>> drawn, const Out<double>& out) {
          heads->push_back(prepared(cell, drawn[static_cast<size_t>(head)], {}));
          attend(layer, head, drawn, out);
        });
    return std::shared_ptr<const CalibrationHeads>(std::move(heads));
  });
}

struct ApproximatePass {
  Matrix<double> log_p;   // log2 p of every token
  Moments output_errors;  // of the replaced heads
};

// The model with the cell's method in the replaced heads.
template <class T>
ApproximatePass approximate_pass(const Task& task, const ExactPass<T>& exact) {
  const Cell& cell = task.cell;
  const Shape& shape = cell.problem.shape;
  const ReplacedHeads replaced(cell.experiment.text("replaced"), std::ssize(exact.model->layers), exact.model->heads);
  const Extras extra = extras_for(cell.method, shape, {}, "a layer of a model", [](const Need&) {
    return "run an experiment on single heads, such as attention-error";
  });
  const bool fitted = find<MethodEntry>(cell.method.name()).fitted(cell.method);
  const auto calibration = fitted ? calibration_heads(task) : nullptr;
  const auto softmax = exact_attention<T>(cell, task.context);
  Matrix<T> reference(shape.nq, shape.dv);
  ApproximatePass pass;
  const auto drawn_for = [&](Index layer, Index head) {
    const Index place = layer * exact.model->heads + head;
    std::optional<Head<double>> learnt;
    if (calibration) learnt.emplace((*calibration)[static_cast<size_t>(place)].view());
    return make_approximation<T>({.shape = shape,
                                  .params = cell.method,
                                  .streams = Streams(cell.seed),
                                  .head = place,
                                  .replicate = task.replicate,
                                  .calibration = learnt ? &*learnt : nullptr,
                                  .layer = layer,
                                  .layers = std::ssize(exact.model->layers)});
  };
  // The replaced heads of a layer, in their order.
  std::vector<std::unique_ptr<Approximation<T>>> methods;
  std::vector<HeadData<T>> inputs;
  size_t next = 0;
  const auto draw_layer = [&](Index layer, std::span<const HeadData<T>> heads) {
    if (task.doing) task.doing("drawing");
    methods.clear();
    inputs.clear();
    next = 0;
    for (Index h = 0; h < exact.model->heads; ++h) {
      if (!replaced.has(layer, h)) continue;
      methods.push_back(drawn_for(layer, h));
      inputs.push_back(prepared(cell, heads[static_cast<size_t>(h)], extra));
    }
    divide_budget<T>(methods, inputs, shape.mask, task.context);
    if (task.doing) task.doing("measuring");
  };
  const auto attend = [&](Index layer, Index head, std::span<const HeadData<T>> heads, Out<T> out) {
    if (head == 0) draw_layer(layer, heads);
    if (!replaced.has(layer, head)) return softmax(layer, head, heads, out);
    methods[next]->attend(inputs[next].view(), shape.mask, task.context, out);
    ++next;
    softmax(layer, head, heads, reference);
    pass.output_errors.add(static_cast<double>((out - reference).norm() / reference.norm()));
  };
  // Half precision changes every layer. Otherwise the layers before the first replaced head are those of the exact
  // pass.
  const Index first = task.context.whole() ? replaced.first_layer() : 0;
  const auto states = hidden_states<T>(task.context, *exact.model, exact.states[static_cast<size_t>(first)], {},
                                       AttendHead<T>(attend), first);
  pass.log_p = log2_probabilities(token_logits<T>(task.context, *exact.model, states.back()));
  return pass;
}

Index most_probable(const Matrix<double>& log_p, Index row) {
  Index token = 0;
  log_p.row(row).maxCoeff(&token);
  return token;
}

// Means over the rows that predict a token. The block of a causal model's row says how much of the text it has read;
// every row of a bidirectional model has read all of it.
void record_losses(const Matrix<double>& log_p, const Matrix<double>& exact,
                   const std::vector<std::optional<Index>>& predicted, bool causal, Index block, Recorder& record) {
  Moments bits, excess, agreement, divergence;
  std::vector<Moments> bits_in, excess_in;
  for (Index i = 0; i < log_p.rows(); ++i) {
    const auto token = predicted[static_cast<size_t>(i)];
    if (!token) continue;
    const auto b = static_cast<size_t>(i / block);
    bits_in.resize(b + 1);
    excess_in.resize(b + 1);
    const double loss = -log_p(i, *token), worse = exact(i, *token) - log_p(i, *token);
    bits.add(loss);
    excess.add(worse);
    bits_in[b].add(loss);
    excess_in[b].add(worse);
    agreement.add(most_probable(log_p, i) == most_probable(exact, i));
    const auto p = (exact.row(i).array() * std::numbers::ln2).exp();
    divergence.add((p * (exact.row(i) - log_p.row(i)).array()).sum());
  }
  record.scalar("bits_per_byte", "bit", bits.mean);
  record.scalar("excess_bits", "bit", excess.mean);
  record.scalar("top_agreement", "1", agreement.mean);
  record.scalar("prediction_kl", "bit", divergence.mean);
  if (!causal) return;
  const auto means = [](const std::vector<Moments>& all) {
    std::vector<double> values;
    for (const Moments& one : all) values.push_back(one.mean);
    return values;
  };
  record.array("bits_by_position", "bit", {std::ssize(bits_in)}, means(bits_in));
  record.array("excess_bits_by_position", "bit", {std::ssize(bits_in)}, means(excess_in));
}

template <class T>
void measure_as(const Task& task, Recorder& record) {
  const auto exact = exact_pass<T>(task);
  const ApproximatePass pass = approximate_pass<T>(task, *exact);
  record_losses(pass.log_p, exact->log_p, exact->predicted, task.cell.problem.shape.mask.causal,
                task.cell.experiment.integer("block"), record);
  record.scalar("relative_output_error", "1", pass.output_errors.mean);
}

void measure(const Task& task, Recorder& record) {
  if (in_float(task.cell.problem.shape.precision)) return measure_as<float>(task, record);
  measure_as<double>(task, record);
}

// Both passes: what surrounds attention, and attention in every head.
Work work(const Cell& cell) {
  const auto model = model_of(cell);
  double weights = static_cast<double>(model->unembedding.size());
  for (const auto& layer : model->layers)
    for (const Matrix<double>* W : {&layer.queries, &layer.keys, &layer.values, &layer.out, &layer.up, &layer.down})
      weights += static_cast<double>(W->size());
  const auto n = static_cast<double>(cell.problem.shape.nk);
  Work all = work_of_layers(cell, std::ssize(model->layers) * model->heads);
  all += {4 * n * weights, 2 * n * static_cast<double>(model->unembedding.rows())};
  return all;
}

// The logits and log2 p of both passes, the hidden states, and the feed-forward network's.
double bytes(const Cell& cell) {
  const auto model = model_of(cell);
  const auto width = static_cast<double>(model->unembedding.cols()),
             vocabulary = static_cast<double>(model->unembedding.rows());
  return 8.0 * static_cast<double>(cell.problem.shape.nk) *
         (4 * vocabulary + width * (2 * static_cast<double>(model->layers.size()) + 12));
}

const bool registered = add(ExperimentEntry{
    .text = {.name = "model-loss",
             .summary = "what a method in place of attention costs a model, in bits per byte",
             .formula = "mean of -log2 p(byte i + 1 | bytes 0..i), against exact softmax position by position",
             .reference = "Choromanski et al. 2020, arXiv:2009.14794, Fig. 5, for trained weights under another "
                          "attention",
             .cost = "a forward pass of the model for each text, and one with softmax for all methods of a text"},
    .parameters = {Parameter::text("replaced", "all",
                                   "the heads that have the method, the others have softmax: all, a layer (2), a head "
                                   "(2.1), or a list of these ([0,2.1])"),
                   Parameter::integer("block", 64, "positions that a number of the arrays averages", 1)},
    .metrics = {{"bits_per_byte", "bit", "mean of -log2 p(byte) over the bytes of a text that the model predicts"},
                {"excess_bits", "bit",
                 "bits per byte above those of the model with exact softmax, position by position"},
                {"top_agreement", "1", "share of positions where both models find the same byte most probable"},
                {"prediction_kl", "bit", "mean KL of the predicted byte's distribution, exact model to this one"},
                {"relative_output_error", "1",
                 "|A'V - AV|_F / |AV|_F of the q, k and v that a replaced head gets, mean over these heads"},
                {"bits_by_position", "bit", "bits_per_byte of each block of positions, of a causal model"},
                {"excess_bits_by_position", "bit", "excess_bits of each block of positions, of a causal model"}},
    .headline = {.metric = "excess_bits", .label = "bits per byte above exact attention"},
    .check = check,
    .bytes = bytes,
    .work = work,
    .run = measure,
    .usual_precision = Precision::f32,
    .usual_replicates = 16,
    .whole_model = true,
});

}  // namespace
}  // namespace attnbench::model_loss
