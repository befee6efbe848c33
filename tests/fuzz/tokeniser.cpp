// tokenizer.json, and any bytes through tokenisers: encoded and decoded, they come back. The first byte chooses: '{'
// begins a tokenizer.json, which is then made to encode a short text; any other names a splitting rule for the bytes
// after it.
#include "harness/inputs/checkpoint/tokeniser.hpp"

#include "harness/errors/error.hpp"
#include "harness/inputs/checkpoint/byte_alphabet.hpp"
#include "tests/fuzz/bounded.hpp"

using namespace attnbench;

namespace {

// The 256 bytes and some merges. Without NFC, which changes bytes.
Tokeniser fixed(const std::string& rule) {
  TokeniserParts parts;
  for (unsigned byte = 0; byte < 256; ++byte)
    parts.vocabulary.push_back(character_of_byte(static_cast<unsigned char>(byte)));
  for (const std::string merge : {"a a", "aa aa", "\u0120 a", "1 2", "\u00C3 \u00A9", "\u0120 \u0120", "b c", "a bc"}) {
    parts.merges.push_back(merge);
    parts.vocabulary.push_back(merge);
    parts.vocabulary.back().erase(merge.find(' '), 1);
  }
  for (const auto& step : split_rule(rule, "fixed").steps) {
    if (step.kind != SplitStep::Kind::compose) parts.splitter.push_back(step);
  }
  return {parts, "fixed"};
}

void round_trip(std::string_view text) {
  static const std::vector<Tokeniser> tokenisers = {fixed("gpt-2"), fixed("smollm"), fixed("llama-bpe"), fixed("qwen2"),
                                                    fixed("default")};
  const AllocationBound bound(65536 + 512 * text.size());  // pieces, ids and the heap of a piece
  const auto& tokeniser = tokenisers[static_cast<unsigned char>(text[0]) % tokenisers.size()];
  text.remove_prefix(1);
  const auto ids = tokeniser.encode(text);
  require(tokeniser.decode(ids) == text, "encoded and decoded bytes come back");
  Index bytes = 0;
  for (const Index id : ids) bytes += tokeniser.bytes_of(id);
  require(bytes == static_cast<Index>(text.size()), "the tokens stand for as many bytes as the text has");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, size_t size) {
  const std::string_view text = text_of(data, size);
  if (text.empty()) return 0;
  if (text[0] != '{') {
    round_trip(text);
    return 0;
  }
  // PCRE2's compiled pattern may have 64 kB for a pattern of any length.
  const AllocationBound bound((1 << 20) + 512 * size);
  try {
    const auto tokeniser = tokeniser_of_json(std::string(text), "fuzz");
    const auto ids = tokeniser.encode("ab a  12 it's\n\n \u00E9\xFF e\u0301");
    for (const Index id : ids) require(id >= 0 && id < tokeniser.size(), "ids are those of tokens");
    tokeniser.decode(ids);
  } catch (const Misuse&) {
  }
  return 0;
}
