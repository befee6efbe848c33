// The SQL of merging: copies the content of an attached results file into the one that it is attached to. Private to
// harness/store.
#pragma once

#include <SQLiteCpp/Database.h>

#include <string>

#include "harness/store/merge.hpp"

namespace attnbench {

// Adds the database `part` to `main` in one transaction, by the rules of merge(). who: the files that the numbers
// belong to, for the Misuse that is thrown when they differ.
void unite(SQLite::Database& database, const std::string& who, Merged& merged);

// Counts the content of main.
void count_all(SQLite::Database& database, Merged& merged);

}  // namespace attnbench
