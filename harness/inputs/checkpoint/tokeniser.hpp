// Byte-level BPE tokenisers: GPT-2, SmolLM, Llama 3, Qwen 2 and what is built like them. Sennrich, Haddow, Birch,
// arXiv:1508.07909, on bytes (byte_alphabet.hpp).
//   A text is cut into pieces (splitter.hpp). A piece begins as its bytes. Of the neighbouring tokens that a merge
//   joins, those of the earliest merge in the list are joined first, the leftmost of equals first, until no merge
//   applies.
// O(n log n) time for a piece of n bytes. A piece that comes again in a text is copied.
#pragma once

#include <array>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "harness/core/needs.hpp"
#include "harness/inputs/checkpoint/splitter.hpp"

namespace attnbench {

// A tokeniser as files describe it.
struct TokeniserParts {
  std::vector<std::string> vocabulary;  // in GPT-2's byte alphabet; the index is the id
  std::vector<std::string> merges;      // "left right", the first has the highest priority
  std::vector<SplitStep> splitter;
  bool ignore_merges = false;  // a piece that is a token becomes that token before any merge applies
};

class Tokeniser {
 public:
  // `where`, such as the file's name, begins every message. Throws Misuse if there are no merges, a token or a merge is
  // there twice, a merge names or makes no token, or a pattern is not understood. A vocabulary may lack single bytes,
  // as SmolLM2's does: encode refuses texts that have them.
  Tokeniser(const TokeniserParts& parts, std::string where);

  // Any bytes, UTF-8 or not, become ids. No token is put in front, and a text that looks like a special token
  // ("<|endoftext|>") is encoded as ordinary text. Several threads may call it. Throws Misuse if a byte has no token.
  std::vector<Index> encode(std::string_view text) const;

  // The bytes of the tokens. Equal to the encoded text, unless the splitter composes characters (NFC), puts spaces in
  // front or drops pieces. Throws Misuse if there is no such id.
  std::string decode(std::span<const Index> ids) const;

  // Number of bytes that the token stands for; of a special token, those of its text. Throws Misuse if there is no such
  // id.
  Index bytes_of(Index id) const;
  Index size() const { return static_cast<Index>(bytes_.size()); }

 private:
  friend class PieceMerger;
  struct Merge {
    Index rank, result;
  };

  const std::string& bytes_at(Index id) const;
  void add_merge(const std::string& merge, const std::unordered_map<std::string_view, Index>& ids);
  const Merge* merge_of(Index left, Index right) const;
  Index id_of_byte(char byte, std::string_view piece) const;

  std::string where_;
  std::vector<std::string> bytes_;                       // by id
  std::array<Index, 256> byte_ids_ = {};                 // -1: no token
  std::unordered_map<std::uint64_t, Merge> merges_;      // by the pair of ids
  std::unordered_map<std::string, Index> whole_pieces_;  // by bytes; empty unless ignore_merges
  Splitter splitter_;
};

// From the metadata of a GGUF file: tokenizer.ggml.model, .pre, .tokens and .merges. Throws Misuse if the model is not
// "gpt2" or the rule `pre` is unknown (split_rule has the list). Tokens of the type USER_DEFINED are not recognised in
// text.
Tokeniser tokeniser_of_gguf(const std::string& model, const std::string& pre, std::vector<std::string> tokens,
                            std::vector<std::string> merges, const std::string& where);

// From Hugging Face's tokenizer.json. Added tokens that are not special, such as runs of spaces, are recognised in
// text, as `tokenizers` does; those with lstrip, rstrip or single_word are refused. `truncation`, `padding`,
// `post_processor` (tokens in front) and `decoder` are not applied. Throws Misuse that names what is not understood.
Tokeniser read_tokeniser(const std::filesystem::path& tokenizer_json);
Tokeniser tokeniser_of_json(const std::string& json, const std::string& where);

}  // namespace attnbench
