#include "harness/core/bibliography.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>

#include "harness/core/installed.hpp"
#include "harness/core/registry.hpp"

namespace attnbench {

namespace {

// Reads one file from beginning to end.
class Reader {
 public:
  Reader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  // Reads from "@" to the brace that closes the entry; returns false at the end. Text between entries is comment.
  bool next(BibliographyEntry& entry) {
    place_ = text_.find('@', place_);
    if (place_ == std::string_view::npos) return false;
    const size_t begin = place_++;
    name();  // the kind of publication
    expect('{');
    entry.key = trimmed(until(",}"));
    if (entry.key.empty() || entry.key.find_first_of(" \t\r\n{") != std::string::npos) fail("no key");
    key_ = entry.key;
    while (take(',') && (skip_space(), peek() != '}')) {
      const std::string field = name();
      expect('=');
      entry.fields[field] = braced();
    }
    expect('}');
    entry.text = text_.substr(begin, place_ - begin);
    for (const char* field : {"author", "title", "year"})
      if (entry.fields[field].empty()) fail(fmt::format("no {}", field));
    return true;
  }

 private:
  char peek() const { return place_ < text_.size() ? text_[place_] : '\0'; }

  void skip_space() { place_ = std::min(text_.find_first_not_of(" \t\r\n", place_), text_.size()); }

  bool take(char wanted) {
    skip_space();
    if (peek() != wanted) return false;
    ++place_;
    return true;
  }

  void expect(char wanted) {
    if (!take(wanted)) fail(fmt::format("no '{}' where one is due", wanted));
  }

  std::string until(const char* ends) {
    const size_t begin = place_;
    place_ = std::min(text_.find_first_of(ends, place_), text_.size());
    return std::string(text_.substr(begin, place_ - begin));
  }

  static std::string trimmed(const std::string& text) {
    const size_t begin = text.find_first_not_of(" \t\r\n");
    return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
  }

  std::string name() {
    skip_space();
    const size_t begin = place_;
    while (std::isalpha(static_cast<unsigned char>(peek()))) ++place_;
    if (place_ == begin) fail("no name where one is due");
    return std::string(text_.substr(begin, place_ - begin));
  }

  // The value inside a pair of braces, without that pair. Inner braces are part of it.
  std::string braced() {
    expect('{');
    const size_t begin = place_;
    for (int depth = 1; depth > 0; ++place_) {
      if (place_ == text_.size()) fail("a brace that nothing closes");
      depth += (peek() == '{') - (peek() == '}');
    }
    return std::string(text_.substr(begin, place_ - 1 - begin));
  }

  [[noreturn]] void fail(const std::string& what) const {
    const auto line = 1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(place_), '\n');
    throw Misuse(
        fmt::format("{}: line {}{}: {}; expected @misc{{KEY, author = {{...}}, title = {{...}}, year = {{...}}}}",
                    file_, line, key_.empty() ? "" : fmt::format(" (after the key '{}')", key_), what));
  }

  std::string_view text_;
  const std::string& file_;
  size_t place_ = 0;
  std::string key_ = {};
};

}  // namespace

std::vector<BibliographyEntry> parse_bibliography(std::string_view text, const std::string& file) {
  Reader reader(text, file);
  std::vector<BibliographyEntry> entries;
  for (BibliographyEntry entry; reader.next(entry); entry = {}) entries.push_back(entry);
  return entries;
}

std::map<std::string, BibliographyEntry> bibliography() {
  namespace fs = std::filesystem;
  const fs::path root = source_tree();
  std::map<std::string, BibliographyEntry> all;
  for (const char* part : {"approximations", "experiments", "harness"}) {
    if (!fs::exists(root / part))
      throw Misuse(fmt::format("the folder {} is not there; expected the source tree that this was built from",
                               (root / part).string()));
    for (const auto& found : fs::recursive_directory_iterator(root / part)) {
      if (found.path().filename() != "references.bib") continue;
      std::ifstream stream(found.path(), std::ios::binary);
      const std::string text{std::istreambuf_iterator<char>(stream), {}};
      for (const auto& entry : parse_bibliography(text, found.path().string()))
        if (!all.emplace(entry.key, entry).second)
          throw Misuse(fmt::format("{}: the key '{}' exists already; expected each once below {}: remove one",
                                   found.path().string(), entry.key, root.string()));
    }
  }
  return all;
}

std::set<std::string> cited_keys(const std::string& reference) {
  static const std::regex arxiv(R"(arXiv:([0-9]{4}\.[0-9]{4,5}|[a-z-]+/[0-9]{7}))");
  static const std::regex post(R"(kexue\.fm(?:/archives/| )([0-9]+))");
  std::set<std::string> keys;
  const auto each = [&](const std::regex& pattern, const std::string& prefix) {
    for (std::sregex_iterator found(reference.begin(), reference.end(), pattern), end; found != end; ++found)
      keys.insert(prefix + (*found)[1].str());
  };
  each(arxiv, "");
  each(post, "kexue.fm/archives/");
  return keys;
}

std::set<std::string> references_of(const std::string& plural, const Params& params) {
  std::set<std::string> references{catalogue(plural).description(params.name()).reference};
  for (const auto& p : params.declared()) {
    if (p.kind == Parameter::Kind::entry)
      references.insert(catalogue(p.catalogue).description(params.text(p.name)).reference);
    if (p.kind != Parameter::Kind::specs) continue;
    for (const Params& inner : params.all_nested(p.name)) references.merge(references_of(p.catalogue, inner));
  }
  return references;
}

}  // namespace attnbench
