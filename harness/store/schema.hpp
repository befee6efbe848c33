// The tables of a results file. Private to harness/store.
#pragma once

#include <SQLiteCpp/Database.h>

#include <cstdint>
#include <filesystem>

namespace attnbench {

// Throws Misuse for a file of another program and for a file with another schema.
void require_our_schema(const std::filesystem::path& path, std::int64_t application, std::int64_t version);

// Throws Misuse for a file whose tables differ from those that this program makes, or that has more than them: a
// trigger, a view, an index. Reads only SQLite's list of them, and so runs nothing that the file holds.
void require_our_tables(const std::filesystem::path& path, SQLite::Database& database);

// Creates the tables of a new file, in one transaction. Throws Misuse as above for a file that has tables.
void require_or_create_schema(const std::filesystem::path& path, SQLite::Database& database);

}  // namespace attnbench
