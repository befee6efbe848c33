// The SQLite file behind a Store: how it is opened, what must hold before SQLite may write, and what its errors mean.
// Private to harness/store.
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

// How long another run may hold the file before we give up. A transaction takes milliseconds, so whoever is waited for
// longer than this is stuck or is being stopped in a debugger.
inline constexpr std::chrono::milliseconds patience{10'000};

// The file is cut off or corrupt.
class Damage : public Misuse {
 public:
  using Misuse::Misuse;
};

// Those of settled(), for SQL.
inline constexpr const char* settled_endings = "('done', 'skipped', 'invalid')";

// All check the file before SQLite may change it: foreign and newer files throw Misuse, broken ones Damage, and they
// stay as they are. For recording: many small transactions, with a log, which a shared folder does not bear. For
// writing: few transactions, in the mode that the file is in.
SQLite::Database open_for_recording(const std::filesystem::path& path, std::chrono::milliseconds wait = patience);
SQLite::Database open_for_writing(const std::filesystem::path& path, std::chrono::milliseconds wait = patience);
SQLite::Database open_for_reading(const std::filesystem::path& path, std::chrono::milliseconds wait = patience);

// What SQLite is told to open for reading, or to attach to a connection that knows URIs (which those for writing do).
std::string name_for_reading(const std::filesystem::path& path);

// Misuse for what the user can mend (disk full, no permission, held by another run, corrupt); std::logic_error else.
[[noreturn]] void explain(const std::filesystem::path& path, const SQLite::Exception& error);

// action(), with the errors of SQLite explained.
template <class Action>
decltype(auto) explained(const std::filesystem::path& path, Action&& action) try {
  return action();
} catch (const SQLite::Exception& error) {
  explain(path, error);
}

struct Store::Implementation {
  std::filesystem::path path;
  SQLite::Database database;
  std::mutex mutex = {};  // worker threads share one connection, and a connection has one transaction at a time
};

}  // namespace attnbench
