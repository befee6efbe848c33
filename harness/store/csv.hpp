// Tables of comma-separated values, as RFC 4180 defines them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace attnbench {

// The rows of the table, each with its fields; empty lines are left out. A field in quotes may hold commas, line breaks
// and quotes, which are doubled. Throws Misuse if a quote is not closed, or if text follows the one that closes a
// field.
std::vector<std::vector<std::string>> rows_of_csv(std::string_view table);

}  // namespace attnbench
