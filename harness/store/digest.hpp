// The digests of a results file: which rows each covers, and the SQL that computes it. Private to harness/store.
//
// A digest notices a flipped bit and an altered, exchanged or moved value. It is not a signature: anyone who knows this
// file can compute it as well. It is 16 hexadecimal digits: hash_bytes of every 64 bytes of the values, hash_bytes of
// every 64 bytes of these hashes, and so on until one hash is left. Computed that way, NumPy hashes a file with arrays
// of megabytes in a second (scripts/results_file.py).
#pragma once

#include <SQLiteCpp/Database.h>

#include <string>
#include <string_view>
#include <vector>

namespace attnbench {

// The columns of a cell that its readers see: all but its id, which differs from file to file. Each begins with the
// prefix, such as "c.".
std::string cell_columns_in_sql(const std::string& prefix);

// A table whose rows have a digest. Both texts are SQL expressions over one row of the table.
struct Sealed {
  const char* table;
  std::string place;   // names the row
  std::string digest;  // of that row, and of the rows of other tables that belong to it
};
const std::vector<Sealed>& sealed_tables();

// An UPDATE of the digest in the rows of that table for which the condition holds.
std::string seal(std::string_view table, std::string_view condition);

// Defines for this connection the SQL functions
//   digest(value, ...)   an aggregate: the digest of all values of all rows, in their order
//   is_text(value, ...)  whether all values are texts for which is_text (text.hpp) is true
//   elements(shape)      elements_of (shape.hpp), or NULL
void define_functions(SQLite::Database& database);

// Of one run of bytes, padded with zeros to blocks of 64 bytes.
std::string digest_of(std::string bytes);

}  // namespace attnbench
