#include "harness/core/bibliography.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <iterator>
#include <regex>

#include "harness/core/file_bytes.hpp"
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
    size_t begin = 0;
    for (bool publication = false; !publication;) {
      key_.clear();
      place_ = text_.find('@', place_);
      if (place_ == std::string_view::npos) return false;
      begin = place_++;
      const std::string kind = name();
      publication = kind != "comment" && kind != "string" && kind != "preamble";
      if (!publication) skip_space(), braced();
    }
    expect('{');
    entry.key = trimmed(until(",}"));
    if (entry.key.empty() || entry.key.find_first_of(" \t\r\n{") != std::string::npos) fail("no key");
    key_ = entry.key;
    while (take(',') && (skip_space(), peek() != '}')) {
      const std::string field = name();
      expect('=');
      entry.fields[field] = value();
    }
    expect('}');
    entry.text = text_.substr(begin, place_ - begin);
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

  // A name in lower case: of a field, or of a kind of publication.
  std::string name() {
    std::string all;
    for (skip_space(); std::isalnum(static_cast<unsigned char>(peek())) || peek() == '-' || peek() == '_'; ++place_)
      all += static_cast<char>(std::tolower(static_cast<unsigned char>(peek())));
    if (all.empty()) fail("no name where one is due");
    return all;
  }

  std::string value() {
    std::string all;
    do {
      skip_space();
      all += peek() == '{' ? braced() : peek() == '"' ? in_quotation_marks() : word();
    } while (take('#'));
    return all;
  }

  // A number, or a name that @string defines.
  std::string word() {
    const std::string all = trimmed(until(",}#"));
    if (all.empty() || all.find_first_of(" \t\r\n{\"") != std::string::npos) fail("no value where one is due");
    return all;
  }

  std::string in_quotation_marks() {
    expect('"');
    const size_t begin = place_;
    for (int depth = 0; depth > 0 || peek() != '"'; ++place_) {
      if (place_ == text_.size()) fail("a quotation mark that nothing closes");
      depth += (peek() == '{') - (peek() == '}');
    }
    return std::string(text_.substr(begin, place_++ - begin));
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

std::string read(const std::filesystem::path& file) {
  if (auto text = file_bytes(file)) return std::move(*text);
  throw Misuse(fmt::format("{}: it cannot be read; expected a BibTeX file", file.string()));
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

bool contains_word(const std::string& text, const std::string& word) {
  for (size_t place = text.find(word); place != text.npos; place = text.find(word, place + 1)) {
    const size_t end = place + word.size();
    if ((place == 0 || !is_word(text[place - 1])) && (end == text.size() || !is_word(text[end]))) return true;
  }
  return false;
}

}  // namespace

std::vector<BibliographyEntry> parse_bibliography(std::string_view text, const std::string& file) {
  Reader reader(text, file);
  std::vector<BibliographyEntry> entries;
  for (BibliographyEntry entry; reader.next(entry); entry = {}) entries.push_back(entry);
  return entries;
}

Bibliography bibliography() {
  namespace fs = std::filesystem;
  const fs::path& root = source_tree();
  Bibliography all;
  for (const char* part : {"approximations", "experiments", "harness"}) {
    if (!fs::exists(root / part))
      throw Misuse(fmt::format("the folder {} is not there; expected the source tree that this was built from",
                               (root / part).string()));
    for (const auto& found : fs::recursive_directory_iterator(root / part)) {
      if (found.path().filename() != "references.bib") continue;
      for (const auto& entry : parse_bibliography(read(found.path()), found.path().string()))
        if (!all.emplace(entry.key, entry).second)
          throw Misuse(fmt::format("{}: the key '{}' exists already; expected each once below {}: remove one",
                                   found.path().string(), entry.key, root.string()));
    }
  }
  return all;
}

void add_bibliography(Bibliography& all, const std::filesystem::path& file) {
  for (const auto& entry : parse_bibliography(read(file), file.string())) {
    all.emplace(entry.key, entry);
    for (const char* field : {"eprint", "doi"})
      if (const auto name = entry.fields.find(field); name != entry.fields.end()) all.emplace(name->second, entry);
  }
}

std::set<std::string> cited_keys(const std::string& reference) {
  static const std::regex arxiv(R"(arXiv:([0-9]{4}\.[0-9]{4,5}|[a-z-]+/[0-9]{7}))");
  static const std::regex post(R"(kexue\.fm(?:/archives/| )([0-9]+))");
  static const std::regex doi(R"((?:doi:|doi\.org/)(10\.[0-9]{4,9}/[^\s,;]*[^\s,;.)]))");
  std::set<std::string> keys;
  const auto each = [&](const std::regex& pattern, const std::string& prefix) {
    for (std::sregex_iterator found(reference.begin(), reference.end(), pattern), end; found != end; ++found)
      keys.insert(prefix + (*found)[1].str());
  };
  each(arxiv, "");
  each(post, "kexue.fm/archives/");
  each(doi, "");
  return keys;
}

std::set<std::string> cited_keys(const std::string& reference, const Bibliography& known) {
  std::set<std::string> keys = cited_keys(reference);
  for (const auto& [name, entry] : known)
    if (name == entry.key && contains_word(reference, name)) keys.insert(name);
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
