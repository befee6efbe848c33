#include "harness/figures/measured_results.hpp"

#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>

#include "harness/store/database.hpp"

namespace attnbench {

struct MeasuredResults::Connection {
  std::filesystem::path file;
  SQLite::Database database;
};

double MeasuredValues::mean() const {
  if (values.empty()) return NAN;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

namespace {

MeasuredValues values_in(SQLite::Statement& row, int unit, int shape, int value, int array) {
  MeasuredValues all{.unit = row.getColumn(unit).getString(), .shape = {}, .values = {}};
  if (const SQLite::Column bytes = row.getColumn(array); !bytes.isNull()) {
    all.shape = nlohmann::json::parse(row.getColumn(shape).getString()).get<std::vector<Index>>();
    all.values.resize(static_cast<size_t>(bytes.getBytes()) / sizeof(double));
    if (!all.values.empty()) std::memcpy(all.values.data(), bytes.getBlob(), all.values.size() * sizeof(double));
  } else {
    all.values.push_back(row.getColumn(value).getDouble());
  }
  return all;
}

// Equal for cells that differ only in the version of their sources.
std::string identity_of(const StoredCell& cell) {
  std::string text;
  for (const auto& value : cell.values) text += value + '\n';
  return text + cell.parameters.dump();
}

}  // namespace

MeasuredResults::MeasuredResults(const std::filesystem::path& file) {
  explained(file, [&] {
    connection_ = std::make_unique<Connection>(Connection{file, open_for_reading(file)});
    SQLite::Database& database = connection_->database;
    auto all = selected_cells(database, file.string(), {});
    std::sort(all.begin(), all.end(), [](const StoredCell& a, const StoredCell& b) { return a.id < b.id; });

    std::unordered_map<std::int64_t, std::string> finished;
    std::unordered_map<std::int64_t, std::vector<Replicate>> replicates;
    SQLite::Statement ended(database,
                            "SELECT cell, replicate, ending, reason, finished FROM replicate ORDER BY cell, replicate");
    while (ended.executeStep()) {
      const std::int64_t id = ended.getColumn(0).getInt64();
      replicates[id].push_back(
          {ended.getColumn(1).getInt64(), ended.getColumn(2).getString(), ended.getColumn(3).getString()});
      finished[id] = std::max(finished[id], ended.getColumn(4).getString());
    }

    std::unordered_map<std::string, size_t> newest;  // by identity, the position in `all`
    std::vector<std::string> identities;
    for (size_t i = 0; i < all.size(); ++i) {
      identities.push_back(identity_of(all[i]));
      const auto [found, added] = newest.emplace(identities.back(), i);
      if (!added && finished[all[i].id] >= finished[all[found->second].id]) found->second = i;
    }
    std::vector<size_t> place(all.size());
    for (size_t i = 0; i < all.size(); ++i) {
      if (newest[identities[i]] != i) continue;
      place[i] = cells_.size();
      position_of_id_[all[i].id] = cells_.size();
      cells_.push_back(all[i]);
      replicates_.push_back(std::move(replicates[all[i].id]));
    }
    for (size_t i = 0; i < all.size(); ++i) position_of_key_[all[i].key] = place[newest[identities[i]]];
  });
}

MeasuredResults::~MeasuredResults() = default;

std::vector<size_t> MeasuredResults::positions(const std::vector<std::string>& keys) const {
  std::set<size_t> found;
  for (const auto& key : keys)
    if (const auto at = position_of_key_.find(key); at != position_of_key_.end()) found.insert(at->second);
  return {found.begin(), found.end()};
}

const std::map<Index, MeasuredValues>& MeasuredResults::values(size_t cell, const std::string& metric) const {
  auto found = metrics_.find(metric);
  if (found == metrics_.end()) {
    OfMetric of_metric;
    explained(connection_->file, [&] {
      SQLite::Statement rows(connection_->database,
                             "SELECT m.cell, m.replicate, m.unit, m.shape, m.value, m.array FROM measurement m JOIN "
                             "replicate r ON r.cell = m.cell AND r.replicate = m.replicate "
                             "WHERE m.metric = ? AND r.ending = 'done'");
      rows.bind(1, metric);
      while (rows.executeStep())
        if (const auto at = position_of_id_.find(rows.getColumn(0).getInt64()); at != position_of_id_.end())
          of_metric[at->second].emplace(rows.getColumn(1).getInt64(), values_in(rows, 2, 3, 4, 5));
    });
    found = metrics_.emplace(metric, std::move(of_metric)).first;
  }
  static const std::map<Index, MeasuredValues> nothing;
  const auto of_cell = found->second.find(cell);
  return of_cell == found->second.end() ? nothing : of_cell->second;
}

std::vector<std::string> MeasuredResults::metrics() const {
  std::vector<std::string> names;
  SQLite::Statement rows(connection_->database, "SELECT DISTINCT metric FROM measurement ORDER BY metric");
  while (rows.executeStep()) names.push_back(rows.getColumn(0).getString());
  return names;
}

std::vector<std::string> MeasuredResults::metrics_of(const std::vector<size_t>& cells) const {
  std::set<std::string> names;
  SQLite::Statement rows(connection_->database, "SELECT DISTINCT metric FROM measurement WHERE cell = ?");
  for (const size_t cell : cells) {
    rows.reset();
    rows.bind(1, cells_.at(cell).id);
    while (rows.executeStep()) names.insert(rows.getColumn(0).getString());
  }
  return {names.begin(), names.end()};
}

}  // namespace attnbench
