#include "harness/store/csv.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "harness/errors/error.hpp"

namespace attnbench {

namespace {

// Reads the field in quotes that begins at `at`, and moves `at` behind the quote that closes it.
std::string quoted_field(std::string_view table, size_t& at) {
  const size_t begin = at++;
  std::string field;
  for (; at < table.size(); ++at) {
    if (table[at] == '"' && table.substr(at + 1, 1) != "\"") {
      ++at;
      if (at < table.size() && table.find_first_of(",\r\n", at) != at)
        throw Misuse(fmt::format("text follows a field in quotes, at byte {}: expected a comma or a new line", at));
      return field;
    }
    at += table[at] == '"';
    field += table[at];
  }
  throw Misuse(fmt::format("the quote at byte {} is not closed", begin));
}

}  // namespace

std::vector<std::vector<std::string>> rows_of_csv(std::string_view table) {
  std::vector<std::vector<std::string>> rows;
  for (size_t at = 0; at < table.size();) {
    std::vector<std::string> row;
    for (bool more = true; more;) {
      if (table.substr(at, 1) == "\"") {
        row.push_back(quoted_field(table, at));
      } else {
        const size_t end = std::min(table.find_first_of(",\r\n", at), table.size());
        row.emplace_back(table.substr(at, end - at));
        at = end;
      }
      more = table.substr(at, 1) == ",";
      at += more;
    }
    if (row.size() > 1 || !row.front().empty()) rows.push_back(std::move(row));
    at += table.substr(at, 1) == "\r";
    at += table.substr(at, 1) == "\n";
  }
  return rows;
}

}  // namespace attnbench
