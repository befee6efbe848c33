// The tables of a results file. Private to harness/store.
#pragma once

#include <SQLiteCpp/Database.h>

#include <cstdint>
#include <filesystem>

namespace attnbench {

// Throws Misuse for another program's file and for a file of another schema than this program's.
void require_our_schema(const std::filesystem::path& path, std::int64_t application, std::int64_t version);

// Makes the tables of a new file, in one transaction. Throws Misuse as above for a file that has tables.
void require_or_create_schema(const std::filesystem::path& path, SQLite::Database& database);

}  // namespace attnbench
