// Heads of the byte-level causal transformer that scripts/train_byte_lm.py trains, on held-out texts.
//   text=each        replicate r reads text r of texts.safetensors, so that replicates differ as texts do
//   text=0, 1, ...   every replicate reads that text
//   weights=trained  text 0 and the calibration text, the same for every replicate, as captured in float16:
//                    measured.safetensors and calibration.safetensors, q, k and v of shape [layers, heads, n, d], q and
//                    k after the rotary rotation and unscaled. The other texts are computed here in double: captures
//                    differ from that by at most 4e-4 (relative, Frobenius; tests/inputs/transformer_test.cpp).
//   weights=initial  the same texts read by the untrained model (initial.safetensors), computed here
// With key_size, queries and keys keep fewer dimensions: those whose logits are nearest to the head's own over the
// whole measured text. They are scaled so that logits stay the same under the square root of the smaller key size. A
// smaller n takes the first tokens. Experiments that compose layers (`depth`) get the whole transformer and its tokens.
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

namespace attnbench {

namespace {

std::filesystem::path path_of(const std::string& name) {
  const char* chosen = std::getenv("ATTNBENCH_MODEL");
  const std::filesystem::path folder =
      chosen && *chosen ? std::filesystem::path(chosen) : source_tree() / "harness/inputs/model";
  return folder / (name + ".safetensors");
}

std::filesystem::path required(const std::string& name) {
  const auto path = path_of(name);
  std::error_code error;
  if (!std::filesystem::exists(path, error))
    throw Misuse(
        fmt::format("model: there is no {}; make it with scripts/train_byte_lm.py, or set ATTNBENCH_MODEL to a "
                    "folder that holds it",
                    path.string()));
  return path;
}

std::filesystem::path capture(Purpose purpose) {
  return required(purpose == Purpose::measured ? "measured" : "calibration");
}

bool untrained(const Params& params) { return params.text("weights") == "initial"; }

std::shared_ptr<const ByteModel> byte_model(const std::string& name) {
  static LastRead<std::shared_ptr<const ByteModel>, 2> models;
  const auto path = required(name);
  return models.get(version_of(path), [&] {
    return std::make_shared<const ByteModel>(read_byte_model(path, captured_heads(capture(Purpose::measured))->heads));
  });
}

using Text = std::vector<Index>;

Text captured_text(Purpose purpose) {
  static LastRead<Text, 2> texts;
  const auto path = capture(purpose);
  return texts.get(version_of(path) + version_of(required("weights")), [&] {
    Context context;
    return bytes_of(context, *byte_model("weights"), *captured_heads(path));
  });
}

bool has_texts() {
  std::error_code error;
  return std::filesystem::exists(path_of("texts"), error);
}

// All texts. The first one is captured as well.
std::shared_ptr<const std::vector<Text>> texts() {
  static LastRead<std::shared_ptr<const std::vector<Text>>, 1> read;
  const auto path = required("texts");
  return read.get(version_of(path), [&] { return std::make_shared<const std::vector<Text>>(read_texts(path)); });
}

// Without texts.safetensors there is only the captured text.
Index number_of_texts() { return has_texts() ? std::ssize(*texts()) : 1; }

bool one_each(const Params& params) { return params.text("text") == "each"; }

// The measured text of a replicate.
Index text_of(const Params& params, Index replicate) {
  const Index wanted = one_each(params) ? replicate : params.integer("text"), there = number_of_texts();
  if (wanted >= there)
    throw Misuse(
        fmt::format("model: text {} was asked for; expected one from 0 to {}, of which replicate r reads "
                    "text r unless text= names one for all",
                    wanted, there - 1));
  return wanted;
}

Text measured_text(Index which) {
  const Text captured = captured_text(Purpose::measured);
  if (which == 0) return captured;
  const auto all = texts();
  if (all->front() != captured)
    throw Misuse(
        fmt::format("{}: its first text is not the one that was captured; make both in one run of "
                    "scripts/train_byte_lm.py",
                    path_of("texts").string()));
  return all->at(static_cast<size_t>(which));
}

// Applies that model to the first tokens of a text. The model is causal, so later tokens change nothing except the
// order in which sums are rounded. A worker finishes the inputs of one replicate before those of the next, so caching
// one text would do; we cache two for runs that compare weights.
std::shared_ptr<const AttentionFile> computed_heads(const std::string& weights, Purpose purpose, Index which,
                                                    Index tokens) {
  static LastRead<std::shared_ptr<const AttentionFile>, 2> measured, calibration;
  const std::string sources = fmt::format("{}{}{}{}", version_of(capture(purpose)), version_of(required("weights")),
                                          version_of(required(weights)), version_of(path_of("texts")));
  auto& kept = purpose == Purpose::measured ? measured : calibration;
  return kept.get(fmt::format("{} text={} tokens={}", sources, which, tokens), [&] {
    Context context;
    Text text = purpose == Purpose::measured ? measured_text(which) : captured_text(purpose);
    text.resize(std::min(text.size(), static_cast<size_t>(tokens)));
    return std::make_shared<const AttentionFile>(heads_of(context, *byte_model(weights), text));
  });
}

void require_head(const AttentionFile& file, Index layer, Index head) {
  if (layer >= file.batches || head >= file.heads)
    throw Misuse(
        fmt::format("model: layer={}, head={} was asked for; expected a layer from 0 to {} and a head from 0 to "
                    "{}, further heads included",
                    layer, head, file.batches - 1, file.heads - 1));
}

// All heads on the first tokens of that measured text, or of the calibration text; at least that many tokens.
std::shared_ptr<const AttentionFile> all_heads(const Params& params, Purpose purpose, Index which, Index tokens) {
  const bool captured = purpose == Purpose::calibration || which == 0;
  if (captured && !untrained(params)) return captured_heads(capture(purpose));
  return computed_heads(untrained(params) ? "initial" : "weights", purpose, captured ? 0 : which, tokens);
}

HeadData<double> draw(const Params& params, const InputRequest& request) {
  const Index which = text_of(params, request.replicate);
  const Index key_size = params.integer("key_size");
  // The directions of smaller keys depend on the whole text.
  const Index tokens = key_size > 0 ? std::numeric_limits<Index>::max() : std::max(request.nq, request.nk);
  const auto file = all_heads(params, request.purpose, which, tokens);
  const Index layer = params.integer("layer"), head = params.integer("head") + request.head;
  require_head(*file, layer, head);
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
  const auto file = captured_heads(capture(Purpose::measured));
  require_head(*file, params.integer("layer"), params.integer("head"));
  InputLimits limits = limits_of(*file);
  const Index key_size = params.integer("key_size");
  if (key_size > limits.d)
    throw Misuse(fmt::format("model: key_size={} was asked for; expected at most the {} that the heads have", key_size,
                             limits.d));
  if (key_size > 0) limits.d = key_size;
  text_of(params, 0);  // throws if there is no such text
  if (one_each(params)) limits.replicates = number_of_texts();
  return limits;
}

EmbeddedTokens transformer(const Params& params, const InputRequest& request) {
  auto text = request.purpose == Purpose::measured ? measured_text(text_of(params, request.replicate))
                                                   : captured_text(request.purpose);
  if (request.nk > static_cast<Index>(text.size()))
    throw Misuse(
        fmt::format("model: n={} was asked for and the text has {} bytes; give a smaller n", request.nk, text.size()));
  text.resize(static_cast<size_t>(request.nk));
  const auto model = byte_model(untrained(params) ? "initial" : "weights");
  return {model->transformer, text, embedded(*model, text)};
}

// Hashes every existing file that the heads may depend on. Captures alone suffice for single heads.
std::string content(const Params&) {
  std::string hashes = content_hash(capture(Purpose::measured)) + content_hash(capture(Purpose::calibration));
  std::error_code error;
  for (const char* name : {"texts", "weights", "initial"})
    if (std::filesystem::exists(path_of(name), error)) hashes += content_hash(path_of(name));
  return hashes;
}

const bool registered = add(InputEntry{
    .text = {.name = "model",
             .summary = "a head of the project's own byte-level causal transformer, trained or not",
             .formula = "q, k, v of one layer and head on held-out texts, one a replicate; causal",
             .reference = "scripts/train_byte_lm.py, harness/inputs/model/model.json",
             .cost = "text 0 is captured; for another text each worker runs the whole model once",
             .family = "file"},
    .parameters = {Parameter::integer("layer", 2, "the layer, from 0", 0),
                   Parameter::integer("head", 1, "the first head to measure, from 0; further heads follow it", 0),
                   Parameter::choice("weights", "trained", "the weights after training, or before its first step",
                                     {"trained", "initial"}),
                   Parameter::integer_or("text", "each",
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
    .causal_by_default = true,
});

}  // namespace

}  // namespace attnbench
