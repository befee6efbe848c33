// The last lines of attnbench reproduce: what the recipes came to.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/runner/reproduce.hpp"
#include "harness/store/reference.hpp"

namespace attnbench {

// Whether verdicts of that size mean anything: the smallest only shows that everything runs.
bool means_anything(RecipeSize size);

using Rulings = std::map<Ruling, size_t>;
// "3 HOLDS, 1 DEPENDS"
std::string words_of(const Rulings& rulings);

struct Tally {
  struct Topic {
    size_t recipes = 0;
    Rulings rulings;
  };
  RecipeSize size;
  Reference reference = {};       // empty: outcomes are compared with what authors expected alone
  std::string no_reference = {};  // why it is empty
  Rulings rulings = {};
  std::map<std::string, Topic> topics = {};
  std::map<BesideReference::Result, size_t> compared = {};
  std::vector<std::string> differences = {};     // a line for each verdict that differs from the reference
  std::string other_size = {};                   // of a verdict of the reference that differs, if it is not `size`
  std::vector<std::string> contradictions = {};  // a line for each that is neither in the reference nor as expected
  std::vector<std::string> not_done = {};        // a line for each recipe with cells that are not done
  size_t failed = 0;                             // recipes with cells that failed: a retry would run these again
  double seconds = 0;

  // topic: under which the summary counts the recipe.
  void add(const Reproduction& done, const std::string& topic, const RunSummary& ran);
};

// However many recipes ran, a screen of a log: with the line about the page that follows, at most that many lines.
constexpr size_t most_summary_lines = 40;

// A table of the topics, the number of verdicts, how they compare with the reference, and the recipes with cells that
// are not done. width: of a line of text.
std::string summary_of(const Tally& tally, size_t width);

// 1 if cells failed. strict: also if a verdict differs from the reference or, where the reference lacks its statement,
// from what the author expected. Otherwise 0.
int exit_code(const Tally& tally, bool strict);

}  // namespace attnbench
