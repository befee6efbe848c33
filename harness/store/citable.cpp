#include "harness/store/citable.hpp"

#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/Statement.h>

#include "harness/store/database.hpp"

namespace attnbench {

Citable citable(const std::filesystem::path& results) {
  return explained(results, [&] {
    const SQLite::Database database = open_for_reading(results);
    const auto each_once = [&](const char* query) {
      SQLite::Statement select(database, query);
      std::set<std::string> found;
      while (select.executeStep()) found.insert(select.getColumn(0).getString());
      return found;
    };
    return Citable{.methods = each_once("SELECT DISTINCT method FROM cell"),
                   .sources = each_once("SELECT DISTINCT source FROM verdict WHERE source <> ''")};
  });
}

}  // namespace attnbench
