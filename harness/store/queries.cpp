// Queries of runs, recipes and figures.
#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/Statement.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "harness/store/database.hpp"
#include "harness/store/store.hpp"

namespace attnbench {

std::unordered_map<std::string, std::map<Index, Ending::Kind>> Store::ended() const {
  const std::lock_guard lock(implementation_->mutex);
  return explained(implementation_->path, [&] {
    // In the order of replicate's primary key, so that each cell is looked up once.
    SQLite::Statement select(implementation_->database,
                             "SELECT r.cell, c.key, r.replicate, r.ending FROM replicate r CROSS JOIN cell c "
                             "ON c.id = r.cell ORDER BY r.cell, r.replicate");
    std::unordered_map<std::string, std::map<Index, Ending::Kind>> all;
    std::map<Index, Ending::Kind>* ended = nullptr;
    for (std::int64_t last = 0; select.executeStep();) {
      const std::int64_t cell = select.getColumn(0).getInt64();
      if (!ended || cell != last) ended = &all[select.getColumn(1).getText()];
      last = cell;
      ended->emplace_hint(ended->end(), select.getColumn(2).getInt64(), ending_kind(select.getColumn(3).getText()));
    }
    return all;
  });
}

std::unordered_set<Index> Store::ended_replicates(const std::string& key) const {
  const std::lock_guard lock(implementation_->mutex);
  return explained(implementation_->path, [&] {
    SQLite::Statement select(implementation_->database,
                             "SELECT replicate FROM replicate JOIN cell ON cell.id = replicate.cell WHERE key = ?");
    select.bind(1, key);
    std::unordered_set<Index> ended;
    while (select.executeStep()) ended.insert(select.getColumn(0).getInt64());
    return ended;
  });
}

namespace {

// Calls visit(replicate, value) for each done replicate that has that metric in `column`, which is value or array.
template <class Visit>
void each_done(const SQLite::Database& database, const std::string& column, const std::string& key,
               const std::string& metric, const Visit& visit) {
  SQLite::Statement select(database,
                           "SELECT m.replicate, m." + column +
                               " FROM measurement m JOIN cell c ON c.id = m.cell JOIN "
                               "replicate r ON r.cell = m.cell AND r.replicate = m.replicate WHERE c.key = ? AND "
                               "m.metric = ? AND r.ending = 'done' AND m." +
                               column + " IS NOT NULL");
  select.bind(1, key);
  select.bind(2, metric);
  while (select.executeStep()) visit(Index{select.getColumn(0).getInt64()}, select.getColumn(1));
}

std::vector<double> doubles_of(const SQLite::Column& array) {
  std::vector<double> values(static_cast<size_t>(array.getBytes()) / sizeof(double));
  if (!values.empty()) std::memcpy(values.data(), array.getBlob(), values.size() * sizeof(double));
  return values;
}

}  // namespace

std::map<std::string, Measurement> Store::measurements(const std::string& key, Index replicate) const {
  const std::lock_guard lock(implementation_->mutex);
  return explained(implementation_->path, [&] {
    SQLite::Statement select(
        implementation_->database,
        "SELECT m.metric, m.unit, m.shape, m.value, m.array FROM measurement m JOIN cell c ON c.id "
        "= m.cell JOIN replicate r ON r.cell = m.cell AND r.replicate = m.replicate WHERE c.key = "
        "? AND m.replicate = ? AND r.ending = 'done'");
    select.bind(1, key);
    select.bind(2, std::int64_t{replicate});
    std::map<std::string, Measurement> all;
    while (select.executeStep()) {
      const SQLite::Column array = select.getColumn(4);
      all[select.getColumn(0).getString()] = {
          .metric = select.getColumn(0).getString(),
          .unit = select.getColumn(1).getString(),
          .shape = nlohmann::json::parse(select.getColumn(2).getString()).get<std::vector<Index>>(),
          .values = array.isNull() ? std::vector{select.getColumn(3).getDouble()} : doubles_of(array)};
    }
    return all;
  });
}

std::map<Index, double> Store::scalars(const std::string& key, const std::string& metric) const {
  const std::lock_guard lock(implementation_->mutex);
  std::map<Index, double> values;
  explained(implementation_->path, [&] {
    each_done(implementation_->database, "value", key, metric,
              [&](Index replicate, const SQLite::Column& value) { values[replicate] = value.getDouble(); });
  });
  return values;
}

std::map<Index, std::vector<double>> Store::arrays(const std::string& key, const std::string& metric) const {
  const std::lock_guard lock(implementation_->mutex);
  std::map<Index, std::vector<double>> values;
  explained(implementation_->path, [&] {
    each_done(implementation_->database, "array", key, metric,
              [&](Index replicate, const SQLite::Column& array) { values[replicate] = doubles_of(array); });
  });
  return values;
}

}  // namespace attnbench
