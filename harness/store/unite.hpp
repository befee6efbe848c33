// The SQL of merging: what an attached results file has comes into the one that it is attached to. Private to
// harness/store.
#pragma once

#include <SQLiteCpp/Database.h>

#include <string>

#include "harness/store/merge.hpp"

namespace attnbench {

// Adds the database `part` to `main`, in one transaction, by the rules of merge(). who: whose numbers they are, for the
// Misuse that is thrown when they differ.
void unite(SQLite::Database& database, const std::string& who, Merged& merged);

// Counts what main holds.
void count_all(SQLite::Database& database, Merged& merged);

}  // namespace attnbench
