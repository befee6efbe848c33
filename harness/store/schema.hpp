// The tables of a results file, and how a file of an older schema comes to have them. Private to harness/store.
#pragma once

#include <SQLiteCpp/Database.h>

#include <cstdint>
#include <filesystem>

namespace attnbench {

// Throws Misuse for another program's file and for a schema that this program does not know.
void require_our_schema(const std::filesystem::path& path, std::int64_t application, std::int64_t version);

// Makes the tables of a new file or brings an older file up to date, in one transaction. Throws Misuse as above.
void create_or_update_schema(const std::filesystem::path& path, SQLite::Database& database);

// Lets queries read a file of an older schema as one of this schema; the file itself stays as it is.
void read_as_this_schema(SQLite::Database& database);

// True when the file is of an older schema than this program's.
bool is_older_schema(SQLite::Database& database);

}  // namespace attnbench
