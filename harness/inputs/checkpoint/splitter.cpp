#include "harness/inputs/checkpoint/splitter.hpp"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <functional>
#include <memory>

#include "harness/errors/error.hpp"

namespace attnbench {

namespace {

using Kind = SplitStep::Kind;

// The length of the character that the text begins with; 0 if it begins with none.
size_t character_length(std::string_view text) {
  if (static_cast<unsigned char>(text[0]) < 0x80) return 1;
  utf8proc_int32_t code = 0;
  const auto length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                       static_cast<utf8proc_ssize_t>(text.size()), &code);
  return length > 0 ? static_cast<size_t>(length) : 0;
}

// Runs of valid UTF-8 and runs of other bytes, in turn.
std::vector<Piece> stretches(std::string_view text) {
  std::vector<Piece> pieces;
  for (size_t at = 0; at < text.size();) {
    const size_t length = character_length(text.substr(at));
    const bool valid = length > 0;
    if (pieces.empty() || pieces.back().text != valid) pieces.push_back({at, at, valid});
    at += std::max<size_t>(length, 1);
    pieces.back().end = at;
  }
  return pieces;
}

// A pattern of the texts. Longer ones come first, because the first alternative that matches is taken.
std::string any_of(const std::map<std::string, Index>& tokens) {
  std::vector<std::string_view> texts;
  for (const auto& [text, id] : tokens) texts.push_back(text);
  std::stable_sort(texts.begin(), texts.end(), [](auto a, auto b) { return a.size() > b.size(); });
  std::string pattern;
  for (const auto text : texts) {
    if (!pattern.empty()) pattern += '|';
    for (const char c : text) {
      const bool plain = static_cast<unsigned char>(c) >= 0x80 || std::isalnum(static_cast<unsigned char>(c)) ||
                         std::iscntrl(static_cast<unsigned char>(c));
      if (!plain) pattern += '\\';
      pattern += c;
    }
  }
  return pattern;
}

std::string composed(std::string_view text) {
  if (std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; }))
    return std::string(text);
  utf8proc_uint8_t* result = nullptr;
  const auto length =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &result, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> held(result, &std::free);
  if (length < 0) throw std::runtime_error(fmt::format("utf8proc: {}", utf8proc_errmsg(length)));
  return {reinterpret_cast<const char*>(result), static_cast<size_t>(length)};
}

// Replaces the text of each piece that is one; the others keep theirs.
void rewrite(Pieces& all, const std::function<std::string(std::string_view)>& replacement) {
  std::string bytes;
  for (auto& piece : all.pieces) {
    const auto old = std::string_view(all.bytes).substr(piece.begin, piece.end - piece.begin);
    const size_t begin = bytes.size();
    if (piece.text) {
      bytes += replacement(old);
    } else {
      bytes += old;
    }
    piece.begin = begin;
    piece.end = bytes.size();
  }
  all.bytes = std::move(bytes);
}

void cut(Pieces& all, const SplitStep& step, const SplitPattern& pattern) {
  SplitPattern::Finder finder(pattern);
  std::vector<Piece> cut_pieces;
  for (const auto& piece : all.pieces) {
    if (!piece.text) {
      if (step.kind != Kind::drop_rest || piece.token >= 0) cut_pieces.push_back(piece);
      continue;
    }
    const auto text = std::string_view(all.bytes).substr(piece.begin, piece.end - piece.begin);
    size_t at = 0;
    const auto add_rest = [&](size_t until) {
      if (until > at && step.kind != Kind::drop_rest)
        cut_pieces.push_back({piece.begin + at, piece.begin + until, true});
    };
    while (at < text.size()) {
      const auto match = finder.next(text, at);
      if (!match) break;
      add_rest(match->begin);
      Piece found{piece.begin + match->begin, piece.begin + match->end, true};
      if (step.kind == Kind::find_tokens) {
        found.token = step.tokens.at(std::string(text.substr(match->begin, match->end - match->begin)));
        found.text = false;
      }
      if (step.kind != Kind::drop_matches) cut_pieces.push_back(found);
      at = match->end;
    }
    add_rest(text.size());
  }
  all.pieces = std::move(cut_pieces);
}

}  // namespace

Splitter::Splitter(const std::vector<SplitStep>& steps, const std::string& where) {
  for (const auto& step : steps) {
    steps_.push_back({step, {}});
    if (step.kind == Kind::compose || step.kind == Kind::prefix_space) continue;
    const bool finds = step.kind == Kind::find_tokens;
    steps_.back().pattern.emplace_back(finds ? any_of(step.tokens) : step.pattern, step.literal, where);
  }
}

Pieces Splitter::split(std::string_view text) const {
  Pieces all{std::string(text), stretches(text)};
  for (const auto& [step, pattern] : steps_) {
    if (step.kind == Kind::compose) {
      rewrite(all, composed);
    } else if (step.kind == Kind::prefix_space) {
      rewrite(all, [](std::string_view piece) {
        return piece.starts_with(' ') ? std::string(piece) : fmt::format(" {}", piece);
      });
    } else {
      cut(all, step, pattern[0]);
    }
  }
  return all;
}

}  // namespace attnbench
