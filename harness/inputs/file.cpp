// Heads from a .safetensors or .npz file: tensors q, k and v, unscaled, of shape [n, d], [heads, n, d] or [batch,
// heads, n, d], and what a method needs beside them (MethodEntry::needs). A smaller n takes the first tokens. Every
// replicate gets the same numbers, because a file is one sample.
#include <fmt/format.h>

#include "harness/errors/error.hpp"
#include "harness/inputs/captured_heads.hpp"

namespace attnbench::file_input {

namespace {

std::filesystem::path path_of(const Params& params) {
  if (params.text("path").empty()) throw Misuse("file: no path was given; expected file:PATH");
  return params.text("path");
}

// The file, which must contain that item of the batch and that head.
std::shared_ptr<const AttentionFile> file_with_head(const Params& params, Index batch, Index head,
                                                    const std::vector<Need>& needs) {
  const auto path = path_of(params);
  auto file = captured_heads(path, needs);
  if (batch >= file->batches || head >= file->heads)
    throw Misuse(
        fmt::format("{}: batch={}, head={} was asked for; expected a batch from 0 to {} and a head from 0 to {}, "
                    "further heads included",
                    path.string(), batch, head, file->batches - 1, file->heads - 1));
  return file;
}

HeadData<double> draw(const Params& params, const InputRequest& request) {
  const Index batch = params.integer("batch"), head = params.integer("head") + request.head;
  return first_tokens(*file_with_head(params, batch, head, request.needs), batch, head, request);
}

const bool registered = add(InputEntry{
    .text = {.name = "file",
             .summary =
                 "heads from a .safetensors or .npz file with tensors q, k and v, and what a method needs beside "
                 "them, by name",
             .formula = "q, k, v of shape [n, d], [heads, n, d] or [batch, heads, n, d], not scaled by d^-1/4",
             .reference = "",
             .cost = "the file is read once and kept",
             .family = "file"},
    .parameters = {Parameter::text("path", "", "the file"),
                   Parameter::integer(
                       "head", 0,
                       "the head to measure, from 0; a call of several (speed --heads 2) takes the next ones too", 0),
                   Parameter::integer("batch", 0, "the item of the batch", 0)},
    .draw = draw,
    .limits =
        [](const Params& params) {
          return limits_of(*file_with_head(params, params.integer("batch"), params.integer("head"), {}));
        },
    .content = [](const Params& params) { return content_hash(path_of(params)); },
    .has_calibration = false,
});

}  // namespace

}  // namespace attnbench::file_input
