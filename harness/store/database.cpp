#include "harness/store/database.hpp"

#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/Transaction.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <array>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

#include "harness/core/error.hpp"

namespace attnbench {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t application_id = 0x61746e62;  // "atnb"
constexpr std::int64_t schema_version = 2;

// WITHOUT ROWID keeps the measurements of a replicate side by side in the order of export, which then sorts nothing.
constexpr const char* schema = R"sql(
  CREATE TABLE run(id INTEGER PRIMARY KEY, started TEXT NOT NULL, command TEXT NOT NULL, environment TEXT NOT NULL);
  CREATE TABLE cell(
    id INTEGER PRIMARY KEY, key TEXT UNIQUE NOT NULL, experiment TEXT NOT NULL, method TEXT NOT NULL,
    input TEXT NOT NULL, nq INTEGER NOT NULL, n INTEGER NOT NULL, d INTEGER NOT NULL, dv INTEGER NOT NULL,
    causal INTEGER NOT NULL, mask_offset INTEGER NOT NULL, mask_keys INTEGER NOT NULL, precision TEXT NOT NULL,
    heads INTEGER NOT NULL, logit_scale REAL NOT NULL, seed TEXT NOT NULL, threads INTEGER NOT NULL,
    parameters TEXT NOT NULL, source_version TEXT NOT NULL);
  CREATE TABLE replicate(
    cell INTEGER NOT NULL REFERENCES cell(id), replicate INTEGER NOT NULL, run INTEGER NOT NULL REFERENCES run(id),
    ending TEXT NOT NULL, reason TEXT NOT NULL, seconds REAL NOT NULL, finished TEXT NOT NULL,
    PRIMARY KEY(cell, replicate)) WITHOUT ROWID;
  CREATE TABLE measurement(
    cell INTEGER NOT NULL, replicate INTEGER NOT NULL, metric TEXT NOT NULL, unit TEXT NOT NULL, shape TEXT NOT NULL,
    value REAL, array BLOB, PRIMARY KEY(cell, replicate, metric),
    FOREIGN KEY(cell, replicate) REFERENCES replicate(cell, replicate),
    CHECK((value IS NULL) <> (array IS NULL))) WITHOUT ROWID;
  CREATE TABLE figure(
    recipe TEXT NOT NULL, name TEXT NOT NULL, position INTEGER NOT NULL, json TEXT NOT NULL,
    PRIMARY KEY(recipe, name));
)sql";

// What each schema has beyond the one before it, from 2 on: a new file takes all of it, an older file what it lacks.
constexpr std::array<const char*, schema_version - 1> additions{R"sql(
  CREATE TABLE verdict(
    recipe TEXT NOT NULL, position INTEGER NOT NULL, outcome TEXT NOT NULL, statement TEXT NOT NULL,
    numbers TEXT NOT NULL, PRIMARY KEY(recipe, position))
)sql"};

// SQLite names its write-ahead log after the file that a symbolic link points to, and takes ":memory:" for no file.
fs::path resolved(const fs::path& path) {
  if (path.empty())
    throw Misuse("the path of the results file is empty; expected a file name, such as results/attnbench.db");
  std::error_code error;
  const fs::path canonical = fs::weakly_canonical(path, error);
  return error ? fs::absolute(path) : fs::absolute(canonical);
}

std::uintmax_t size_or_zero(const fs::path& path) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  return error ? 0 : size;
}

// Bytes of whole transactions that a killed run left beside the file, to be taken over by the next one who opens it.
std::uintmax_t write_ahead_log_size(const fs::path& path) { return size_or_zero(path.string() + "-wal"); }

void require_regular_file(const fs::path& path, fs::file_type type) {
  if (type == fs::file_type::directory)
    throw Misuse(fmt::format(
        "'{0}' is a folder; expected a results file; name a file in it, such as '{0}/attnbench.db'", path.string()));
  if (type != fs::file_type::regular)
    throw Misuse(
        fmt::format("'{}' is a device, pipe or socket; expected a results file; give a path on a disk", path.string()));
}

std::int64_t big_endian(std::string_view bytes) {
  std::int64_t number = 0;
  for (const char byte : bytes) number = number * 256 + static_cast<unsigned char>(byte);
  return number;
}

// The first 100 bytes (https://sqlite.org/fileformat.html, 1.3), read through SQLite's own descriptor but before it
// looks at the file: closing a second descriptor would drop the locks that another Store of this process holds.
std::string file_header(const SQLite::Database& database) {
  sqlite3_file* file = nullptr;
  sqlite3_file_control(database.getHandle(), "main", SQLITE_FCNTL_FILE_POINTER, &file);
  std::string header(100, '\0');
  const int code = file->pMethods->xRead(file, header.data(), static_cast<int>(header.size()), 0);
  if (code != SQLITE_OK && code != SQLITE_IOERR_SHORT_READ) throw SQLite::Exception("cannot read its header", code);
  return header;
}

void require_our_schema(const fs::path& path, std::int64_t application, std::int64_t version) {
  if (application != application_id)
    throw Misuse(
        fmt::format("'{}' is an SQLite database of another program; expected a results file of attnbench; it "
                    "is left untouched: give another path",
                    path.string()));
  if (version < 1 || version > schema_version)
    throw Misuse(
        fmt::format("'{}' has results schema {}; this attnbench knows schemas 1 to {}; {}, or give another path",
                    path.string(), version, schema_version,
                    version > schema_version ? "use the newer attnbench that wrote it" : "it may be damaged"));
}

void require_results_header(const fs::path& path, const SQLite::Database& database) {
  const std::string header = file_header(database);
  constexpr std::string_view magic("SQLite format 3\0", 16);
  if (!header.starts_with(magic))
    throw Misuse(
        fmt::format("'{}' is no results file (no SQLite database); expected one that attnbench wrote, or a "
                    "path where none is yet; it is left untouched: give another path",
                    path.string()));
  const std::string_view fields = header;
  require_our_schema(path, big_endian(fields.substr(68, 4)), big_endian(fields.substr(60, 4)));
}

[[noreturn]] void report_damage(const fs::path& path, const std::string& damage) {
  throw Misuse(
      fmt::format("results file '{0}' is cut off or corrupt ({1}); expected a whole SQLite database; it is left "
                  "untouched: restore a copy, or salvage it with `sqlite3 {0} .recover`, or give another path",
                  path.string(), damage));
}

// SQLite pads a page that is cut off with zeros and may then find nothing wrong.
void require_whole_pages(const fs::path& path, const SQLite::Database& database) {
  if (write_ahead_log_size(path) > 0) return;  // the log holds whatever a checkpoint had not yet written
  const std::int64_t stored = big_endian(file_header(database).substr(16, 2));
  const std::uintmax_t page = stored == 1 ? 65536u : static_cast<std::uintmax_t>(stored);
  const std::uintmax_t size = size_or_zero(path);
  if (page == 0 || size % page != 0) report_damage(path, fmt::format("{} bytes, pages of {}", size, page));
}

// Closing the last connection moves the log into the file. That must not happen to a file that proves to be damaged.
void require_integrity(const fs::path& path, SQLite::Database& database) {
  require_whole_pages(path, database);
  const bool log_left = write_ahead_log_size(path) > 0;
  if (log_left) sqlite3_db_config(database.getHandle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  const std::string verdict = database.execAndGet("PRAGMA quick_check(1)").getString();
  if (verdict != "ok") report_damage(path, verdict);
  if (log_left) sqlite3_db_config(database.getHandle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, nullptr);
}

// A log without its database: SQLite would delete it, and with it results.
void require_no_orphaned_log(const fs::path& path) {
  if (write_ahead_log_size(path) > 0)
    throw Misuse(
        fmt::format("'{0}-wal' holds results, but the file '{0}' that it belongs to is missing or empty; put "
                    "that file back beside it, or remove '{0}-wal', or give another path",
                    path.string()));
}

void create_folder_of(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error)
    throw Misuse(
        fmt::format("cannot create the folder '{}' for the results ({}); expected a folder that can be "
                    "written; give another path",
                    path.parent_path().string(), error.message()));
}

// The schema is one transaction in rollback mode, so that the file's header names us before a log can exist, and two
// runs that start together agree on who creates it.
void create_or_update_schema(const fs::path& path, SQLite::Database& database) {
  SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
  const bool empty = database.execAndGet("SELECT count(*) FROM sqlite_master").getInt() == 0;
  const std::int64_t application = database.execAndGet("PRAGMA application_id").getInt64();
  std::int64_t version = 1;
  if (empty && application == 0) {
    database.exec(schema);
    database.exec(fmt::format("PRAGMA application_id = {}", application_id));
  } else {
    version = database.execAndGet("PRAGMA user_version").getInt64();
    require_our_schema(path, application, version);
  }
  for (; version < schema_version; ++version)
    database.exec(
        fmt::format("{}; PRAGMA user_version = {}", additions[static_cast<size_t>(version - 1)], version + 1));
  transaction.commit();
}

// With a log, readers never wait for writers. The switch needs the file for itself, and while another run makes it too
// SQLite reports busy at once instead of waiting. A file system without shared memory stays in rollback mode, which is
// slower, not wrong.
void switch_to_log(SQLite::Database& database, std::chrono::milliseconds wait) {
  const auto deadline = std::chrono::steady_clock::now() + wait;
  for (;;) {
    const int code = database.tryExec("PRAGMA journal_mode = WAL");
    if (code == SQLITE_OK) return;
    if (code != SQLITE_BUSY || std::chrono::steady_clock::now() > deadline)
      throw SQLite::Exception(database.getHandle(), code);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

bool can_write_beside(const fs::path& path) {
  return access(path.c_str(), W_OK) == 0 && access(path.parent_path().c_str(), W_OK) == 0;
}

// As a URI of SQLite that promises that nobody changes the file: such a file is read without creating one beside it.
std::string immutable_uri(const fs::path& path) {
  std::string uri = "file:";
  for (const char byte : path.string())
    if (byte == '%' || byte == '?' || byte == '#')
      uri += fmt::format("%{:02x}", static_cast<unsigned char>(byte));
    else
      uri += byte;
  return uri + "?immutable=1";
}

// A reader with write permission reads through the log as a writer does, and so leaves neither a log nor its index
// behind; without permission (an archive, another user's results) a file without log is read as immutable.
SQLite::Database connect_for_reading(const fs::path& path) {
  if (can_write_beside(path)) return SQLite::Database(path.string(), SQLite::OPEN_READWRITE);
  if (write_ahead_log_size(path) > 0) return SQLite::Database(path.string(), SQLite::OPEN_READONLY);
  return SQLite::Database(immutable_uri(path), SQLite::OPEN_READONLY | SQLite::OPEN_URI);
}

}  // namespace

void explain(const fs::path& path, const SQLite::Exception& error) {
  const std::string file = path.string();
  switch (error.getErrorCode()) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      throw Misuse(
          fmt::format("another run holds the results file '{}'; expected it to be free within {} s; wait for "
                      "that run or stop it, or give this one its own --results and merge them later",
                      file, std::chrono::duration_cast<std::chrono::seconds>(patience).count()));
    case SQLITE_FULL:
      throw Misuse(
          fmt::format("the disk of the results file '{}' is full; the last replicate was not recorded, all "
                      "others are safe; make room and run the same command again to resume",
                      file));
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      throw Misuse(
          fmt::format("the results file '{}' cannot be written ({}); expected write permission on the file and "
                      "its folder; grant it or give another path",
                      file, error.what()));
    case SQLITE_CANTOPEN:
      throw Misuse(
          fmt::format("the results file '{}' cannot be opened ({}); expected a path that can be read and "
                      "written; check the permissions of its folder or give another path",
                      file, error.what()));
    case SQLITE_IOERR:
      throw Misuse(
          fmt::format("reading or writing the results file '{}' failed ({}); expected a working local disk; "
                      "check the disk and run the same command again to resume",
                      file, error.what()));
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
      report_damage(path, error.what());
    default:
      throw std::logic_error(fmt::format("results file '{}': {}", file, error.what()));
  }
}

SQLite::Database open_for_recording(const fs::path& given, std::chrono::milliseconds wait) {
  const fs::path path = resolved(given);
  std::error_code absent;
  const fs::file_type type = fs::status(path, absent).type();
  const bool exists = fs::exists(fs::file_status(type));
  if (exists)
    require_regular_file(path, type);
  else
    create_folder_of(path);
  const bool filled = size_or_zero(path) > 0;
  if (!filled) require_no_orphaned_log(path);
  return explained(path, [&] {
    SQLite::Database database(path.string(), SQLite::OPEN_READWRITE | (exists ? 0 : SQLite::OPEN_CREATE));
    if (filled) require_results_header(path, database);
    // SQLite opens a file without write permission for reading, and would complain only at the first measurement.
    if (sqlite3_db_readonly(database.getHandle(), "main") == 1)
      throw SQLite::Exception("no write permission", SQLITE_READONLY);
    database.setBusyTimeout(static_cast<int>(wait.count()));
    if (filled) require_integrity(path, database);
    create_or_update_schema(path, database);
    switch_to_log(database, wait);
    // NORMAL survives any kill; a power cut loses the last replicates but never breaks one.
    database.exec("PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON");
    return database;
  });
}

SQLite::Database open_for_reading(const fs::path& given, std::chrono::milliseconds wait) {
  const fs::path path = resolved(given);
  std::error_code absent;
  const fs::file_type type = fs::status(path, absent).type();
  if (!fs::exists(fs::file_status(type)))
    throw Misuse(
        fmt::format("there is no results file '{}'; expected one that `attnbench run` or `attnbench reproduce` "
                    "wrote; check the path or make one with --results",
                    path.string()));
  require_regular_file(path, type);
  if (size_or_zero(path) == 0) require_no_orphaned_log(path);
  return explained(path, [&] {
    SQLite::Database database = connect_for_reading(path);
    require_results_header(path, database);
    database.setBusyTimeout(static_cast<int>(wait.count()));
    require_integrity(path, database);
    database.exec("PRAGMA query_only = ON");
    require_our_schema(path, database.execAndGet("PRAGMA application_id").getInt64(),
                       database.execAndGet("PRAGMA user_version").getInt64());
    return database;
  });
}

}  // namespace attnbench
