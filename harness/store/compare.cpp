#include "harness/store/compare.hpp"

#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/Transaction.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <unordered_map>
#include <utility>

#include "harness/random/streams.hpp"
#include "harness/statistics/two_samples.hpp"
#include "harness/store/database.hpp"

namespace attnbench {

namespace {

using Outcome = ComparedMetric::Outcome;
using Place = std::pair<std::string, Index>;  // seed and replicate: where the random streams start

struct Number {
  double value;           // of an array, its mean
  std::uint64_t content;  // hash of the bytes
};

struct Metric {
  std::string unit;
  std::map<Place, Number> numbers;
  std::vector<double> samples;  // of timings: every element
};

struct MeasuredCell {
  bool timing;
  std::string version;  // source version and machine of what counts
  std::map<std::string, Metric> metrics;
  std::map<Place, std::string> endings;
};

using Cells = std::map<std::string, MeasuredCell>;  // by what makes them the same

// What makes cells the same, as it is shown: the experiment, method and input have their parameters in their specs.
constexpr const char* name_of_cell = R"sql(
  experiment || ' ' || method || ' ' || input || ' n=' || n || iif(nq <> n, ' nq=' || nq, '') || ' d=' || d
  || iif(dv <> d, ' dv=' || dv, '') || iif(causal, ' causal', '')
  || iif(causal AND mask_offset <> n - nq, ' offset=' || mask_offset, '')
  || iif(mask_keys >= 0, ' keys=' || mask_keys, '') || ' ' || precision || iif(heads > 1, ' heads=' || heads, '')
  || iif(logit_scale <> 1, ' logit_scale=' || logit_scale, '') || iif(threads > 0, ' threads=' || threads, '')
  || coalesce(' round=' || json_extract(parameters, '$.round'), ''))sql";

struct Origin {
  MeasuredCell* cell;
  std::string seed;
};

// Cells by their id, newest first, so that of several versions the newest counts.
std::unordered_map<std::int64_t, Origin> read_cells(SQLite::Database& database, Cells& cells) {
  SQLite::Statement select(database,
                           fmt::format("SELECT id, {}, seed, threads > 0, source_version || machine FROM cell "
                                       "JOIN (SELECT cell, max(finished) AS finished FROM replicate GROUP BY "
                                       "cell) ON cell = id ORDER BY finished DESC, id DESC",
                                       name_of_cell));
  std::unordered_map<std::int64_t, Origin> origins;
  while (select.executeStep()) {
    const std::string version = select.getColumn(4).getString();
    MeasuredCell& cell = cells
                             .try_emplace(select.getColumn(1).getString(),
                                          MeasuredCell{select.getColumn(3).getInt() != 0, version, {}, {}})
                             .first->second;
    if (cell.version == version)
      origins.emplace(select.getColumn(0).getInt64(), Origin{&cell, select.getColumn(2).getString()});
  }
  return origins;
}

std::vector<double> elements(const SQLite::Column& value, const SQLite::Column& array) {
  if (array.isNull()) return {value.getDouble()};
  std::vector<double> all(static_cast<size_t>(array.getBytes()) / sizeof(double));
  if (!all.empty()) std::memcpy(all.data(), array.getBlob(), all.size() * sizeof(double));
  return all;
}

bool is_timing(const std::string& unit, bool array) { return array && (unit == "s" || unit == "1/s"); }

void read_numbers(SQLite::Database& database, const std::unordered_map<std::int64_t, Origin>& origins,
                  const std::string& only) {
  SQLite::Statement select(database, R"sql(
    SELECT m.cell, m.replicate, m.metric, m.unit, m.value, m.array FROM replicate r JOIN measurement m
    ON m.cell = r.cell AND m.replicate = r.replicate WHERE r.ending = 'done' AND (?1 = '' OR m.metric = ?1))sql");
  select.bind(1, only);
  while (select.executeStep()) {
    const auto origin = origins.find(select.getColumn(0).getInt64());
    if (origin == origins.end()) continue;
    MeasuredCell& cell = *origin->second.cell;
    const std::string unit = select.getColumn(3).getString();
    const bool timing = cell.timing && is_timing(unit, !select.getColumn(5).isNull());
    if (cell.timing && !timing && only.empty()) continue;
    Metric& metric = cell.metrics[select.getColumn(2).getString()];
    metric.unit = unit;
    const auto all = elements(select.getColumn(4), select.getColumn(5));
    const std::string_view bytes(reinterpret_cast<const char*>(all.data()), all.size() * sizeof(double));
    metric.numbers.try_emplace({origin->second.seed, select.getColumn(1).getInt64()},
                               Number{moments(all).mean, hash_bytes(bytes)});
    if (timing) metric.samples.insert(metric.samples.end(), all.begin(), all.end());
  }
}

Cells read(const std::filesystem::path& path, const std::string& only) {
  return explained(path, [&] {
    SQLite::Database database = open_for_reading(path);
    const SQLite::Transaction snapshot(database);
    Cells cells;
    const auto origins = read_cells(database, cells);
    SQLite::Statement endings(database, "SELECT cell, replicate, ending FROM replicate");
    while (endings.executeStep())
      if (const auto origin = origins.find(endings.getColumn(0).getInt64()); origin != origins.end())
        origin->second.cell->endings.try_emplace({origin->second.seed, endings.getColumn(1).getInt64()},
                                                 endings.getColumn(2).getString());
    read_numbers(database, origins, only);
    return cells;
  });
}

Moments moments_of(const Metric& metric) {
  Moments all;
  for (const auto& [place, number] : metric.numbers) all.add(number.value);
  return all;
}

// The interval decides, unless what it is of is rounding.
Outcome decided(const ComparedMetric& m, double unchanged) {
  constexpr double rounding = 1e-12;
  const bool apart = m.interval.low > unchanged || m.interval.high < unchanged;
  return apart && std::abs(m.b - m.a) > rounding * std::max(std::abs(m.a), std::abs(m.b)) ? Outcome::differs
                                                                                          : Outcome::within_error;
}

void compare_timings(const Metric& a, const Metric& b, double confidence, ComparedMetric& to) {
  to.timing = true;
  to.a = median(a.samples);
  to.b = median(b.samples);
  to.change = to.b / to.a;
  to.interval = median_ratio_interval(a.samples, b.samples, confidence);
  if (a.samples == b.samples) return;  // the same measurements
  const size_t fewer = std::min(a.samples.size(), b.samples.size());
  to.outcome = enough_for_median(fewer, 1 - (1 - confidence) / 2) ? decided(to, 1) : Outcome::undecided;
}

void compare_numbers(const Metric& a, const Metric& b, double confidence, ComparedMetric& to) {
  Moments of_a, of_b, differences;
  bool equal = true;
  for (const auto& [place, number] : a.numbers) {
    const auto other = b.numbers.find(place);
    if (other == b.numbers.end()) continue;
    const bool same = number.content == other->second.content;
    equal &= same;
    of_a.add(number.value);
    of_b.add(other->second.value);
    differences.add(same ? 0 : other->second.value - number.value);  // of two infinities, too
  }
  to.pairs = static_cast<size_t>(differences.count);
  if (to.pairs == 0) {
    of_a = moments_of(a);
    of_b = moments_of(b);
    equal = false;
  }
  to.a = of_a.mean;
  to.b = of_b.mean;
  to.change = to.pairs > 0 ? differences.mean : to.b - to.a;
  to.interval = {to.change, to.change};
  if (equal) return;
  if (!std::isfinite(to.change))
    to.outcome = to.pairs > 0 ? Outcome::differs : Outcome::undecided;  // an infinity that the other has not
  else if (of_a.count < 2 || of_b.count < 2)
    to.outcome = Outcome::undecided;
  else {
    to.interval = to.pairs > 0 ? mean_interval(differences, confidence) : difference_interval(of_a, of_b, confidence);
    to.outcome = decided(to, 0);
  }
}

std::string in_words(const std::map<Place, std::string>& endings, const std::vector<Place>& of) {
  std::map<std::string, int> counts;
  for (const Place& place : of) ++counts[endings.at(place)];
  std::string words;
  for (const auto& [ending, count] : counts) words += fmt::format("{}{} {}", words.empty() ? "" : ", ", count, ending);
  return words;
}

// Empty when every replicate that both have ended alike.
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

Comparison compare(const std::filesystem::path& path_a, const std::filesystem::path& path_b,
                   const std::string& metric) {
  const Cells a = read(path_a, metric), b = read(path_b, metric);
  Comparison comparison;
  struct Pair {
    const Metric *a, *b;
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
        comparison.metrics.push_back({.cell = name, .metric = metric_name, .unit = of_a.unit});
        pairs.push_back({&of_a, &of_b->second});
      }
  }
  for (const auto& [name, cell] : b)
    if (!a.contains(name)) comparison.only_b.push_back(name);
  const double confidence = 1 - comparison.error_rate / static_cast<double>(std::max<size_t>(1, pairs.size()));
  for (size_t i = 0; i < pairs.size(); ++i) {
    const auto& [of_a, of_b] = pairs[i];
    const bool timings = !of_a->samples.empty() && !of_b->samples.empty();
    (timings ? compare_timings : compare_numbers)(*of_a, *of_b, confidence, comparison.metrics[i]);
  }
  return comparison;
}

}  // namespace attnbench
