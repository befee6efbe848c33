#include "harness/inputs/checkpoint/tokeniser.hpp"

#include <fmt/format.h>

#include <queue>

#include "harness/errors/error.hpp"
#include "harness/inputs/checkpoint/byte_alphabet.hpp"
#include "harness/inputs/tensor_formats.hpp"

namespace attnbench {

namespace {

std::uint64_t pair_key(Index left, Index right) {  // ids are below 2^32: as many texts do not fit in memory
  return (static_cast<std::uint64_t>(left) << 32) | static_cast<std::uint64_t>(right);
}

}  // namespace

// Merges the bytes of a piece: tokens in a linked list, and a heap of the merges that may come next. A merge whose
// tokens have since become part of others is stale and is passed over.
class PieceMerger {
 public:
  explicit PieceMerger(const Tokeniser& tokeniser) : tokeniser_(tokeniser) {}

  void append(std::string_view piece, std::vector<Index>& ids) {
    tokens_.clear();
    for (size_t at = 0; at < piece.size(); ++at)
      tokens_.push_back({tokeniser_.id_of_byte(piece[at], piece), at - 1, at + 1});
    for (size_t left = 0; left + 1 < tokens_.size(); ++left) consider(left);
    while (!candidates_.empty()) {
      const Candidate next = candidates_.top();
      candidates_.pop();
      apply(next);
    }
    for (size_t at = 0; at < tokens_.size(); at = tokens_[at].next) ids.push_back(tokens_[at].id);
  }

 private:
  static constexpr Index joined = -1;  // the token has become part of the one to its left
  struct Token {
    Index id;
    size_t previous, next;
  };
  struct Candidate {
    Index rank, left_id, right_id, result;
    size_t left;
    bool operator<(const Candidate& other) const {  // the top of the heap is the largest: the lowest rank, leftmost
      return rank != other.rank ? rank > other.rank : left > other.left;
    }
  };

  void consider(size_t left) {
    const Index left_id = tokens_[left].id, right_id = tokens_[tokens_[left].next].id;
    if (const auto* merge = tokeniser_.merge_of(left_id, right_id))
      candidates_.push({merge->rank, left_id, right_id, merge->result, left});
  }

  void apply(const Candidate& merge) {
    Token& left = tokens_[merge.left];
    const size_t right = left.next;
    if (left.id != merge.left_id || right >= tokens_.size() || tokens_[right].id != merge.right_id) return;
    left.id = merge.result;
    left.next = tokens_[right].next;
    tokens_[right].id = joined;
    if (left.next < tokens_.size()) {
      tokens_[left.next].previous = merge.left;
      consider(merge.left);
    }
    if (merge.left > 0) consider(left.previous);
  }

  const Tokeniser& tokeniser_;
  std::vector<Token> tokens_;
  std::priority_queue<Candidate> candidates_;
};

Tokeniser::Tokeniser(const TokeniserParts& parts, std::string where)
    : where_(std::move(where)), splitter_(parts.splitter, where_) {
  if (parts.merges.empty())
    throw Misuse(
        fmt::format("{}: the tokeniser has no merges; expected the list of a byte-level BPE tokeniser", where_));
  std::unordered_map<std::string_view, Index> ids;
  bytes_.reserve(parts.vocabulary.size());
  for (const auto& token : parts.vocabulary) {
    const Index id = size();
    if (token.empty())
      throw Misuse(fmt::format("{}: token {} is the empty text; expected at least one byte", where_, id));
    const auto [first, fresh] = ids.emplace(token, id);
    if (!fresh)
      throw Misuse(fmt::format("{}: tokens {} and {} are both '{}'; expected each text once", where_, first->second, id,
                               shown(token)));
    // A special token may have characters outside the alphabet; it stands for its own text.
    bytes_.push_back(bytes_of_characters(token).value_or(token));
    if (parts.ignore_merges) whole_pieces_.emplace(bytes_.back(), id);
  }
  for (unsigned byte = 0; byte < 256; ++byte) {
    const auto found = ids.find(character_of_byte(static_cast<unsigned char>(byte)));
    byte_ids_[byte] = found == ids.end() ? -1 : found->second;
  }
  merges_.reserve(parts.merges.size());
  for (const auto& merge : parts.merges) add_merge(merge, ids);
}

void Tokeniser::add_merge(const std::string& merge, const std::unordered_map<std::string_view, Index>& ids) {
  const auto rank = static_cast<Index>(merges_.size());
  const auto refuse = [&](const std::string& why) {
    throw Misuse(fmt::format("{}: merge {} is '{}', {}", where_, rank, shown(merge), why));
  };
  const size_t space = merge.find(' ');
  if (space == std::string::npos || merge.find(' ', space + 1) != std::string::npos)
    refuse("which is not a pair; expected two tokens with a space between them");
  const auto id_of = [&](const std::string& token) {
    const auto found = ids.find(token);
    if (found == ids.end())
      refuse(fmt::format("and '{}' is not in the vocabulary; expected merges of tokens into tokens", shown(token)));
    return found->second;
  };
  const std::string left = merge.substr(0, space), right = merge.substr(space + 1);
  const Index left_id = id_of(left), right_id = id_of(right), result = id_of(left + right);
  if (!merges_.emplace(pair_key(left_id, right_id), Merge{rank, result}).second)
    refuse("which is there twice; expected each pair once");
}

const Tokeniser::Merge* Tokeniser::merge_of(Index left, Index right) const {
  const auto found = merges_.find(pair_key(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

Index Tokeniser::id_of_byte(char byte, std::string_view piece) const {
  const auto number = static_cast<unsigned char>(byte);
  if (byte_ids_[number] >= 0) return byte_ids_[number];
  throw Misuse(
      fmt::format("{}: the vocabulary has no token for the byte 0x{:02X}, which the piece '{}' has; expected a "
                  "text without it: remove it",
                  where_, number, shown(piece)));
}

std::vector<Index> Tokeniser::encode(std::string_view text) const {
  const auto [bytes, pieces] = splitter_.split(text);
  std::vector<Index> ids;
  PieceMerger merger(*this);
  std::unordered_map<std::string_view, std::pair<size_t, size_t>> earlier;  // a piece, and where its ids are
  for (const auto& piece : pieces) {
    if (piece.token >= 0) {
      ids.push_back(piece.token);
      continue;
    }
    const auto content = std::string_view(bytes).substr(piece.begin, piece.end - piece.begin);
    const auto [entry, fresh] = earlier.try_emplace(content);
    if (!fresh) {
      for (size_t at = entry->second.first; at < entry->second.second; ++at) ids.push_back(ids[at]);
      continue;
    }
    const size_t begin = ids.size();
    const auto whole = whole_pieces_.empty() ? whole_pieces_.end() : whole_pieces_.find(std::string(content));
    if (whole != whole_pieces_.end()) {
      ids.push_back(whole->second);
    } else {
      merger.append(content, ids);
    }
    entry->second = {begin, ids.size()};
  }
  return ids;
}

const std::string& Tokeniser::bytes_at(Index id) const {
  if (id < 0 || id >= size())
    throw Misuse(fmt::format("{}: there is no token {}; expected 0 to {}", where_, id, size() - 1));
  return bytes_[static_cast<size_t>(id)];
}

std::string Tokeniser::decode(std::span<const Index> ids) const {
  std::string text;
  for (const Index id : ids) text += bytes_at(id);
  return text;
}

Index Tokeniser::bytes_of(Index id) const { return static_cast<Index>(bytes_at(id).size()); }

Tokeniser tokeniser_of_gguf(const std::string& model, const std::string& pre, std::vector<std::string> tokens,
                            std::vector<std::string> merges, const std::string& where) {
  if (model != "gpt2")
    throw Misuse(fmt::format("{}: tokenizer.ggml.model is '{}'; expected gpt2, a byte-level BPE tokeniser", where,
                             shown(model)));
  auto [steps, ignore_merges] = split_rule(pre, where + ": tokenizer.ggml.pre");
  return {{std::move(tokens), std::move(merges), std::move(steps), ignore_merges}, where};
}

}  // namespace attnbench
