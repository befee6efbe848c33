// BibTeX entries for the references of entries. They are in files references.bib beside the sources. Each has the key
// that references use: its number at arXiv, or the address of a post (kexue.fm/archives/8338).
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/parameters.hpp"

namespace attnbench {

struct BibliographyEntry {
  std::string key;
  std::map<std::string, std::string> fields;
  std::string text;  // verbatim from the file
};

// The entries of a BibTeX file, whose fields must all be in braces. Throws Misuse for a malformed entry, or one without
// author, title or year.
std::vector<BibliographyEntry> parse_bibliography(std::string_view text, const std::string& file);

// All entries of the references.bib files in the source tree, by key. Throws Misuse for a duplicate key.
std::map<std::string, BibliographyEntry> bibliography();

// The keys that a reference names, such as "2009.14794" for "Choromanski et al. 2020, arXiv:2009.14794, Lemma 1".
std::set<std::string> cited_keys(const std::string& reference);

// The references of an entry of that catalogue and of every entry that its parameters name.
std::set<std::string> references_of(const std::string& plural, const Params& params);

}  // namespace attnbench
