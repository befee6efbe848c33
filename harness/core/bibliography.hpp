// BibTeX entries for the references of entries. They are in files references.bib beside the sources, and in a file
// mine.bib beside a plugin mine.so or mine.py. A reference names an entry by its number at arXiv (the key or the field
// eprint), its DOI, its key, or the address of a post (kexue.fm/archives/8338).
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/parameters.hpp"

namespace attnbench {

struct BibliographyEntry {
  std::string key;
  std::map<std::string, std::string> fields;  // names in lower case; values without their braces or quotation marks
  std::string text;                           // verbatim from the file
};

// The entries of a BibTeX file, without @comment, @string and @preamble. Values are in braces, in quotation marks or
// words, and # joins them. Throws Misuse with the line for a malformed entry.
std::vector<BibliographyEntry> parse_bibliography(std::string_view text, const std::string& file);

// Entries by everything that a reference may call them: a few of these names may share one entry.
using Bibliography = std::map<std::string, BibliographyEntry>;

// All entries of the references.bib files in the source tree. Throws Misuse for a duplicate key.
Bibliography bibliography();
// Adds the entries of another file. Where a name is known already, the known entry stays. Throws Misuse for a file that
// cannot be read.
void add_bibliography(Bibliography& all, const std::filesystem::path& file);

// The names that a reference contains: "2009.14794" for "Choromanski et al. 2020, arXiv:2009.14794, Lemma 1",
// "10.1000/182" for "doi:10.1000/182".
std::set<std::string> cited_keys(const std::string& reference);
// The same, and the keys of `known` that it contains as whole words.
std::set<std::string> cited_keys(const std::string& reference, const Bibliography& known);

// The references of an entry of that catalogue and of every entry that its parameters name.
std::set<std::string> references_of(const std::string& plural, const Params& params);

}  // namespace attnbench
