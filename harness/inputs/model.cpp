// Heads of the byte-level causal transformer that scripts/train_byte_lm.py trains, captured on two held-out texts:
// measured.safetensors and calibration.safetensors, q, k and v of shape [layers, heads, n, d], q and k after the
// rotary rotation and unscaled. A smaller n takes the first tokens. One sample: the same numbers in every replicate.
#include <fmt/format.h>

#include <cstdlib>

#include "harness/core/error.hpp"
#include "harness/inputs/captured_heads.hpp"

namespace attnbench {

namespace {

std::filesystem::path capture(Purpose purpose) {
  const char* chosen = std::getenv("ATTNBENCH_MODEL");
  const std::filesystem::path folder = chosen && *chosen ? chosen : ATTNBENCH_MODEL_DIR;
  const auto path = folder / (purpose == Purpose::measured ? "measured.safetensors" : "calibration.safetensors");
  std::error_code error;
  if (!std::filesystem::exists(path, error))
    throw Misuse(
        fmt::format("model: there is no {}; make it with scripts/train_byte_lm.py, or set ATTNBENCH_MODEL to a "
                    "folder that holds it",
                    path.string()));
  return path;
}

void require_head(const AttentionFile& file, Index layer, Index head) {
  if (layer >= file.batches || head >= file.heads)
    throw Misuse(
        fmt::format("model: layer={}, head={} was asked for; expected a layer from 0 to {} and a head from 0 to "
                    "{}, further heads included",
                    layer, head, file.batches - 1, file.heads - 1));
}

HeadData<double> draw(const Params& params, const InputRequest& request) {
  const auto file = captured_heads(capture(request.purpose));
  const Index layer = params.integer("layer"), head = params.integer("head") + request.head;
  require_head(*file, layer, head);
  return first_tokens(*file, layer, head, request);
}

const bool registered = add(InputEntry{
    .text = {.name = "model",
             .summary = "a head of the project's own trained byte-level causal transformer",
             .formula = "q, k, v of one layer and head on held-out text; causal",
             .reference = "scripts/train_byte_lm.py, harness/inputs/model/model.json",
             .cost = "the captures are read once and kept",
             .family = "file"},
    .parameters = {Parameter::integer("layer", 2, "the layer, from 0", 0),
                   Parameter::integer("head", 1, "the first head to measure, from 0; further heads follow it", 0)},
    .draw = draw,
    .limits =
        [](const Params& params) {
          const auto file = captured_heads(capture(Purpose::measured));
          require_head(*file, params.integer("layer"), params.integer("head"));
          return limits_of(*file);
        },
    .content =
        [](const Params&) {
          return content_hash(capture(Purpose::measured)) + content_hash(capture(Purpose::calibration));
        },
    .causal_by_default = true,
});

}  // namespace

}  // namespace attnbench
