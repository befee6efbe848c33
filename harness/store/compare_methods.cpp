#include "harness/store/compare_methods.hpp"

#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/Statement.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

#include "harness/store/database.hpp"

namespace attnbench {

namespace {

using Outcome = ComparedMetric::Outcome;

constexpr char between = '\n';  // separates method and problem

// A problem that both methods were measured on.
struct Shared {
  std::string problem;
  const MeasuredCell *a, *b;
};

CellSelection selection(const std::string& a, const std::string& b, const std::string& metric) {
  return {.name = fmt::format("method || char(10) || {} || iif(machine <> '', ' on ' || machine, '')", name_of_problem),
          .metric = metric,
          .memory = true,
          .methods = {a, b}};
}

// n=128 before n=1024: runs of digits, with their decimals, are numbers.
bool before(const std::string& a, const std::string& b) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  for (size_t i = 0, k = 0; i < a.size() && k < b.size();) {
    if (is_digit(a[i]) && is_digit(b[k])) {
      char *end_of_x = nullptr, *end_of_y = nullptr;
      const double x = std::strtod(&a[i], &end_of_x), y = std::strtod(&b[k], &end_of_y);
      if (x != y) return x < y;
      i = static_cast<size_t>(end_of_x - a.data());
      k = static_cast<size_t>(end_of_y - b.data());
    } else if (a[i] != b[k]) {
      return a[i] < b[k];
    } else {
      ++i;
      ++k;
    }
  }
  return a.size() < b.size();
}

std::vector<Shared> shared_problems(const std::map<std::string, MeasuredCell>& cells, const std::string& a,
                                    const std::string& b) {
  std::vector<Shared> all;
  for (const auto& [name, cell] : cells) {
    if (!name.starts_with(a + between)) continue;
    const std::string problem = name.substr(a.size() + 1);
    if (const auto other = cells.find(b + between + problem); other != cells.end())
      all.push_back({problem, &cell, &other->second});
  }
  std::ranges::stable_sort(all, before, &Shared::problem);
  return all;
}

// The command that would measure both methods on a problem that one of them has, or on any problem if neither has one.
std::string missing_run(SQLite::Database& database, const std::string& path, const std::string& a,
                        const std::string& b) {
  SQLite::Statement select(database,
                           "SELECT experiment, input, n, d, causal FROM cell "
                           "ORDER BY method NOT IN (?1, ?2), id LIMIT 1");
  select.bind(1, a);
  select.bind(2, b);
  const std::string methods = fmt::format("--method '{}' --method '{}'", a, b), results = " --results " + path;
  if (!select.executeStep()) return fmt::format("attnbench run attention-error {}{}", methods, results);
  return fmt::format("attnbench run '{}' {} --input '{}' -n {} -d {} {}{}", select.getColumn(0).getString(), methods,
                     select.getColumn(1).getString(), select.getColumn(2).getInt64(), select.getColumn(3).getInt64(),
                     select.getColumn(4).getInt() != 0 ? "--causal" : "--bidirectional", results);
}

[[noreturn]] void refuse_nothing_in_common(const std::filesystem::path& path, const std::string& a,
                                           const std::string& b) {
  constexpr size_t most = 30;
  SQLite::Database database = open_for_reading(path);
  std::vector<std::string> there;
  SQLite::Statement select(database, "SELECT DISTINCT method FROM cell ORDER BY method");
  while (select.executeStep()) there.push_back(select.getColumn(0).getString());
  const auto is_there = [&](const std::string& method) { return std::ranges::find(there, method) != there.end(); };
  const std::string run = missing_run(database, path.string(), a, b);
  const std::string mend = fmt::format("; this run would make them: {}", run);
  if (is_there(a) && is_there(b))
    throw Misuse(fmt::format("{} has {} and {}, but of no problem both{}", path.string(), a, b, mend));
  const std::string absent = is_there(a)   ? fmt::format("no {}", b)
                             : is_there(b) ? fmt::format("no {}", a)
                                           : fmt::format("neither {} nor {}", a, b);
  const size_t more = there.size() > most ? there.size() - most : 0;
  there.resize(there.size() - more);
  throw Misuse(fmt::format("{} has {}; its methods: {}{}{}", path.string(), absent,
                           there.empty() ? "none" : fmt::format("{}", fmt::join(there, ", ")),
                           more > 0 ? fmt::format(" and {} more", more) : "", mend));
}

// Whether both took turns in the same blocks: they are then paired with the same turns of softmax.
bool took_turns(const MeasuredCell& a, const MeasuredCell& b) {
  for (const char* needed : {"seconds", "speedup"})
    if (!a.metrics.contains(needed) || !b.metrics.contains(needed)) return false;
  const auto exact = [](const MeasuredCell& cell) {
    std::map<Place, std::vector<double>> turns = cell.metrics.at("speedup").samples;
    for (auto& [place, of_place] : turns) {
      const auto seconds = cell.metrics.at("seconds").samples.find(place);
      if (seconds == cell.metrics.at("seconds").samples.end() || seconds->second.size() != of_place.size())
        return std::map<Place, std::vector<double>>();
      for (size_t i = 0; i < of_place.size(); ++i) of_place[i] *= seconds->second[i];
    }
    return turns;
  };
  const auto near = [](double x, double y) { return std::abs(x - y) <= 1e-9 * std::max(x, y); };
  const auto of_a = exact(a), of_b = exact(b);
  return !of_a.empty() && std::ranges::equal(of_a, of_b, [&](const auto& x, const auto& y) {
    return x.first == y.first && std::ranges::equal(x.second, y.second, near);
  });
}

void compare_one(const PlacedNumbers& a, const PlacedNumbers& b, bool blocks, double error_rate, ComparedMetric& to) {
  if (a.samples.empty() || b.samples.empty())
    compare_numbers(a, b, error_rate, to);
  else
    (blocks ? compare_blocks : compare_sessions)(a, b, error_rate, to);
  // Bytes and FLOPs are counted, without scatter: one number of each decides.
  const bool counted = to.unit == "B" || to.unit == "FLOP";
  if (counted && to.outcome == Outcome::ambiguous && a.numbers.size() == 1 && b.numbers.size() == 1 && to.change != 0)
    to.outcome = to.change < 0 ? Outcome::better : Outcome::worse;
  // For two methods, an interval that contains no difference says nothing, unless all of it is within rounding.
  const double unchanged = to.timing ? 1 : 0, scale = to.timing ? 1 : std::max(std::abs(to.a), std::abs(to.b));
  const double most = std::max(std::abs(to.interval.low - unchanged), std::abs(to.interval.high - unchanged));
  if (to.outcome == Outcome::same && !to.equal && most > 1e-12 * scale) to.outcome = Outcome::ambiguous;
}

std::vector<std::string> endings_of(const std::vector<Shared>& all) {
  const auto words = [](const MeasuredCell& cell) {
    std::map<std::string, int> counts;
    for (const auto& [place, ending] : cell.endings) ++counts[ending];
    std::vector<std::string> parts;
    for (const auto& [ending, count] : counts) parts.push_back(fmt::format("{} {}", count, ending));
    return fmt::format("{}", fmt::join(parts, ", "));
  };
  const auto not_done = [](const MeasuredCell& cell) {
    return std::ranges::any_of(cell.endings, [](const auto& ended) { return ended.second != "done"; });
  };
  std::vector<std::string> lines;
  for (const auto& [problem, a, b] : all)
    if (not_done(*a) || not_done(*b))
      lines.push_back(fmt::format("{}: {} of A, {} of B", problem, words(*a), words(*b)));
  return lines;
}

}  // namespace

ComparedMethods compare_methods(const std::filesystem::path& path, const std::string& a, const std::string& b,
                                const std::string& metric, const WhichIsBetter& which) {
  const auto cells = read_cells(path, selection(a, b, metric));
  // Their turns tell which cells are paired.
  const auto whole = metric.empty() ? cells : read_cells(path, selection(a, b, ""));
  const auto all = shared_problems(cells, a, b), with_turns = shared_problems(whole, a, b);
  if (all.empty()) explained(path, [&] { refuse_nothing_in_common(path, a, b); });
  ComparedMethods comparison{.endings = endings_of(all)};
  struct Pair {
    const PlacedNumbers *a, *b;
    bool blocks;
  };
  std::vector<std::pair<ComparedMetric, Pair>> pairs;
  for (size_t i = 0; i < all.size(); ++i) {
    const auto& [problem, of_a, of_b] = all[i];
    const bool blocks = took_turns(*with_turns[i].a, *with_turns[i].b);
    for (const auto& [name, numbers] : of_a->metrics)
      if (const auto other = of_b->metrics.find(name); other != of_b->metrics.end())
        pairs.push_back({{.cell = problem, .metric = name, .unit = numbers.unit, .better = which(name, numbers.unit)},
                         {&numbers, &other->second, blocks}});
  }
  if (pairs.empty() && !metric.empty()) {
    std::set<std::string> known;
    for (const ComparedMetric& one : compare_methods(path, a, b, "", which).metrics) known.insert(one.metric);
    throw Misuse(fmt::format("--metric {}: {} does not have it for both {} and {}; it has {}", metric, path.string(), a,
                             b, known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", "))));
  }
  std::ranges::stable_sort(pairs, {}, [](const auto& pair) { return pair.first.metric; });
  const double error_rate = comparison.error_rate / static_cast<double>(std::max<size_t>(1, pairs.size()));
  for (auto& [compared, of] : pairs) {
    compare_one(*of.a, *of.b, of.blocks, error_rate, compared);
    comparison.metrics.push_back(std::move(compared));
  }
  return comparison;
}

}  // namespace attnbench
