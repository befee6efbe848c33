#include "harness/cli/reproduction_summary.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "harness/cli/terminal.hpp"

namespace attnbench {

namespace {

// 25 lines of topics with their heading and two empty ones, and two lists of 5 with a line above and one below each,
// are 39 lines; one is left for the page.
constexpr size_t most_topics = 21, most_listed = 5;

// At most `most` of them.
std::string lines_of(const std::vector<std::string>& lines, size_t width) {
  std::string text;
  for (size_t i = 0; i < std::min(most_listed, lines.size()); ++i) text += "  " + wrapped(lines[i], width, 4, 2) + "\n";
  return text + (lines.size() > most_listed ? fmt::format("  and {} more\n", lines.size() - most_listed) : "");
}

std::string table_of_topics(const Tally& tally) {
  size_t width = std::string("measured by").size();
  for (const auto& [topic, counts] : tally.topics) width = std::max(width, topic.size());
  std::string text = fmt::format("\n{:<{}}  recipes", "measured by", width);
  for (const auto& [ruling, count] : tally.rulings) text += "  " + to_string(ruling);
  text += "\n";
  size_t printed = 0;
  for (const auto& [topic, counts] : tally.topics) {
    if (++printed > most_topics) break;
    std::string line = fmt::format("{:<{}}  {:>7}", topic, width, counts.recipes);
    for (const auto& [ruling, all] : tally.rulings) {
      const auto here = counts.rulings.find(ruling);
      const std::string number = here == counts.rulings.end() ? "" : std::to_string(here->second);
      line += fmt::format("  {:>{}}", number, to_string(ruling).size());
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  if (tally.topics.size() > most_topics) text += fmt::format("and {} more\n", tally.topics.size() - most_topics);
  return text + "\n";
}

}  // namespace

bool means_anything(RecipeSize size) { return size != RecipeSize::smoke; }

std::string words_of(const Rulings& rulings) {
  std::vector<std::string> words;
  for (const auto& [ruling, count] : rulings) words.push_back(fmt::format("{} {}", count, to_string(ruling)));
  return fmt::format("{}", fmt::join(words, ", "));
}

void Tally::add(const Reproduction& done, const std::string& topic, const RunSummary& ran) {
  seconds += done.seconds;
  ++topics[topic].recipes;
  if (ran.not_done > 0)
    not_done.push_back(fmt::format("{}: {} not done, the first: {}", done.recipe, ran.not_done, ran.first_reason));
  for (const Verdict& verdict : done.verdicts) {
    ++rulings[verdict.finding.ruling];
    ++topics[topic].rulings[verdict.finding.ruling];
    if (means_anything(size) && contradicts_expectation(verdict))
      contradictions.push_back(fmt::format("{}: {}", done.recipe, verdict.statement.text));
  }
}

std::string summary_of(const Tally& tally, size_t width) {
  size_t verdicts = 0;
  for (const auto& [ruling, count] : tally.rulings) verdicts += count;
  std::string text = tally.topics.size() > 1 ? table_of_topics(tally) : "";
  text += fmt::format("{} verdicts in {:.0f} s: {}; {}\n", verdicts, tally.seconds, words_of(tally.rulings),
                      means_anything(tally.size) ? fmt::format("{} not as expected", tally.contradictions.size())
                                                 : "at these sizes they have no meaning");
  text += lines_of(tally.contradictions, width);
  if (!tally.not_done.empty()) text += fmt::format("{} recipes have cells that are not done\n", tally.not_done.size());
  return text + lines_of(tally.not_done, width);
}

}  // namespace attnbench
