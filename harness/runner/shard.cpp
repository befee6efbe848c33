#include "harness/runner/shard.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>

#include "harness/runner/cost_model.hpp"
#include "harness/timing/session.hpp"

namespace attnbench {

namespace {

// Whole microseconds: sums of integers are the same on every machine. Sums of doubles are not once a compiler fuses
// multiplies and adds.
std::int64_t weight_of(const Cell& cell) {
  return 1 + static_cast<std::int64_t>(std::min(1e11, 1e6 * seconds_by_model(cell, nominal_rates)));
}

constexpr auto whole = std::numeric_limits<std::int64_t>::max();

// Units that stay together.
struct Part {
  std::int64_t weight = 0;
  std::vector<size_t> units;
};

// Splits the units of one group (each replicate of its cells) into parts of at most weight `most`.
void add_parts(const std::vector<std::int64_t>& weights, const std::vector<size_t>& group, size_t replicates,
               std::int64_t most, std::vector<Part>& parts) {
  for (size_t replicate = 0; replicate < replicates; ++replicate) {
    parts.emplace_back();
    for (const size_t cell : group) {
      if (!parts.back().units.empty() && parts.back().weight + weights[cell] > most) parts.emplace_back();
      parts.back().units.push_back(cell * replicates + replicate);
      parts.back().weight += weights[cell];
    }
  }
}

}  // namespace

Shard parse_shard(const std::string& text) {
  Shard shard;
  const size_t slash = text.find('/');
  const auto number = [&](size_t begin, size_t end, Index& value) {
    const auto read = std::from_chars(text.data() + begin, text.data() + end, value);
    return read.ec == std::errc() && read.ptr == text.data() + end;
  };
  if (slash == std::string::npos || !number(0, slash, shard.index) || !number(slash + 1, text.size(), shard.count) ||
      shard.index < 1 || shard.index > shard.count || shard.count > 1'000'000)
    throw Misuse(
        fmt::format("--shard {}: expected i/k with 1 <= i <= k <= 10^6, such as 1/8 for the first of eight", text));
  return shard;
}

std::vector<bool> units_of_shard(const std::vector<Cell>& cells, Index replicates, Shard shard) {
  std::vector<bool> mine(cells.size() * static_cast<size_t>(replicates), shard.count == 1);
  if (shard.count == 1 || cells.empty()) return mine;
  // A vector in order of appearance, because a map by text would sort by the spelling of numbers.
  std::vector<std::vector<size_t>> groups;
  std::map<std::string, size_t> places;
  std::vector<std::int64_t> weights;
  std::int64_t total = 0;
  const bool timing = cells.front().timing();
  for (size_t cell = 0; cell < cells.size(); ++cell) {
    const std::string together =
        timing ? session_key(cells[cell]) : cells[cell].experiment.spec() + "\n" + cells[cell].input_key();
    const auto [place, fresh] = places.try_emplace(together, groups.size());
    if (fresh) groups.emplace_back();
    groups[place->second].push_back(cell);
    weights.push_back(weight_of(cells[cell]));
    total += weights.back() * replicates;
  }
  std::vector<Part> parts;
  for (const auto& group : groups)
    add_parts(weights, group, static_cast<size_t>(replicates), timing ? whole : total / (4 * shard.count), parts);
  std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.weight > b.weight; });
  using Load = std::pair<std::int64_t, Index>;  // least first, ties to the first shard
  std::vector<Load> loads;
  for (Index s = 1; s <= shard.count; ++s) loads.emplace_back(0, s);
  for (const Part& part : parts) {
    std::pop_heap(loads.begin(), loads.end(), std::greater<>());
    auto& [load, index] = loads.back();
    load += part.weight;
    if (index == shard.index)
      for (const size_t unit : part.units) mine[unit] = true;
    std::push_heap(loads.begin(), loads.end(), std::greater<>());
  }
  return mine;
}

}  // namespace attnbench
