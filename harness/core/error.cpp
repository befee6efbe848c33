#include "harness/core/error.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace attnbench {

namespace {
size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> previous(b.size() + 1), current(b.size() + 1);
  std::iota(previous.begin(), previous.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (size_t j = 1; j <= b.size(); ++j)
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (a[i - 1] != b[j - 1])});
    std::swap(previous, current);
  }
  return previous[b.size()];
}
}  // namespace

std::string nearest_names(const std::string& given, std::span<const std::string> known) {
  if (known.empty()) return "; none are known here";
  constexpr size_t longest_compared = 64;  // a name that long is near to nothing, and the table above is quadratic
  std::vector<std::string> near;
  for (const auto& name : known) {
    const bool prefix = !given.empty() && (name.starts_with(given) || given.starts_with(name));
    const size_t allowed = std::max<size_t>(1, name.size() / 3);
    if (prefix || (given.size() <= longest_compared && edit_distance(given, name) <= allowed)) near.push_back(name);
  }
  if (!near.empty()) return fmt::format("; did you mean {}?", fmt::join(near, ", "));
  return fmt::format("; known: {}", fmt::join(known, ", "));
}

}  // namespace attnbench
