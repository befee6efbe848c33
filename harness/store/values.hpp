// Whether the values of a results file are ones that attnbench writes. SQLite itself converts no value to the type of
// its column if that would lose something, and looks into no text. Private to harness/store.
#pragma once

#include <SQLiteCpp/Database.h>

#include <string>
#include <vector>

namespace attnbench {

// One line for each column with values of another type, or with texts that are not UTF-8.
std::vector<std::string> misfits(SQLite::Database& database);

// The same for arrays whose bytes do not fit their shape. Reads no array, only its length.
std::vector<std::string> misshapen_arrays(SQLite::Database& database);

// Does the same for endings that the program does not know.
std::vector<std::string> unknown_endings(SQLite::Database& database);

}  // namespace attnbench
