// Cuts a text into the pieces within which a tokeniser merges bytes.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/needs.hpp"
#include "harness/inputs/checkpoint/split_pattern.hpp"

namespace attnbench {

// One step. Steps run in order, each within the pieces that those before it left.
struct SplitStep {
  enum class Kind {
    find_tokens,   // cut out each of `tokens`, the first and the longest at a place; later steps leave them alone
    compose,       // Unicode's normal form NFC
    isolate,       // each match of the pattern is a piece, and so is each stretch between matches
    drop_matches,  // only the stretches between matches remain
    drop_rest,     // only the matches remain
    prefix_space,  // put a space before each piece that does not begin with one
  };
  Kind kind = Kind::isolate;
  std::string pattern = {};
  bool literal = false;                      // the pattern is a text
  std::map<std::string, Index> tokens = {};  // of find_tokens: text and id
};

// How the files of a known rule are to be read. GGUF's tokenizer.ggml.pre names the rule.
struct SplitRule {
  std::vector<SplitStep> steps;
  bool ignore_merges = false;
};
// Throws Misuse, which lists the known names.
SplitRule split_rule(const std::string& name, const std::string& where);

// The splitting pattern of GPT-2, which Hugging Face's ByteLevel applies.
std::string_view gpt2_pattern();

struct Piece {
  size_t begin, end;  // within the bytes
  bool text;          // valid UTF-8, which steps may split
  Index token = -1;   // the id, where find_tokens found one
};
struct Pieces {
  std::string bytes;  // of the text, unless a step changed it
  std::vector<Piece> pieces;
};

class Splitter {
 public:
  Splitter(const std::vector<SplitStep>& steps, const std::string& where);

  // Bytes that are not UTF-8 end the piece before them and are pieces of their own, one for each run of such bytes.
  Pieces split(std::string_view text) const;

 private:
  struct Compiled {
    SplitStep step;
    std::vector<SplitPattern> pattern;  // none for compose and prefix_space
  };
  std::vector<Compiled> steps_;
};

}  // namespace attnbench
