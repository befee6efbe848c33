#include "harness/errors/error.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace attnbench {

namespace {
// The number of edits that turn a into b. An insertion, a deletion, a replacement or a swap of neighbours counts as
// one.
size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> edits(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) edits[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) edits[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i)
    for (size_t j = 1; j <= b.size(); ++j) {
      edits[i][j] = std::min({edits[i - 1][j] + 1, edits[i][j - 1] + 1, edits[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        edits[i][j] = std::min(edits[i][j], edits[i - 2][j - 2] + 1);
    }
  return edits[a.size()][b.size()];
}
}  // namespace

std::string nearest_names(const std::string& given, std::span<const std::string> known,
                          std::span<const std::string> others) {
  if (known.empty()) return "; none are known here";
  constexpr size_t longest_compared = 64;  // a longer name resembles none, and the table above is quadratic
  constexpr size_t most_listed = 60;       // all methods; the names of all kinds together are more
  std::vector<std::string> near;
  for (const auto names : {known, others})
    for (const auto& name : names) {
      const bool prefix = !given.empty() && (name.starts_with(given) || given.starts_with(name));
      const size_t allowed = std::max<size_t>(1, name.size() / 3);
      if (prefix || (given.size() <= longest_compared && edit_distance(given, name) <= allowed)) near.push_back(name);
    }
  if (!near.empty()) return fmt::format("; did you mean {}?", fmt::join(near, ", "));
  if (known.size() > most_listed) return fmt::format("; attnbench list prints the {} names", known.size());
  return fmt::format("; known: {}", fmt::join(known, ", "));
}

}  // namespace attnbench
