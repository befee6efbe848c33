// How many bits per byte a model loses when a method replaces its attention, without training it again.
//   loss_i = -log2 p(token i + 1 | tokens 0..i),   excess_i = loss_i - loss_i of the same model with exact softmax
//   bits per byte = sum of loss_i / bytes that the predicted tokens stand for; a token of a byte-level model is a byte
// A bidirectional model predicts masked bytes instead: loss_i = -log2 p(byte i | the masked text) where byte i is
// masked. Both passes read the same text, so everything is paired by position.
//
// Texts are the replicates: replicate r reads text r, with a draw of its own in every head. The interval of a mean
// over replicates is Student's t over texts (statistics/intervals.hpp). It holds for texts like these, and covers the
// variation of texts and of draws together. Positions of one text depend on each other, so no interval counts them as
// samples. With text=0 in the input all replicates read one text, and the interval is over draws alone.
//
// With prompt=P the first P rows have exact attention in every head, as a system reads a prompt before a method's
// decoder writes on: the method's rows then see the keys and values of an exact prompt. Losses and errors are those of
// the rows behind it.
//
// A method may need an array beside Q, K and V, such as gates, which a model that was trained with softmax does not
// have. Each head draws a row w for each column of it, and token i gets logistic(b + z_i) with z_i = w.x_i / |x_i|,
// where x_i are its values in all heads, a linear function of its hidden state: z_i is standard normal over draws of w.
//
// The exact pass is computed once per text and kept with its hidden states, so that a pass whose first replaced head is
// in layer l begins at layer l. Head h of layer l is head l H + h of a method that differs between heads (H heads a
// layer): per-head with one spec for every head of the model assigns a method to each.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numbers>

#include "harness/core/needs.hpp"
#include "harness/core/scaling.hpp"
#include "harness/core/shared_budget.hpp"
#include "harness/experiment/experiment.hpp"
#include "harness/random/normal.hpp"
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
  const auto first =
      std::find_if(task.predicted.begin(), task.predicted.end(), [](const auto& token) { return token.has_value(); }) -
      task.predicted.begin();
  if (const Index prompt = cell.experiment.integer("prompt"); task.answer && prompt > first)
    throw Misuse(
        fmt::format("model-loss: prompt={} was asked for, and the answer of prompt {} is predicted from row {} on; "
                    "expected prompt={} or less, so that all of the answer is judged",
                    prompt, replicate, first, first));
  return task;
}

StoredTransformer model_of(const Cell& cell) {
  return prediction_task(cell, 0, cell.problem.shape.nk).read.transformer;
}

ReplacedHeads replaced_heads(const Cell& cell, const StoredTransformer& model) {
  return {cell.experiment.text("replaced"), model.layers(), model.heads()};
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
  if (shape.d != model.d() || shape.dv != model.dv() || shape.nq != shape.nk)
    throw Misuse(
        fmt::format("model-loss: heads of {} x {} and {} x {} were asked for; the model's have d = {} and dv = {}, "
                    "and as many queries as keys: leave out -d and --dv",
                    shape.nq, shape.d, shape.nk, shape.dv, model.d(), model.dv()));
  if (const bool causal = find<InputEntry>(cell.input.name()).causal_by_default; shape.mask.causal != causal)
    throw Misuse(fmt::format("model-loss: {} {}; leave out --{}", cell.input.name(),
                             causal ? "predicts the next token from earlier ones alone" : "reads the whole text",
                             causal ? "bidirectional" : "causal"));
  const Index prompt = cell.experiment.integer("prompt");
  if (prompt > 0 && (!shape.mask.causal || prompt + 1 >= shape.nk))
    throw Misuse(
        fmt::format("model-loss: prompt={} was asked for with n={}; expected a causal model, such as --input model, "
                    "and a prompt of at most n - 2 tokens",
                    prompt, shape.nk));
  if (cell.problem.heads != 1)
    throw Misuse(
        fmt::format("model-loss: --heads {} was asked for, and the model has heads of its own; leave out --heads, "
                    "and choose heads by model-loss:replaced=LAYER.HEAD",
                    cell.problem.heads));
  replaced_heads(cell, model);
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
  std::vector<std::optional<Index>> predicted;  // by row of the logits, the true token
  std::vector<Index> bytes;                     // of that token; empty: one each
  bool answer = false;                          // these tokens are the answer to a question
  std::vector<Matrix<T>> states;                // before each layer and after the last
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
    pass->model = text.read.transformer.in<T>();
    pass->predicted = std::move(text.predicted);
    pass->bytes = std::move(text.bytes);
    pass->answer = text.answer;
    pass->states = hidden_states<T>(exact, *pass->model, text.read.X.cast<T>(), {}, exact_attention<T>(cell, exact));
    return std::shared_ptr<const ExactPass<T>>(std::move(pass));
  });
}

// The heads of a layer of the exact model on the calibration text: a fitted method learns from these.
using CalibrationHeads = std::function<std::vector<HeadData<double>>(Index layer)>;

// Heads of one layer are made at a time: those of all layers of a language model would fill the memory.
template <class T>
CalibrationHeads heads_on(const EmbeddedTokens& text, const Cell& cell, int threads) {
  Context exact(threads);
  const auto model = text.transformer.in<T>();
  const auto states = std::make_shared<const std::vector<Matrix<T>>>(
      hidden_states<T>(exact, *model, text.X.cast<T>(), {.last_feed_forward = false}, exact_attention<T>(cell, exact)));
  return [model, states, threads](Index layer) {
    Context context(threads);
    std::vector<HeadData<double>> heads;
    for (const auto& head : layer_heads<T>(context, *model, layer, (*states)[static_cast<size_t>(layer)]))
      heads.push_back(head.template cast<double>());
    return heads;
  };
}

CalibrationHeads calibration_heads(const Task& task) {
  static LastRead<CalibrationHeads, 1> kept;
  const Cell& cell = task.cell;
  return kept.get(cell.input_key(), [&] {
    const EmbeddedTokens text =
        find<InputEntry>(cell.input.name())
            .transformer(cell.input, request(cell, task.replicate, Purpose::calibration, cell.problem.shape.nk));
    const int threads = task.context.threads();
    return text.transformer.kept_in_float() ? heads_on<float>(text, cell, threads)
                                            : heads_on<double>(text, cell, threads);
  });
}

bool is_drawn(const Need& need) {
  return need.values != Need::Values::positions && (need.rows == "n" || need.rows == "nq");
}

// values: of a layer's heads. place: the number of the head in the model.
template <class T>
Extras drawn_gates(const Cell& cell, std::span<const HeadData<T>> values, Index place) {
  Extras all;
  const Shape& shape = cell.problem.shape;
  for (const Need& need : needs_of(cell.method)) {
    if (!is_drawn(need)) continue;
    const Index columns = size_of(need, shape).second;
    auto generator = Streams(cell.seed).stream("gates", need.name, place);
    Matrix<double> z = Matrix<double>::Zero(shape.nk, columns);
    Eigen::ArrayXd squares = Eigen::ArrayXd::Zero(shape.nk);
    for (const HeadData<T>& head : values) {
      const Matrix<double> V = head.V.template cast<double>();
      z += V * standard_normal(generator, V.cols(), columns);
      squares += V.array().square().rowwise().sum();
    }
    z.array().colwise() /= squares.sqrt().max(std::numeric_limits<double>::min());
    if (need.values == Need::Values::uniform) z = 1 / (1 + (-cell.experiment.real("gates") - z.array()).exp());
    all.emplace(need.name, extra_of(need, z));
  }
  return all;
}

template <class T>
struct ApproximatePass {
  Matrix<T> last;         // hidden state
  Moments output_errors;  // of the replaced heads
};

// The model with the cell's method in the replaced heads.
template <class T>
ApproximatePass<T> approximate_pass(const Task& task, const ExactPass<T>& exact) {
  const Cell& cell = task.cell;
  const Shape& shape = cell.problem.shape;
  const ReplacedHeads replaced(cell.experiment.text("replaced"), std::ssize(exact.model->layers), exact.model->heads);
  const auto extra_of_head = [&](std::span<const HeadData<T>> heads, Index place) {
    return extras_for(cell.method, shape, drawn_gates<T>(cell, heads, place), "a layer of a model",
                      [](const Need&) { return "run an experiment on single heads, such as attention-error"; });
  };
  const bool fitted = find<MethodEntry>(cell.method.name()).fitted(cell.method);
  const auto calibration = fitted ? calibration_heads(task) : nullptr;
  std::vector<HeadData<double>> learnt_from;  // the heads of the layer
  const auto softmax = exact_attention<T>(cell, task.context);
  const Index prompt = cell.experiment.integer("prompt"), behind = shape.nq - prompt;
  Matrix<T> reference(shape.nq, shape.dv);
  ApproximatePass<T> pass;
  const auto drawn_for = [&](Index layer, Index head) {
    const Index place = layer * exact.model->heads + head;
    std::optional<Head<double>> learnt;
    if (calibration) learnt.emplace(learnt_from[static_cast<size_t>(head)].view());
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
    learnt_from.clear();
    if (calibration)
      for (const HeadData<double>& drawn : calibration(layer)) learnt_from.push_back(prepared(cell, drawn, {}));
    for (Index h = 0; h < exact.model->heads; ++h) {
      if (!replaced.has(layer, h)) continue;
      methods.push_back(drawn_for(layer, h));
      inputs.push_back(
          prepared(cell, heads[static_cast<size_t>(h)], extra_of_head(heads, layer * exact.model->heads + h)));
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
    out.topRows(prompt) = reference.topRows(prompt);
    pass.output_errors.add(static_cast<double>((out - reference).norm() / reference.bottomRows(behind).norm()));
  };
  // Half precision changes every layer. Otherwise the layers before the first replaced head are those of the exact
  // pass.
  const Index first = task.context.whole() ? replaced.first_layer() : 0;
  pass.last = last_hidden_state<T>(task.context, *exact.model, exact.states[static_cast<size_t>(first)], {},
                                   AttendHead<T>(attend), first);
  return pass;
}

Index most_probable(const Matrix<double>& log_p, Index row) {
  Index token = 0;
  log_p.row(row).maxCoeff(&token);
  return token;
}

// Means over the rows that predict a token, in bits per byte of these tokens.
class Losses {
 public:
  // log2 p of every token in one row of the logits, with the method and with exact attention.
  void add(const Matrix<double>& log_p, const Matrix<double>& exact, Index row, Index token, Index bytes, Index block) {
    const auto b = static_cast<size_t>(block);
    blocks_.resize(std::max(blocks_.size(), b + 1));
    const double loss = -log_p(row, token), worse = exact(row, token) - log_p(row, token);
    for (PerByte* mean : {&all_, &blocks_[b]}) {
      mean->bits.add(loss);
      mean->excess.add(worse);
      mean->bytes.add(static_cast<double>(bytes));
    }
    const Index found = most_probable(log_p, row), exactly = most_probable(exact, row);
    agreement_.add(found == exactly);
    answered_ = answered_ && found == token;
    exactly_answered_ = exactly_answered_ && exactly == token;
    const auto p = (exact.row(row).array() * std::numbers::ln2).exp();
    divergence_.add((p * (exact.row(row) - log_p.row(row)).array()).sum());
  }

  void record_answer(Recorder& recorder) const {
    recorder.scalar("answered", "1", answered_);
    recorder.scalar("exactly_answered", "1", exactly_answered_);
    recorder.scalar("answer_bits", "bit", all_.bits.mean * all_.bits.count);
  }

  void record(bool causal, Recorder& recorder) const {
    recorder.scalar("bits_per_byte", "bit", all_.bits.mean / all_.bytes.mean);
    recorder.scalar("excess_bits", "bit", all_.excess.mean / all_.bytes.mean);
    recorder.scalar("top_agreement", "1", agreement_.mean);
    recorder.scalar("prediction_kl", "bit", divergence_.mean);
    // The block of a causal model's row says how much of the text it has read; every row of a bidirectional model has
    // read all of it.
    if (!causal) return;
    std::vector<double> bits, excess;
    for (const PerByte& mean : blocks_) {
      bits.push_back(mean.bits.mean / mean.bytes.mean);
      excess.push_back(mean.excess.mean / mean.bytes.mean);
    }
    recorder.array("bits_by_position", "bit", {std::ssize(bits)}, bits);
    recorder.array("excess_bits_by_position", "bit", {std::ssize(excess)}, excess);
  }

 private:
  struct PerByte {
    Moments bits, excess, bytes;  // of tokens
  };
  PerByte all_;
  std::vector<PerByte> blocks_;
  Moments agreement_, divergence_;
  bool answered_ = true, exactly_answered_ = true;
};

// The logits of a language model's text would fill the memory (49,152 tokens in each row), so both passes' are computed
// for a few rows at a time, those of the exact pass again for every method.
constexpr Index rows_at_once = 96;

template <class T>
Losses losses_of(const Task& task, const ExactPass<T>& exact, const Matrix<T>& last) {
  Context unrounded(task.context.threads());
  const Index block = task.cell.experiment.integer("block"), n = last.rows();
  Losses losses;
  const Index prompt = task.cell.experiment.integer("prompt");
  for (Index first = prompt; first < n; first += rows_at_once) {
    const Index rows = std::min(rows_at_once, n - first);
    const Matrix<double> log_p =
        log2_probabilities(token_logits<T>(task.context, *exact.model, row_block(last, first, rows)));
    const Matrix<double> exact_log_p =
        log2_probabilities(token_logits<T>(unrounded, *exact.model, row_block(exact.states.back(), first, rows)));
    for (Index i = 0; i < rows; ++i) {
      const auto at = static_cast<size_t>(first + i);
      if (const auto token = exact.predicted[at])
        losses.add(log_p, exact_log_p, i, *token, exact.bytes.empty() ? 1 : exact.bytes[at],
                   (first + i - prompt) / block);
    }
  }
  return losses;
}

template <class T>
void measure_as(const Task& task, Recorder& record) {
  const auto exact = exact_pass<T>(task);
  const ApproximatePass<T> pass = approximate_pass<T>(task, *exact);
  std::vector<std::string> drawn;
  for (const Need& need : needs_of(task.cell.method))
    if (is_drawn(need)) drawn.push_back(need.name);
  if (!drawn.empty())
    record.note(
        fmt::format("the model has no {} for {}: drawn, linear in the hidden state, and not trained "
                    "(model-loss:gates={:g})",
                    fmt::join(drawn, " and no "), task.cell.method.spec(), task.cell.experiment.real("gates")));
  const Losses losses = losses_of<T>(task, *exact, pass.last);
  losses.record(task.cell.problem.shape.mask.causal, record);
  if (exact->answer) losses.record_answer(record);
  record.scalar("relative_output_error", "1", pass.output_errors.mean);
}

void measure(const Task& task, Recorder& record) {
  if (in_float(task.cell.problem.shape.precision)) return measure_as<float>(task, record);
  measure_as<double>(task, record);
}

// Both passes: what surrounds attention, and attention in every head.
Work work(const Cell& cell) {
  const auto model = model_of(cell);
  const auto n = static_cast<double>(cell.problem.shape.nk);
  Work all = work_of_layers(cell, model.layers() * model.heads());
  all += model.visit([n](const auto& transformer) {
    return Work{4 * n * static_cast<double>(transformer.weights()),
                2 * n * static_cast<double>(transformer.unembedding.rows())};
  });
  return all;
}

// The hidden states and the feed-forward network's, and the logits and log2 p of both passes for a few rows.
double bytes(const Cell& cell) {
  return model_of(cell).visit([&cell](const auto& transformer) {
    const auto width = static_cast<double>(transformer.unembedding.cols()),
               vocabulary = static_cast<double>(transformer.unembedding.rows());
    return 8.0 * (static_cast<double>(cell.problem.shape.nk) * width *
                      (2 * static_cast<double>(transformer.layers.size()) + 12) +
                  4 * rows_at_once * vocabulary);
  });
}

const bool registered = add(ExperimentEntry{
    .text = {.name = "model-loss",
             .summary = "what a method in place of attention costs a model, in bits per byte",
             .formula =
                 "sum of -log2 p(token i + 1 | tokens 0..i) over the bytes, against exact softmax position by position",
             .reference = "Choromanski et al. 2020, arXiv:2009.14794, Fig. 5, for trained weights under another "
                          "attention",
             .cost = "a forward pass of the model for each text, and one with softmax for all methods of a text"},
    .parameters = {Parameter::text("replaced", "all",
                                   "the heads that have the method, the others have softmax: all, a layer (2), a head "
                                   "(2.1), or a list of these ([0,2.1])"),
                   Parameter::integer("prompt", 0,
                                      "the first tokens, whose rows have exact attention in every head; losses are "
                                      "those of the rows behind them",
                                      0),
                   Parameter::real("gates", 4,
                                   "b of gates that a method needs and the model does not have: logistic(b + z), z "
                                   "drawn, standard normal and linear in the token's hidden state",
                                   -30, 30),
                   Parameter::integer("block", 64, "positions that a number of the arrays averages", 1)},
    .metrics = {{"bits_per_byte",
                 "bit",
                 "-log2 p of the tokens of a text that the model predicts, over the bytes that they stand for",
                 {},
                 "bits per byte, better above",
                 "log2"},
                {"excess_bits",
                 "bit",
                 "bits per byte above those of the model with exact softmax, position by position",
                 {},
                 "bits per byte above exact attention"},
                {"top_agreement", "1", "share of positions where both models find the same token most probable",
                 Better::more},
                {"prediction_kl",
                 "bit",
                 "mean KL of the predicted token's distribution, exact model to this one",
                 {},
                 "KL of the next token",
                 "log10"},
                {"answered", "1", "1 if each token of the answer is the most probable one, else 0; of prompts that ask",
                 Better::more, "answers found"},
                {"exactly_answered", "1", "the same of the model with exact softmax", Better::more},
                {"answer_bits", "bit", "-log2 p of the whole answer", {}, "bits of the answer"},
                {"relative_output_error", "1",
                 "|A'V - AV|_F / |AV|_F of the q, k and v that a replaced head gets, mean over these heads",
                 Better::less, "error of the output", "log10"},
                {"bits_by_position", "bit",
                 "bits_per_byte of each block of positions behind the prompt, of a causal model"},
                {"excess_bits_by_position", "bit",
                 "excess_bits of each block of positions behind the prompt, of a causal model"}},
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
