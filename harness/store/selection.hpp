// Cells of a results file that meet conditions, and their numbers.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/linalg/matrix.hpp"

namespace SQLite {
class Database;
}

namespace attnbench {

// "m=64": a column of a cell or a parameter, and the value that the cell must have. Conditions on one column allow
// several values. A spec stands for every configuration that has its name and the parameters that it gives.
struct CellCondition {
  std::string column, value;
};

struct StoredColumn {
  std::string_view name;
  std::string_view type;  // text, integer or real
  std::string_view meaning;
};

// The columns that identify a cell, beside its parameters.
inline constexpr StoredColumn cell_columns[] = {
    {"experiment", "text", "the question asked: name and options"},
    {"method", "text", "spec of the method"},
    {"input", "text", "spec of the law or file that Q, K and V come from"},
    {"nq", "integer", "queries (rows of Q)"},
    {"n", "integer", "keys (rows of K and V)"},
    {"d", "integer", "columns of Q and K"},
    {"dv", "integer", "columns of V"},
    {"causal", "integer", "1: row i sees keys j <= i + mask_offset; 0: all keys"},
    {"mask_offset", "integer", "offset of the causal diagonal"},
    {"mask_keys", "integer", "keys that are not padding; -1: all"},
    {"precision", "text", "f32, f64 or bf16"},
    {"heads", "integer", "heads of the problem"},
    {"logit_scale", "real", "factor on the logits q.k"},
    {"seed", "text", "base seed, an unsigned 64-bit integer"},
    {"threads", "integer", "threads; 0 where they cannot change the numbers"},
    {"machine", "text", "where it was timed, and with which instructions; empty where that cannot change the numbers"},
};

// NOLINTNEXTLINE(bugprone-exception-escape): moving a JSON value throws nothing
struct StoredCell {
  std::int64_t id = 0;
  std::string key, source_version;
  std::vector<std::string> values;  // as printed, one for each of cell_columns
  nlohmann::json parameters;        // an object; a parameter with the name of a column is that column

  const std::string& column(std::string_view name) const;
  // A column or a parameter, as printed; nullopt if the cell has no such parameter.
  std::optional<std::string> value(const std::string& name) const;
  // Timings have samples, one a block of turns, where other experiments have one number a replicate.
  bool timing() const { return column("threads") != "0"; }
};

// The number that a value of a column or a parameter is; "true" is 1.
std::optional<double> number_in(const std::string& value);
// "2" is "2.0" and "true" is "1". Seeds of 64 bits are names: two may be the same double.
bool same_value(const std::string& a, const std::string& b);

// "m=64" as typed after --where. Throws Misuse.
CellCondition parse_condition(const std::string& text);

// The cells that meet all conditions, sorted by content: rowids follow the order of running. Throws Misuse for a
// condition that no cell meets; the message says which values there are. name: of the file, for messages.
std::vector<StoredCell> selected_cells(SQLite::Database& database, const std::string& name,
                                       const std::vector<CellCondition>& where);

// One metric of one cell.
struct CellSamples {
  StoredCell cell;
  std::string unit;                             // empty if no replicate has the metric
  std::vector<double> samples = {};             // one a replicate that is done, or one a block of turns
  Index replicates = 0, done = 0, lacking = 0;  // ended in any way; done; done but without the metric
  std::string ending = {};                      // of the last replicate that is not done
  std::string finished = {};                    // when the last replicate ended (UTC)
};

// That metric of these cells. An array that is not a timing's counts as lacking.
std::vector<CellSamples> measured_cells(const std::filesystem::path& results, std::vector<StoredCell> cells,
                                        const std::string& metric);
// The cells that meet all conditions, of an existing file.
std::vector<StoredCell> selected_cells(const std::filesystem::path& results, const std::vector<CellCondition>& where);

}  // namespace attnbench
