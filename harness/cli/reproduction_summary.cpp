#include "harness/cli/reproduction_summary.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "harness/cli/terminal.hpp"

namespace attnbench {

namespace {

using Result = BesideReference::Result;

// 23 lines of topics with their heading and two empty ones, three lines of counts, a list of 5 with a line below it,
// and another with a line above it as well, are 39 lines; one is left for the page.
constexpr size_t most_topics = 19, most_listed = 5;

// The first few of them.
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

size_t count_of(const Tally& tally, Result result) {
  const auto found = tally.compared.find(result);
  return found == tally.compared.end() ? 0 : found->second;
}

// One line about the verdicts that the reference has, and one about the others.
std::string comparison_of(const Tally& tally) {
  const auto count = [&](Result result) { return count_of(tally, result); };
  std::vector<std::string> parts;
  const auto part = [&](Result result, const std::string& words) {
    if (count(result) > 0) parts.push_back(fmt::format("{} {}", count(result), words));
  };
  part(Result::same, "the same");
  part(Result::undecided, "OPEN in one of the two");
  part(Result::different,
       tally.other_size.empty()
           ? "different"
           : fmt::format("different (the reference was made with --{}, which may be why)", tally.other_size));
  std::string text;
  if (!parts.empty()) text = fmt::format("compared with the reference: {}\n", fmt::join(parts, ", "));
  if (!tally.no_reference.empty()) text = fmt::format("not compared with the reference: {}\n", tally.no_reference);
  if (const size_t others = count(Result::as_expected) + count(Result::unexpected); others > 0) {
    text += tally.no_reference.empty()
                ? fmt::format("not in the reference: {} verdict{}, ", others, others == 1 ? "" : "s")
                : "";
    text += fmt::format("{} not as expected\n", count(Result::unexpected));
  }
  return text;
}

// "2 failed, 1 had failed before; the first: performer crashed: signal 11"
std::string line_of_not_done(const RunSummary& ran) {
  std::vector<std::string> parts;
  const auto part = [&](size_t count, const char* words) {
    if (count > 0) parts.push_back(fmt::format("{} {}", count, words));
  };
  part(ran.failed, "failed");
  part(ran.failed_before, "had failed before");
  part(ran.not_done - ran.failed, "skipped or not finite");
  if (parts.empty()) return "";
  return fmt::format("{}{}", fmt::join(parts, ", "), ran.not_done ? "; the first: " + ran.first_reason : "");
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
  if (const std::string line = line_of_not_done(ran); !line.empty()) not_done.push_back(done.recipe + ": " + line);
  failed += ran.failed + ran.failed_before > 0;
  for (const Verdict& verdict : done.verdicts) {
    ++rulings[verdict.finding.ruling];
    ++topics[topic].rulings[verdict.finding.ruling];
    if (!means_anything(size)) continue;
    const auto [result, there] = attnbench::compared(done.recipe, verdict, reference);
    ++compared[result];
    const auto line = [&](const std::string& other) {
      return fmt::format("{}: {}, {}: {}", done.recipe, to_string(verdict.finding.ruling), other,
                         verdict.statement.text);
    };
    if (result == Result::different) {
      differences.push_back(line("in the reference " + to_string(there->ruling)));
      if (there->size != to_string(size)) other_size = there->size;
    }
    if (result == Result::unexpected)
      contradictions.push_back(line("expected " + to_string(verdict.statement.expected)));
  }
}

std::string summary_of(const Tally& tally, size_t width) {
  size_t verdicts = 0;
  for (const auto& [ruling, count] : tally.rulings) verdicts += count;
  std::string text = tally.topics.size() > 1 ? table_of_topics(tally) : "";
  if (verdicts == 0) {
    text += "no statements to judge\n";
  } else {
    text += fmt::format("{} verdict{} in {:.0f} s: {}", verdicts, verdicts == 1 ? "" : "s", tally.seconds,
                        words_of(tally.rulings));
    text += means_anything(tally.size) ? "\n" + comparison_of(tally) : "; at these sizes they have no meaning\n";
  }
  std::vector<std::string> listed = tally.differences;
  listed.insert(listed.end(), tally.contradictions.begin(), tally.contradictions.end());
  text += lines_of(listed, width);
  if (!tally.not_done.empty())
    text += fmt::format("{} recipe{} cells that are not done{}\n", tally.not_done.size(),
                        tally.not_done.size() == 1 ? " has" : "s have",
                        tally.failed ? fmt::format("; cells of {} failed: --retry runs them again", tally.failed) : "");
  return text + lines_of(tally.not_done, width);
}

int exit_code(const Tally& tally, bool strict) {
  return tally.failed > 0 || (strict && !(tally.differences.empty() && tally.contradictions.empty())) ? 1 : 0;
}

}  // namespace attnbench
