#include "harness/store/database.hpp"

#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/Statement.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

#include "harness/errors/error.hpp"
#include "harness/store/digest.hpp"
#include "harness/store/schema.hpp"
#include "harness/store/text.hpp"
#include "harness/store/values.hpp"

namespace attnbench {

namespace {

namespace fs = std::filesystem;

// SQLite names its write-ahead log after the target of a symbolic link, and does not treat ":memory:" as a file.
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

// Bytes of whole transactions that a killed run left in the log. The next process that opens the file moves them into
// it.
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
// inspects the file. Closing a second descriptor would drop the locks that another Store of this process holds.
std::string file_header(const SQLite::Database& database) {
  sqlite3_file* file = nullptr;
  sqlite3_file_control(database.getHandle(), "main", SQLITE_FCNTL_FILE_POINTER, &file);
  std::string header(100, '\0');
  const int code = file->pMethods->xRead(file, header.data(), static_cast<int>(header.size()), 0);
  if (code != SQLITE_OK && code != SQLITE_IOERR_SHORT_READ) throw SQLite::Exception("cannot read its header", code);
  return header;
}

void require_results_header(const fs::path& path, const SQLite::Database& database) {
  const std::string header = file_header(database);
  constexpr std::string_view magic("SQLite format 3\0", 16);
  if (!header.starts_with(magic))
    throw Misuse(
        fmt::format("'{}' is not a results file (no SQLite database); expected one that attnbench wrote, or a "
                    "path where none is yet; it is left untouched: give another path",
                    path.string()));
  const std::string_view fields = header;
  constexpr std::int64_t utf8 = 1;
  require_our_schema(path, big_endian(fields.substr(68, 4)), big_endian(fields.substr(60, 4)));
  if (big_endian(fields.substr(56, 4)) > utf8)
    throw Misuse(
        fmt::format("'{}' holds its texts in UTF-16; expected UTF-8, as attnbench writes them; it is left untouched: "
                    "restore a copy, or give another path",
                    path.string()));
}

// Before SQLite reads the schema: nothing that a file holds is run, neither a trigger or a view nor a function in an
// index or a constraint.
void trust_nothing(SQLite::Database& database) {
  sqlite3* connection = database.getHandle();
  for (const int option : {SQLITE_DBCONFIG_ENABLE_TRIGGER, SQLITE_DBCONFIG_ENABLE_VIEW, SQLITE_DBCONFIG_TRUSTED_SCHEMA})
    sqlite3_db_config(connection, option, 0, nullptr);
  sqlite3_db_config(connection, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  database.exec("PRAGMA cell_size_check = ON");
}

[[noreturn]] void report_damage(const fs::path& path, const std::string& damage) {
  throw Damage(
      fmt::format("results file '{0}' is cut off or corrupt ({1}); expected a whole SQLite database; it is left "
                  "untouched: restore a copy, or salvage it with `sqlite3 {0} .recover`, or give another path",
                  path.string(), damage));
}

// SQLite pads a truncated page with zeros and may then find nothing wrong.
void require_whole_pages(const fs::path& path, const SQLite::Database& database) {
  if (write_ahead_log_size(path) > 0) return;  // the log holds everything that a checkpoint has not yet written
  const std::int64_t stored = big_endian(file_header(database).substr(16, 2));
  const std::uintmax_t page = stored == 1 ? 65536u : static_cast<std::uintmax_t>(stored);
  const std::uintmax_t size = size_or_zero(path);
  if (page == 0 || size % page != 0) report_damage(path, fmt::format("{} bytes, pages of {}", size, page));
}

// Closing the last connection moves the log into the file. That must not happen to a damaged or foreign file.
void require_integrity(const fs::path& path, SQLite::Database& database) {
  require_whole_pages(path, database);
  const bool log_left = write_ahead_log_size(path) > 0;
  if (log_left) sqlite3_db_config(database.getHandle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  require_our_tables(path, database);  // before quick_check, which evaluates the constraints of tables
  const std::string verdict = database.execAndGet("PRAGMA quick_check(1)").getString();
  if (verdict != "ok") report_damage(path, verdict);
  if (log_left) sqlite3_db_config(database.getHandle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, nullptr);
}

// A run that is killed while it writes the tables leaves a file that has our header, and a journal by which SQLite
// takes the tables back: the file is then empty, as before that run. A log cannot exist yet.
bool is_taken_back(const fs::path& path, SQLite::Database& database) {
  if (size_or_zero(path.string() + "-journal") > 0) database.execAndGet("SELECT count(*) FROM sqlite_master");
  return size_or_zero(path) == 0;
}

// SQLite would delete a log without its database, and the results in it.
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

// With a log, readers never wait for writers. The switch needs exclusive access, and while another run switches too,
// SQLite reports busy immediately instead of waiting. A file system without shared memory stays in rollback mode, which
// is slower but correct.
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

// 0.4 s for 100,000 replicates of 9 measurements. Digests take 0.6 s more; verify, merge and report compute them.
void require_our_values(const fs::path& path, SQLite::Database& database) {
  for (const auto& problems : {misfits(database), misshapen_arrays(database), unknown_endings(database)})
    if (!problems.empty()) report_alteration(path, problems.front());
}

bool can_write_beside(const fs::path& path) {
  return access(path.c_str(), W_OK) == 0 && access(path.parent_path().c_str(), W_OK) == 0;
}

std::string uri(const fs::path& path, const char* how) {
  std::string text = "file:";
  for (const char byte : path.string())
    if (byte == '%' || byte == '?' || byte == '#')
      text += fmt::format("%{:02x}", static_cast<unsigned char>(byte));
    else
      text += byte;
  return text + how;
}

}  // namespace

void report_alteration(const fs::path& path, const std::string& problem) {
  throw Misuse(fmt::format(
      "results file '{0}' is damaged or was altered: {1}; expected the rows as attnbench recorded them; it is "
      "left untouched: `attnbench verify '{0}'` lists every problem; restore a copy, or measure again into "
      "another path",
      path.string(), on_one_line(problem)));
}

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

SQLite::Database open_for_writing(const fs::path& given, std::chrono::milliseconds wait) {
  const fs::path path = resolved(given);
  std::error_code absent;
  const fs::file_type type = fs::status(path, absent).type();
  const bool exists = fs::exists(fs::file_status(type));
  if (exists)
    require_regular_file(path, type);
  else
    create_folder_of(path);
  bool filled = size_or_zero(path) > 0;
  if (!filled) require_no_orphaned_log(path);
  return explained(path, [&] {
    const int create = exists ? 0 : SQLite::OPEN_CREATE;
    SQLite::Database database(path.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_URI | create);
    trust_nothing(database);
    if (filled) require_results_header(path, database);
    // SQLite opens a file without write permission read-only, and would complain only at the first measurement.
    if (sqlite3_db_readonly(database.getHandle(), "main") == 1)
      throw SQLite::Exception("no write permission", SQLITE_READONLY);
    database.setBusyTimeout(static_cast<int>(wait.count()));
    if (filled) filled = !is_taken_back(path, database);
    if (filled) require_integrity(path, database);
    require_or_create_schema(path, database);
    database.exec("PRAGMA foreign_keys = ON");
    define_functions(database);
    if (filled) require_our_values(path, database);
    return database;
  });
}

SQLite::Database open_for_recording(const fs::path& given, std::chrono::milliseconds wait) {
  SQLite::Database database = open_for_writing(given, wait);
  return explained(resolved(given), [&] {
    switch_to_log(database, wait);
    // NORMAL survives any kill. A power cut loses the last replicates but never leaves a partial one.
    database.exec("PRAGMA synchronous = NORMAL");
    return std::move(database);
  });
}

// With write permission, a reader goes through the log like a writer, and so leaves neither a log nor its index behind.
// Without permission (an archive, another user's results), a file without a log is opened as immutable: SQLite is
// promised that nobody changes it, and creates nothing beside it.
std::string name_for_reading(const fs::path& given) {
  const fs::path path = resolved(given);
  if (can_write_beside(path)) return path.string();
  return uri(path, write_ahead_log_size(path) > 0 ? "?mode=ro" : "?immutable=1");
}

SQLite::Database open_for_verifying(const fs::path& given, std::chrono::milliseconds wait) {
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
    const int mode = can_write_beside(path) ? SQLite::OPEN_READWRITE : SQLite::OPEN_READONLY;
    SQLite::Database database(name_for_reading(path), mode | SQLite::OPEN_URI);
    trust_nothing(database);
    require_results_header(path, database);
    database.setBusyTimeout(static_cast<int>(wait.count()));
    if (is_taken_back(path, database))
      throw Misuse(
          fmt::format("'{}' is empty: a run was killed before it recorded anything; expected a results file; run it "
                      "again, or give another path",
                      path.string()));
    require_integrity(path, database);
    require_our_schema(path, database.execAndGet("PRAGMA application_id").getInt64(),
                       database.execAndGet("PRAGMA user_version").getInt64());
    database.exec("PRAGMA query_only = ON");
    define_functions(database);
    return database;
  });
}

SQLite::Database open_for_reading(const fs::path& given, std::chrono::milliseconds wait) {
  SQLite::Database database = open_for_verifying(given, wait);
  explained(resolved(given), [&] { require_our_values(resolved(given), database); });
  return database;
}

}  // namespace attnbench
