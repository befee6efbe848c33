// Heads of the byte-level transformers that scripts/train_byte_lm.py trains, on held-out texts. `model` is causal and
// predicts the next byte; `masked-model` is bidirectional and was trained to guess masked bytes.
//   text=each        replicate r reads text r of texts.safetensors, so that replicates differ as texts do
//   text=0, 1, ...   every replicate reads that text
//   weights=trained  the model after training. If there are captures (measured.safetensors and calibration.safetensors,
//                    q, k and v of shape [layers, heads, n, d] in float16, q and k after the rotary rotation and
//                    unscaled), text 0 and the calibration text are read from them. Otherwise, and for other texts,
//                    heads are computed here in double: captures differ from that by at most 4e-4 (relative,
//                    Frobenius; tests/inputs/transformer_test.cpp).
//   weights=initial  the same texts read by the untrained model (initial.safetensors), computed here
// With key_size, queries and keys keep fewer dimensions: those whose logits are nearest to the head's own over the
// whole measured text. They are scaled so that logits stay the same under the square root of the smaller key size. A
// smaller n takes the first tokens; those of the bidirectional model have seen the whole text. Experiments that compose
// layers (`depth`) get the whole transformer and its tokens.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "harness/core/installed.hpp"
#include "harness/errors/error.hpp"
#include "harness/inputs/byte_lm.hpp"
#include "harness/inputs/captured_heads.hpp"
#include "harness/inputs/key_directions.hpp"
#include "harness/inputs/last_read.hpp"

namespace attnbench::model_input {

namespace {

// One of the two models: the input's name, where its files are, and how they are made.
struct Files {
  const char *input, *folder, *variable, *training, *title;
  bool causal;
};

constexpr Files causal_model{
    "model", "harness/inputs/model", "ATTNBENCH_MODEL", "scripts/train_byte_lm.py", "the byte-level model", true};
constexpr Files masked_model{"masked-model",
                             "harness/inputs/masked_model",
                             "ATTNBENCH_MASKED_MODEL",
                             "scripts/train_byte_lm.py --masked",
                             "the masked byte-level model",
                             false};

const Files& files_of(const Params& params) {
  return params.name() == masked_model.input ? masked_model : causal_model;
}

std::filesystem::path path_of(const Files& files, const std::string& name) {
  const char* chosen = std::getenv(files.variable);
  const std::filesystem::path folder = chosen && *chosen ? std::filesystem::path(chosen) : source_tree() / files.folder;
  return folder / (name + ".safetensors");
}

bool has(const Files& files, const std::string& name) {
  std::error_code error;
  return std::filesystem::exists(path_of(files, name), error);
}

std::filesystem::path required(const Files& files, const std::string& name) {
  const auto path = path_of(files, name);
  if (!has(files, name))
    throw Misuse(fmt::format("{}: there is no {}; make it with {}, or set {} to a folder that holds it", files.input,
                             path.string(), files.training, files.variable));
  return path;
}

std::string capture(Purpose purpose) { return purpose == Purpose::measured ? "measured" : "calibration"; }

bool untrained(const Params& params) { return params.text("weights") == "initial"; }

std::shared_ptr<const ByteModel> byte_model(const Files& files, const std::string& name) {
  static LastRead<std::shared_ptr<const ByteModel>, 4> models;
  const auto path = required(files, name);
  const auto model =
      models.get(version_of(path), [&] { return std::make_shared<const ByteModel>(read_byte_model(path)); });
  if (model->causal != files.causal)
    throw Misuse(fmt::format("{}: the model in {} is {}, expected one that is {}; make it with {}", files.input,
                             path.string(), model->causal ? "causal" : "bidirectional",
                             files.causal ? "causal" : "bidirectional", files.training));
  return model;
}

using Text = std::vector<Index>;
using Texts = std::vector<Text>;

std::shared_ptr<const Texts> texts(const Files& files, const std::string& tensor = "bytes") {
  static LastRead<std::shared_ptr<const Texts>, 4> read;
  const auto path = required(files, "texts");
  return read.get(version_of(path) + tensor, [&] { return std::make_shared<const Texts>(read_texts(path, tensor)); });
}

// The text of a capture. Without the capture it is read from texts.safetensors.
Text captured_text(const Files& files, Purpose purpose) {
  static LastRead<Text, 2> read;
  const std::string name = capture(purpose);
  if (!has(files, name) && has(files, "texts"))
    return texts(files, purpose == Purpose::measured ? "bytes" : name)->front();
  const auto path = required(files, name);
  return read.get(version_of(path) + version_of(required(files, "weights")), [&] {
    Context context;
    return bytes_of(context, *byte_model(files, "weights"), *captured_heads(path));
  });
}

// With captures, texts.safetensors may be missing: then there is only the captured text.
Index number_of_texts(const Files& files) {
  return has(files, "measured") && !has(files, "texts") ? 1 : std::ssize(*texts(files));
}

bool one_each(const Params& params) { return params.text("text") == "each"; }

// The measured text of a replicate.
Index text_of(const Params& params, Index replicate) {
  const Index wanted = one_each(params) ? replicate : params.integer("text");
  const Index there = number_of_texts(files_of(params));
  if (wanted >= there)
    throw Misuse(
        fmt::format("{}: text {} was asked for; expected one from 0 to {}, of which replicate r reads "
                    "text r unless text= names one for all",
                    params.name(), wanted, there - 1));
  return wanted;
}

Text measured_text(const Files& files, Index which) {
  const Text captured = captured_text(files, Purpose::measured);
  if (which == 0) return captured;
  const auto all = texts(files);
  if (all->front() != captured)
    throw Misuse(fmt::format("{}: its first text is not the one that was captured; make both in one run of {}",
                             path_of(files, "texts").string(), files.training));
  return all->at(static_cast<size_t>(which));
}

// Applies that model to the first tokens of a text. In a causal model later tokens change nothing except the order in
// which sums are rounded; a bidirectional one reads the whole text. A worker finishes the inputs of one replicate
// before those of the next, so caching one text would do; we cache two for runs that compare weights.
std::shared_ptr<const AttentionFile> computed_heads(const Files& files, const std::string& weights, Purpose purpose,
                                                    Index which, Index tokens) {
  static LastRead<std::shared_ptr<const AttentionFile>, 2> measured, calibration;
  std::string sources;
  for (const std::string& name : {capture(purpose), std::string("weights"), weights, std::string("texts")})
    sources += version_of(path_of(files, name));
  if (!files.causal) tokens = std::numeric_limits<Index>::max();
  auto& kept = purpose == Purpose::measured ? measured : calibration;
  return kept.get(fmt::format("{} text={} tokens={}", sources, which, tokens), [&] {
    Context context;
    Text text = purpose == Purpose::measured ? measured_text(files, which) : captured_text(files, purpose);
    text.resize(std::min(text.size(), static_cast<size_t>(tokens)));
    return std::make_shared<const AttentionFile>(heads_of(context, *byte_model(files, weights), text));
  });
}

void require_head(const Params& params, Index layers, const InputLimits& limits, Index head) {
  const Index layer = params.integer("layer");
  if (layer >= layers || head >= limits.heads)
    throw Misuse(
        fmt::format("{}: layer={}, head={} was asked for; expected a layer from 0 to {} and a head from 0 to "
                    "{}, further heads included",
                    params.name(), layer, head, layers - 1, limits.heads - 1));
}

// All heads on the first tokens of that measured text, or of the calibration text; at least that many tokens.
std::shared_ptr<const AttentionFile> all_heads(const Params& params, Purpose purpose, Index which, Index tokens) {
  const Files& files = files_of(params);
  const bool first = purpose == Purpose::calibration || which == 0;
  if (first && !untrained(params) && has(files, capture(purpose)))
    return captured_heads(path_of(files, capture(purpose)));
  return computed_heads(files, untrained(params) ? "initial" : "weights", purpose, first ? 0 : which, tokens);
}

HeadData<double> draw(const Params& params, const InputRequest& request) {
  const Index which = text_of(params, request.replicate);
  const Index key_size = params.integer("key_size");
  // The directions of smaller keys depend on the whole text.
  const Index tokens = key_size > 0 ? std::numeric_limits<Index>::max() : std::max(request.nq, request.nk);
  const auto file = all_heads(params, request.purpose, which, tokens);
  const Index layer = params.integer("layer"), head = params.integer("head") + request.head;
  require_head(params, file->batches, limits_of(*file), head);
  if (key_size == 0) return first_tokens(*file, layer, head, request);
  InputRequest whole_keys = request;
  whole_keys.d = file->d;
  HeadData<double> drawn = first_tokens(*file, layer, head, whole_keys);
  const auto measured = all_heads(params, Purpose::measured, which, tokens)->head(layer, head);
  const KeyDirections best = best_directions(measured.Q, measured.K, key_size);
  const double scale = std::pow(static_cast<double>(key_size) / static_cast<double>(file->d), 0.25);
  drawn.Q = (scale * drawn.Q.lazyProduct(best.of_queries)).eval();
  drawn.K = (scale * drawn.K.lazyProduct(best.of_keys)).eval();
  return drawn;
}

InputLimits limits(const Params& params) {
  const Files& files = files_of(params);
  InputLimits limits;
  if (has(files, "measured")) {
    const CapturedSizes captured = captured_sizes(path_of(files, "measured"));
    limits = captured.limits;
    require_head(params, captured.batches, limits, params.integer("head"));
  } else {
    const auto& transformer = *byte_model(files, "weights")->transformer;
    const Index n = std::ssize(texts(files)->front());
    limits = {.queries = n, .keys = n, .d = transformer.d, .dv = transformer.dv, .heads = transformer.heads};
    require_head(params, std::ssize(transformer.layers), limits, params.integer("head"));
  }
  const Index key_size = params.integer("key_size");
  if (key_size > limits.d)
    throw Misuse(fmt::format("{}: key_size={} was asked for; expected at most the {} that the heads have",
                             params.name(), key_size, limits.d));
  if (key_size > 0) limits.d = key_size;
  text_of(params, 0);  // throws if there is no such text
  if (one_each(params)) limits.replicates = number_of_texts(files);
  return limits;
}

Text first_bytes(Text text, const Params& params, const InputRequest& request) {
  if (request.nk > static_cast<Index>(text.size()))
    throw Misuse(fmt::format("{}: n={} was asked for and the text has {} bytes; give a smaller n", params.name(),
                             request.nk, text.size()));
  text.resize(static_cast<size_t>(request.nk));
  return text;
}

EmbeddedTokens reading(const Params& params, const Text& text) {
  const auto model = byte_model(files_of(params), untrained(params) ? "initial" : "weights");
  return {model->transformer, embedded(*model, text)};
}

EmbeddedTokens transformer(const Params& params, const InputRequest& request) {
  const Files& files = files_of(params);
  return reading(params, first_bytes(request.purpose == Purpose::measured
                                         ? measured_text(files, text_of(params, request.replicate))
                                         : captured_text(files, request.purpose),
                                     params, request));
}

// The causal model reads a text and predicts each next byte. The bidirectional one reads the text with runs of bytes
// masked (scripts/masked_bytes.py) and predicts these bytes.
PredictionTask prediction(const Params& params, const InputRequest& request) {
  const Files& files = files_of(params);
  const Index which = text_of(params, request.replicate);
  const Text text = first_bytes(measured_text(files, which), params, request);
  std::vector<std::optional<Index>> predicted(text.size());
  if (files.causal) {
    std::copy(text.begin() + 1, text.end(), predicted.begin());
    return {reading(params, text), predicted};
  }
  const Text masked = first_bytes(texts(files, "masked")->at(static_cast<size_t>(which)), params, request);
  for (size_t i = 0; i < text.size(); ++i)
    if (masked[i] != text[i]) predicted[i] = text[i];
  return {reading(params, masked), predicted};
}

// Hashes every existing file that the heads may depend on. Captures alone suffice for single heads, and so do weights
// and texts.
std::string content(const Params& params) {
  const Files& files = files_of(params);
  if (!has(files, "weights")) {
    required(files, "measured");
    required(files, "calibration");
  }
  std::string hashes;
  for (const char* name : {"measured", "calibration", "texts", "weights", "initial"})
    if (has(files, name)) hashes += content_hash(path_of(files, name));
  return hashes;
}

InputEntry entry_of(const Files& files, Description text) {
  return {
      .text = std::move(text),
      .parameters = {Parameter::integer("layer", 2, "the layer, from 0", 0),
                     Parameter::integer(
                         "head", 1,
                         "the head to measure, from 0; a call of several (speed --heads 2) takes the next ones too", 0),
                     Parameter::choice("weights", "trained", "the weights after training, or before its first step",
                                       {"trained", "initial"}),
                     Parameter::integer_or(
                         "text", "each",
                         "the text that all replicates read, from 0, which is the captured one; each: "
                         "replicate r reads text r, and there are as many replicates as texts",
                         0),
                     Parameter::integer(
                         "key_size", 0,
                         "keep this many dimensions of queries and keys, those that carry the logits best; 0: "
                         "all, as captured",
                         0)},
      .draw = draw,
      .limits = limits,
      .content = content,
      .transformer = transformer,
      .prediction = prediction,
      .place =
          [title = std::string(files.title)](const Params& params) {
            return InputPlace{fmt::format("layer {}, head {}", params.integer("layer"), params.integer("head")),
                              "heads of " + title, params.text("text") == "each" ? "text" : "draw"};
          },
      .causal_by_default = files.causal,
  };
}

const bool causal_registered =
    add(entry_of(causal_model, {.name = causal_model.input,
                                .summary = "a head of the project's own byte-level causal transformer, trained or not",
                                .formula = "q, k, v of one layer and head on held-out texts, one a replicate; causal",
                                .reference = "scripts/train_byte_lm.py, harness/inputs/model/model.json",
                                .cost = "text 0 is captured; for another text each worker runs the whole model once",
                                .family = "file"}));

const bool masked_registered = add(entry_of(
    masked_model, {.name = masked_model.input,
                   .summary = "a head of the project's own byte-level bidirectional transformer, trained or not",
                   .formula = "q, k, v of one layer and head on held-out texts, one a replicate",
                   .reference = "scripts/train_byte_lm.py --masked, harness/inputs/masked_model/model.json",
                   .cost = "each worker runs the whole model once for a text",
                   .family = "file"}));

}  // namespace

}  // namespace attnbench::model_input
