#include "harness/inputs/checkpoint/architecture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "harness/errors/error.hpp"

namespace attnbench {

const char* const known_architectures =
    "llama (Llama, SmolLM and others of that form), mistral, qwen2 and qwen3 (without experts)";

std::vector<ModelWeight> weights_of(const ModelSizes& s) {
  std::vector<ModelWeight> all{{"embedding", -1, s.vocabulary, s.width}};
  for (Index layer = 0; layer < s.layers; ++layer)
    for (const auto& [name, rows, columns] :
         std::initializer_list<std::tuple<const char*, Index, Index>>{{"attention_norm", 1, s.width},
                                                                      {"queries", s.heads * s.d, s.width},
                                                                      {"keys", s.key_heads * s.d, s.width},
                                                                      {"values", s.key_heads * s.dv, s.width},
                                                                      {"query_shift", 1, s.heads * s.d},
                                                                      {"key_shift", 1, s.key_heads * s.d},
                                                                      {"value_shift", 1, s.key_heads * s.dv},
                                                                      {"query_norm", 1, s.d},
                                                                      {"key_norm", 1, s.d},
                                                                      {"out", s.width, s.heads * s.dv},
                                                                      {"feed_forward_norm", 1, s.width},
                                                                      {"gate", s.hidden, s.width},
                                                                      {"up", s.hidden, s.width},
                                                                      {"down", s.width, s.hidden}})
      all.push_back({name, layer, rows, columns});
  all.push_back({"output_norm", -1, 1, s.width});
  all.push_back({"unembedding", -1, s.vocabulary, s.width});
  return all;
}

bool optional_weight(const std::string& name) {
  static constexpr std::array<std::string_view, 6> names{"query_shift", "key_shift", "value_shift",
                                                         "query_norm",  "key_norm",  "unembedding"};
  return std::find(names.begin(), names.end(), name) != names.end();
}

void refuse_senseless_sizes(const std::string& file, const ModelSizes& s) {
  for (const auto& [name, size] : std::initializer_list<std::pair<const char*, Index>>{{"layers", s.layers},
                                                                                       {"width", s.width},
                                                                                       {"query heads", s.heads},
                                                                                       {"key heads", s.key_heads},
                                                                                       {"size of a key", s.d},
                                                                                       {"size of a value", s.dv},
                                                                                       {"hidden width", s.hidden},
                                                                                       {"vocabulary", s.vocabulary},
                                                                                       {"context", s.context}})
    if (size < 1 || size > 1'000'000'000)
      throw Misuse(
          fmt::format("{}: {} = {}; expected a positive number: the file is damaged, or of a model that "
                      "attnbench does not know ({})",
                      file, name, size, known_architectures));
  if (s.heads % s.key_heads != 0)
    throw Misuse(fmt::format("{}: {} query heads share {} key heads; expected a multiple", file, s.heads, s.key_heads));
  if (s.d % 2 != 0) throw Misuse(fmt::format("{}: keys of {} channels; expected an even number", file, s.d));
}

}  // namespace attnbench
