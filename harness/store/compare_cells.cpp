#include "harness/store/compare_cells.hpp"

#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/Transaction.h>
#include <fmt/format.h>

#include <cstring>
#include <unordered_map>

#include "harness/random/streams.hpp"
#include "harness/statistics/moments.hpp"
#include "harness/store/database.hpp"

namespace attnbench {

namespace {

using Cells = std::map<std::string, MeasuredCell>;

// The experiment, method and input have their parameters in their specs.
constexpr const char* after_the_method = R"sql(input || ' n=' || n || iif(nq <> n, ' nq=' || nq, '') || ' d=' || d
  || iif(dv <> d, ' dv=' || dv, '') || iif(causal, ' causal', '')
  || iif(causal AND mask_offset <> n - nq, ' offset=' || mask_offset, '')
  || iif(mask_keys >= 0, ' keys=' || mask_keys, '') || ' ' || precision || iif(heads > 1, ' heads=' || heads, '')
  || iif(logit_scale <> 1, ' logit_scale=' || logit_scale, '') || iif(threads > 0, ' threads=' || threads, '')
  || coalesce(' round=' || json_extract(parameters, '$.round'), ''))sql";

struct Origin {
  MeasuredCell* cell;
  std::string seed;
};
using Origins = std::unordered_map<std::int64_t, Origin>;  // by the cell's id

// Newest first: if a name has several versions, the newest counts.
Origins read_names(SQLite::Database& database, const CellSelection& selection, Cells& cells) {
  SQLite::Statement select(database,
                           fmt::format("SELECT id, {}, seed, threads > 0, source_version || machine FROM cell "
                                       "JOIN (SELECT cell, max(finished) AS finished FROM replicate GROUP BY "
                                       "cell) ON cell = id {} ORDER BY finished DESC, id DESC",
                                       selection.name, selection.methods.empty() ? "" : "WHERE method IN (?1, ?2)"));
  for (size_t i = 0; i < selection.methods.size(); ++i) select.bind(static_cast<int>(i) + 1, selection.methods[i]);
  Origins origins;
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

// Seconds, rates, and seconds of softmax over seconds: one element per block of turns.
bool is_timing(const std::string& metric, const std::string& unit, bool array) {
  return array && (unit == "s" || unit == "1/s" || metric.ends_with("speedup"));
}

void read_numbers(SQLite::Database& database, const Origins& origins, const CellSelection& selection) {
  SQLite::Statement select(database, R"sql(
    SELECT m.cell, m.replicate, m.metric, m.unit, m.value, m.array FROM replicate r JOIN measurement m
    ON m.cell = r.cell AND m.replicate = r.replicate WHERE r.ending = 'done' AND (?1 = '' OR m.metric = ?1))sql");
  select.bind(1, selection.metric);
  while (select.executeStep()) {
    const auto origin = origins.find(select.getColumn(0).getInt64());
    if (origin == origins.end()) continue;
    MeasuredCell& cell = *origin->second.cell;
    const std::string name = select.getColumn(2).getString(), unit = select.getColumn(3).getString();
    const bool timing = cell.timing && is_timing(name, unit, !select.getColumn(5).isNull());
    const bool wanted = !cell.timing || timing || !selection.metric.empty() || (selection.memory && unit == "B");
    if (!wanted) continue;
    PlacedNumbers& metric = cell.metrics[name];
    metric.unit = unit;
    const Place place{origin->second.seed, select.getColumn(1).getInt64()};
    auto all = elements(select.getColumn(4), select.getColumn(5));
    const std::string_view bytes(reinterpret_cast<const char*>(all.data()), all.size() * sizeof(double));
    metric.numbers.try_emplace(place, PlacedNumber{moments(all).mean, hash_bytes(bytes)});
    if (timing) metric.samples.try_emplace(place, std::move(all));
  }
}

}  // namespace

const std::string name_of_problem = std::string("experiment || ' ' || ") + after_the_method;
const std::string name_of_cell = std::string("experiment || ' ' || method || ' ' || ") + after_the_method;

std::vector<double> PlacedNumbers::all_samples() const {
  std::vector<double> all;
  for (const auto& [place, of_place] : samples) all.insert(all.end(), of_place.begin(), of_place.end());
  return all;
}

std::map<std::string, MeasuredCell> read_cells(const std::filesystem::path& path, const CellSelection& selection) {
  return explained(path, [&] {
    SQLite::Database database = open_for_reading(path);
    const SQLite::Transaction snapshot(database);
    Cells cells;
    const Origins origins = read_names(database, selection, cells);
    SQLite::Statement endings(database, "SELECT cell, replicate, ending FROM replicate");
    while (endings.executeStep())
      if (const auto origin = origins.find(endings.getColumn(0).getInt64()); origin != origins.end())
        origin->second.cell->endings.try_emplace({origin->second.seed, endings.getColumn(1).getInt64()},
                                                 endings.getColumn(2).getString());
    read_numbers(database, origins, selection);
    return cells;
  });
}

}  // namespace attnbench
