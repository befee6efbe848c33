#include "harness/store/store.hpp"

#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/Transaction.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <cmath>
#include <ctime>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <stdexcept>

#include "harness/errors/error.hpp"
#include "harness/random/streams.hpp"
#include "harness/store/database.hpp"
#include "harness/store/digest.hpp"
#include "harness/store/shape.hpp"
#include "harness/store/text.hpp"

namespace attnbench {

namespace {

static_assert(std::endian::native == std::endian::little, "arrays are stored as little endian float64, without a swap");

std::string utc_now() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

// A measurement that breaks a rule is a defect of the experiment. This finds it before it is stored.
void require_well_formed(const std::vector<Measurement>& measurements) {
  std::set<std::string> metrics;
  for (const auto& [metric, unit, shape, values] : measurements) {
    if (metric.empty()) throw std::logic_error("a measurement has no metric; every measurement needs a name");
    if (!metrics.insert(metric).second)
      throw std::logic_error(
          fmt::format("metric '{}' appears twice in one replicate; use one array or two names", metric));
    const Index elements = std::accumulate(shape.begin(), shape.end(), Index{1}, std::multiplies<>());
    if (std::ssize(values) != elements)
      throw std::logic_error(fmt::format("metric '{}' has {} values; its shape [{}] needs {}", metric, values.size(),
                                         fmt::join(shape, ", "), elements));
    if (std::ssize(values) > most_elements)
      throw std::logic_error(fmt::format("metric '{}' has {} values; an array may have {}; store a summary", metric,
                                         values.size(), most_elements));
    // SQLite stores NaN as NULL, so a reader could not tell it from a missing value.
    if (shape.empty() && std::isnan(values.front()))
      throw std::logic_error(fmt::format("metric '{}' is NaN; end the replicate as invalid instead", metric));
  }
}

void bind_values(SQLite::Statement& insert, int scalar, int array, const Measurement& measurement) {
  if (measurement.shape.empty()) {
    insert.bind(scalar, measurement.values.front());
    insert.bind(array);
    return;
  }
  insert.bind(scalar);
  // A null pointer binds NULL, and an empty array must not become NULL.
  const void* bytes = measurement.values.empty() ? static_cast<const void*>("") : measurement.values.data();
  insert.bindNoCopy(array, bytes, static_cast<int>(measurement.values.size() * sizeof(double)));
}

std::int64_t id_of(SQLite::Database& database, const CellRow& cell) {
  static const std::string new_cell =
      fmt::format("INSERT INTO cell({}) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT(key) DO NOTHING",
                  cell_columns_in_sql(""));
  SQLite::Statement insert(database, new_cell);
  const auto& [nq, nk, d, dv, mask, precision] = cell.shape;
  int column = 0;
  const auto bind = [&](const auto& value) { insert.bind(++column, value); };
  for (const std::string& text : {cell.key, cell.experiment, cell.method, cell.input}) bind(as_text(text));
  for (const std::int64_t size : {nq, nk, d, dv, Index{mask.causal}, mask.offset, mask.keys}) bind(size);
  bind(to_string(precision));
  bind(std::int64_t{cell.heads});
  bind(cell.logit_scale);
  bind(std::to_string(cell.seed));  // SQLite's integers are signed
  bind(std::int64_t{cell.threads});
  for (const std::string& text : {cell.parameters, cell.source_version, cell.machine}) bind(as_text(text));
  insert.exec();

  SQLite::Statement select(database, "SELECT id FROM cell WHERE key = ?");
  select.bind(1, as_text(cell.key));
  select.executeStep();
  return select.getColumn(0).getInt64();
}

// Returns false if that replicate is settled already.
bool put_replicate(SQLite::Database& database, std::int64_t cell, Index replicate, std::int64_t run,
                   const Ending& ending, double seconds, size_t measurements) {
  static const std::string upsert = fmt::format(
      "INSERT INTO replicate(cell, replicate, run, ending, reason, seconds, finished, measurements, digest) "
      "VALUES(?,?,?,?,?,?,?,?,'') ON CONFLICT(cell, replicate) DO UPDATE SET run = excluded.run, "
      "ending = excluded.ending, reason = excluded.reason, seconds = excluded.seconds, "
      "finished = excluded.finished, measurements = excluded.measurements WHERE replicate.ending NOT IN {}",
      settled_endings);
  SQLite::Statement put(database, upsert);
  put.bind(1, cell);
  put.bind(2, std::int64_t{replicate});
  put.bind(3, run);
  put.bind(4, to_string(ending.kind));
  put.bind(5, as_text(ending.reason));
  put.bind(6, seconds);
  put.bind(7, utc_now());
  put.bind(8, static_cast<std::int64_t>(measurements));
  return put.exec() == 1;
}

void put_measurements(SQLite::Database& database, std::int64_t cell, Index replicate,
                      const std::vector<Measurement>& measurements) {
  SQLite::Statement remove(database, "DELETE FROM measurement WHERE cell = ? AND replicate = ?");  // of an earlier try
  remove.bind(1, cell);
  remove.bind(2, std::int64_t{replicate});
  remove.exec();
  SQLite::Statement insert(database,
                           "INSERT INTO measurement(cell, replicate, metric, unit, shape, value, array) "
                           "VALUES(?,?,?,?,?,?,?)");
  for (const Measurement& measurement : measurements) {
    insert.bind(1, cell);
    insert.bind(2, std::int64_t{replicate});
    insert.bind(3, as_text(measurement.metric));
    insert.bind(4, as_text(measurement.unit));
    insert.bind(5, to_text(measurement.shape));
    bind_values(insert, 6, 7, measurement);
    insert.exec();
    insert.reset();
  }
}

// Of what the transaction has written, as a reader will find it.
void seal_replicate(SQLite::Database& database, std::int64_t cell, Index replicate) {
  static const std::string update = seal("replicate", "cell = ? AND replicate = ?");
  SQLite::Statement put(database, update);
  put.bind(1, cell);
  put.bind(2, std::int64_t{replicate});
  put.exec();
}

}  // namespace

std::string key_on(const std::string& key, const std::string& machine) {
  return fmt::format("{}-{:016x}", key, hash_bytes(machine));
}

Store::Store(std::unique_ptr<Implementation> implementation) : implementation_(std::move(implementation)) {}

// NOLINTBEGIN(modernize-make-unique): clang 14 makes no aggregate from the arguments of make_unique
Store::Store(const std::filesystem::path& path)
    : Store(std::unique_ptr<Implementation>(new Implementation{path, open_for_recording(path)})) {}

Store Store::open_existing(const std::filesystem::path& path) {
  return Store(std::unique_ptr<Implementation>(new Implementation{path, open_for_reading(path)}));
}
// NOLINTEND(modernize-make-unique)

Store::~Store() = default;
Store::Store(Store&&) noexcept = default;

std::int64_t Store::begin_run(const std::string& command_line, const std::string& environment) {
  const std::lock_guard lock(implementation_->mutex);
  return explained(implementation_->path, [&] {
    SQLite::Database& database = implementation_->database;
    SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
    SQLite::Statement insert(database, "INSERT INTO run(started, command, environment, digest) VALUES(?,?,?,'')");
    insert.bind(1, utc_now());
    insert.bind(2, as_text(command_line));
    insert.bind(3, as_text(environment));
    insert.exec();
    const std::int64_t id = database.getLastInsertRowid();
    SQLite::Statement put(database, seal("run", "id = ?"));
    put.bind(1, id);
    put.exec();
    transaction.commit();
    return id;
  });
}

void Store::record(std::int64_t run, const CellRow& cell, Index replicate, const Ending& ending, double seconds,
                   const std::vector<Measurement>& measurements) {
  require_well_formed(measurements);
  const std::lock_guard lock(implementation_->mutex);
  explained(implementation_->path, [&] {
    SQLite::Database& database = implementation_->database;
    // IMMEDIATE waits for the write lock here, so that no later statement finds the file busy.
    SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
    const std::int64_t id = id_of(database, cell);
    if (put_replicate(database, id, replicate, run, ending, seconds, measurements.size())) {
      put_measurements(database, id, replicate, measurements);
      seal_replicate(database, id, replicate);
    }
    transaction.commit();
  });
}

void Store::put_figure(const std::string& recipe, const std::string& name, Index position, const std::string& json) {
  const std::lock_guard lock(implementation_->mutex);
  explained(implementation_->path, [&] {
    SQLite::Database& database = implementation_->database;
    SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
    SQLite::Statement insert(
        database,
        "INSERT INTO figure(recipe, name, position, json, written, digest) VALUES(?,?,?,?,?,'') "
        "ON CONFLICT(recipe, name) DO UPDATE SET position = excluded.position, json = excluded.json, "
        "written = excluded.written");
    insert.bind(1, as_text(recipe));
    insert.bind(2, as_text(name));
    insert.bind(3, std::int64_t{position});
    insert.bind(4, as_text(json));
    insert.bind(5, utc_now());
    insert.exec();
    SQLite::Statement put(database, seal("figure", "recipe = ? AND name = ?"));
    put.bind(1, as_text(recipe));
    put.bind(2, as_text(name));
    put.exec();
    transaction.commit();
  });
}

namespace {

// Numbers that JSON cannot hold become null, such as an infinite end of an interval.
std::string json_of(const std::vector<Compared>& all) {
  auto list = nlohmann::json::array();
  for (const auto& [what, side, value, low, high, count] : all)
    list.push_back({{"what", what}, {"side", side}, {"value", value}, {"low", low}, {"high", high}, {"count", count}});
  return list.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

void Store::put_reproduction(const Reproduction& reproduction) {
  const std::lock_guard lock(implementation_->mutex);
  explained(implementation_->path, [&] {
    SQLite::Database& database = implementation_->database;
    SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
    for (const char* table : {"verdict", "reproduction"}) {
      SQLite::Statement remove(database, fmt::format("DELETE FROM {} WHERE recipe = ?", table));
      remove.bind(1, reproduction.recipe);
      remove.exec();
    }
    const std::string written = utc_now();
    SQLite::Statement whole(
        database,
        "INSERT INTO reproduction(recipe, size, command, seconds, cells, written, digest) VALUES(?,?,?,?,?,?,'')");
    whole.bind(1, reproduction.recipe);
    whole.bind(2, reproduction.size);
    whole.bind(3, as_text(reproduction.command));
    whole.bind(4, reproduction.seconds);
    whole.bind(5, nlohmann::json(reproduction.cells).dump());
    whole.bind(6, written);
    whole.exec();
    SQLite::Statement insert(database,
                             "INSERT INTO verdict(recipe, position, outcome, statement, numbers, region, expected, "
                             "source, written, quotation, paraphrase, definition, threshold, because, kind, "
                             "compared) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
    std::int64_t position = 0;
    for (const auto& [statement, finding] : reproduction.verdicts) {
      int column = 0;
      const auto bind = [&](const std::string& text) { insert.bind(++column, as_text(text)); };
      bind(reproduction.recipe);
      insert.bind(++column, position++);
      bind(to_string(finding.ruling));
      bind(statement.text);
      bind(finding.numbers);
      bind(finding.region);
      bind(to_string(statement.expected));
      for (const std::string& text :
           {statement.source, written, statement.quotation, statement.paraphrase, statement.definition,
            statement.threshold, statement.because, to_string(statement.kind())})
        bind(text);
      bind(json_of(finding.compared));
      insert.exec();
      insert.reset();
    }
    SQLite::Statement put(database, seal("reproduction", "recipe = ?"));
    put.bind(1, reproduction.recipe);
    put.exec();
    transaction.commit();
  });
}

}  // namespace attnbench
