// The SQLite file behind a Store: opens it, checks it before SQLite may write, and explains SQLite's errors. Private to
// harness/store and harness/figures.
#pragma once

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Exception.h>

#include <chrono>
#include <filesystem>
#include <mutex>
#include <string>

#include "harness/errors/error.hpp"
#include "harness/store/store.hpp"

namespace attnbench {

// How long we wait while another run holds the file. A transaction takes milliseconds, so a run that holds it longer is
// stuck or stopped in a debugger.
inline constexpr std::chrono::milliseconds patience{10'000};

// The file is cut off or corrupt.
class Damage : public Misuse {
 public:
  using Misuse::Misuse;
};

// The endings for which settled() is true, as an SQL list.
inline constexpr const char* settled_endings = "('done', 'skipped', 'invalid')";

// All check the file before SQLite may change it, and run nothing that it holds: its header, that its tables are those
// that this program makes, its pages, and, except open_for_verifying, the types, texts, shapes and endings in it. Files
// of other programs and of newer versions, and files with other tables or values, throw Misuse, broken files throw
// Damage, and all remain unchanged. open_for_recording is for many small transactions and uses a write-ahead log, which
// does not work on a shared folder. open_for_writing is for few transactions, in the mode that the file has.
SQLite::Database open_for_recording(const std::filesystem::path& path, std::chrono::milliseconds wait = patience);
SQLite::Database open_for_writing(const std::filesystem::path& path, std::chrono::milliseconds wait = patience);
SQLite::Database open_for_reading(const std::filesystem::path& path, std::chrono::milliseconds wait = patience);
SQLite::Database open_for_verifying(const std::filesystem::path& path, std::chrono::milliseconds wait = patience);

// The name by which SQLite opens the file for reading, or attaches it to a connection that accepts URIs (those for
// writing do).
std::string name_for_reading(const std::filesystem::path& path);

// Throws Misuse for a file with rows that no attnbench wrote. problem: the first that was found.
[[noreturn]] void report_alteration(const std::filesystem::path& path, const std::string& problem);

// Throws Misuse for problems that the user can fix (disk full, no permission, held by another run, corrupt), otherwise
// std::logic_error.
[[noreturn]] void explain(const std::filesystem::path& path, const SQLite::Exception& error);

// Runs action() and explains SQLite's errors.
template <class Action>
decltype(auto) explained(const std::filesystem::path& path, Action&& action) try {
  return action();
} catch (const SQLite::Exception& error) {
  explain(path, error);
}

struct Store::Implementation {
  std::filesystem::path path;
  SQLite::Database database;
  std::mutex mutex = {};  // worker threads share one connection, which has one transaction at a time
};

}  // namespace attnbench
