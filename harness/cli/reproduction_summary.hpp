// The last lines of attnbench reproduce: what the recipes came to.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/runner/reproduce.hpp"

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
  Rulings rulings = {};
  std::map<std::string, Topic> topics = {};
  std::vector<std::string> contradictions = {}, not_done = {};  // a line for each
  double seconds = 0;

  // topic: under which the summary counts the recipe.
  void add(const Reproduction& done, const std::string& topic, const RunSummary& ran);
};

// However many recipes ran, a screen of a log: with the line about the page that follows, at most that many lines.
constexpr size_t most_summary_lines = 40;

// A table of the topics, the number of verdicts, those not as expected, and the recipes with cells that are not done.
// width: of a line of text.
std::string summary_of(const Tally& tally, size_t width);

}  // namespace attnbench
