// Heads of the byte-level causal transformer that scripts/train_byte_lm.py trains, on two held-out texts.
//   weights=trained  as captured: measured.safetensors and calibration.safetensors, q, k and v of shape
//                    [layers, heads, n, d], q and k after the rotary rotation and unscaled
//   weights=initial  the same texts read by the untrained model (initial.safetensors), computed here
// With key_size, queries and keys have fewer dimensions: those whose logits are nearest to the head's own over the
// whole measured text, scaled so that logits stay what they are under the smaller key size's square root. A smaller n
// takes the first tokens. One sample: the same numbers in every replicate. What composes layers (`depth`) gets the
// whole transformer, and its tokens.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "harness/core/error.hpp"
#include "harness/core/installed.hpp"
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

std::vector<Index> text_of(Purpose purpose) {
  static LastRead<std::vector<Index>, 2> texts;
  const auto path = capture(purpose);
  return texts.get(version_of(path) + version_of(required("weights")), [&] {
    Context context;
    return bytes_of(context, *byte_model("weights"), *captured_heads(path));
  });
}

std::shared_ptr<const AttentionFile> untrained_heads(Purpose purpose) {
  static LastRead<std::shared_ptr<const AttentionFile>, 2> files;
  const std::string sources =
      version_of(capture(purpose)) + version_of(required("weights")) + version_of(required("initial"));
  return files.get(sources, [&] {
    Context context;
    return std::make_shared<const AttentionFile>(heads_of(context, *byte_model("initial"), text_of(purpose)));
  });
}

void require_head(const AttentionFile& file, Index layer, Index head) {
  if (layer >= file.batches || head >= file.heads)
    throw Misuse(
        fmt::format("model: layer={}, head={} was asked for; expected a layer from 0 to {} and a head from 0 to "
                    "{}, further heads included",
                    layer, head, file.batches - 1, file.heads - 1));
}

std::shared_ptr<const AttentionFile> all_heads(const Params& params, Purpose purpose) {
  return untrained(params) ? untrained_heads(purpose) : captured_heads(capture(purpose));
}

HeadData<double> draw(const Params& params, const InputRequest& request) {
  const auto file = all_heads(params, request.purpose);
  const Index layer = params.integer("layer"), head = params.integer("head") + request.head;
  require_head(*file, layer, head);
  const Index key_size = params.integer("key_size");
  if (key_size == 0) return first_tokens(*file, layer, head, request);
  InputRequest whole_keys = request;
  whole_keys.d = file->d;
  HeadData<double> drawn = first_tokens(*file, layer, head, whole_keys);
  const auto measured = all_heads(params, Purpose::measured)->head(layer, head);
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
  return limits;
}

EmbeddedTokens transformer(const Params& params, const InputRequest& request) {
  auto text = text_of(request.purpose);
  if (request.nk > static_cast<Index>(text.size()))
    throw Misuse(
        fmt::format("model: n={} was asked for and the text has {} bytes; give a smaller n", request.nk, text.size()));
  text.resize(static_cast<size_t>(request.nk));
  const auto model = byte_model(untrained(params) ? "initial" : "weights");
  return {model->transformer, embedded(*model, text)};
}

// Of every file that anything here is made of and that is there: captures alone serve single heads.
std::string content(const Params&) {
  std::string hashes = content_hash(capture(Purpose::measured)) + content_hash(capture(Purpose::calibration));
  std::error_code error;
  for (const char* name : {"weights", "initial"})
    if (std::filesystem::exists(path_of(name), error)) hashes += content_hash(path_of(name));
  return hashes;
}

const bool registered = add(InputEntry{
    .text = {.name = "model",
             .summary = "a head of the project's own byte-level causal transformer, trained or not",
             .formula = "q, k, v of one layer and head on held-out text; causal",
             .reference = "scripts/train_byte_lm.py, harness/inputs/model/model.json",
             .cost = "the captures are read once and kept",
             .family = "file"},
    .parameters = {Parameter::integer("layer", 2, "the layer, from 0", 0),
                   Parameter::integer("head", 1, "the first head to measure, from 0; further heads follow it", 0),
                   Parameter::choice("weights", "trained", "those after training, or before its first step",
                                     {"trained", "initial"}),
                   Parameter::integer("key_size", 0,
                                      "so many dimensions of queries and keys, those that carry the logits best; 0: "
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
