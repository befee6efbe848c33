// The splitting rules that GGUF names. Patterns as in the tokenizer.json of the models, except the rule `default`,
// which is llama.cpp's own (src/llama-vocab.cpp).
#include <fmt/format.h>

#include "harness/errors/error.hpp"
#include "harness/inputs/checkpoint/splitter.hpp"
#include "harness/inputs/tensor_formats.hpp"

namespace attnbench {

namespace {

constexpr std::string_view gpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view llama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view qwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)";

struct NamedRule {
  std::vector<std::string> names;
  std::vector<std::string_view> patterns;
  bool compose = false, ignore_merges = false;
};

const std::vector<NamedRule>& named_rules() {
  static const std::vector<NamedRule> rules = {
      {{"gpt-2"}, {gpt2}},
      {{"smollm", "starcoder"}, {R"(\p{N})", gpt2}},
      // Its tokenizer.json takes a piece that is a token as a whole, whether or not merges lead there.
      {{"llama-bpe", "llama3", "llama-v3"}, {llama3}, false, true},
      // llama.cpp leaves out the normal form that its tokenizer.json has and that the models were trained with.
      {{"qwen2", "deepseek-r1-qwen"}, {qwen2}, true},
      {{"default"}, {R"([\p{P}\$\+<=>\^~\|]+)", gpt2, R"(\p{N}+)", "[0-9][0-9][0-9]"}},
  };
  return rules;
}

}  // namespace

std::string_view gpt2_pattern() { return gpt2; }

SplitRule split_rule(const std::string& name, const std::string& where) {
  std::vector<std::string> known;
  for (const auto& rule : named_rules()) {
    for (const auto& other : rule.names) {
      known.push_back(other);
      if (other != name) continue;
      SplitRule found{{}, rule.ignore_merges};
      if (rule.compose) found.steps.push_back({.kind = SplitStep::Kind::compose});
      for (const auto pattern : rule.patterns) found.steps.push_back({.pattern = std::string(pattern)});
      return found;
    }
  }
  throw Misuse(
      fmt::format("{}: the splitting rule '{}' is unknown; expected one of {}: a tokenizer.json says its rule "
                  "itself",
                  where, shown(name), fmt::join(known, ", ")));
}

}  // namespace attnbench
