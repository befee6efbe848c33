#include "harness/store/compare.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace attnbench {

namespace {

std::string in_words(const std::map<Place, std::string>& endings, const std::vector<Place>& of) {
  std::map<std::string, int> counts;
  for (const Place& place : of) ++counts[endings.at(place)];
  std::string words;
  for (const auto& [ending, count] : counts) words += fmt::format("{}{} {}", words.empty() ? "" : ", ", count, ending);
  return words;
}

// Empty if the replicates that both files have ended alike.
std::string other_endings(const MeasuredCell& a, const MeasuredCell& b) {
  std::vector<Place> common;
  bool alike = true;
  for (const auto& [place, ending] : a.endings)
    if (const auto other = b.endings.find(place); other != b.endings.end()) {
      common.push_back(place);
      alike &= other->second == ending;
    }
  return alike ? "" : fmt::format("{} in A, {} in B", in_words(a.endings, common), in_words(b.endings, common));
}

}  // namespace

ComparedFiles compare(const std::filesystem::path& path_a, const std::filesystem::path& path_b,
                      const std::string& metric, const WhichIsBetter& which) {
  const CellSelection selection{.name = name_of_cell, .metric = metric};
  const auto a = read_cells(path_a, selection), b = read_cells(path_b, selection);
  ComparedFiles comparison;
  struct Pair {
    const PlacedNumbers *a, *b;
  };
  std::vector<Pair> pairs;
  for (const auto& [name, cell] : a) {
    const auto other = b.find(name);
    if (other == b.end()) {
      comparison.only_a.push_back(name);
      continue;
    }
    if (const auto words = other_endings(cell, other->second); !words.empty())
      comparison.endings.push_back(name + ": " + words);
    for (const auto& [metric_name, of_a] : cell.metrics)
      if (const auto of_b = other->second.metrics.find(metric_name); of_b != other->second.metrics.end()) {
        comparison.metrics.push_back(
            {.cell = name, .metric = metric_name, .unit = of_a.unit, .better = which(metric_name, of_a.unit)});
        pairs.push_back({&of_a, &of_b->second});
      }
  }
  for (const auto& [name, cell] : b)
    if (!a.contains(name)) comparison.only_b.push_back(name);
  const double error_rate = comparison.error_rate / static_cast<double>(std::max<size_t>(1, pairs.size()));
  for (size_t i = 0; i < pairs.size(); ++i) {
    const auto& [of_a, of_b] = pairs[i];
    const bool timings = !of_a->samples.empty() && !of_b->samples.empty();
    (timings ? compare_sessions : compare_numbers)(*of_a, *of_b, error_rate, comparison.metrics[i]);
  }
  return comparison;
}

}  // namespace attnbench
