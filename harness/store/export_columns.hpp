// The columns of the exported long table, in order; `attnbench export --help` prints them.
#pragma once

#include <array>
#include <string_view>

namespace attnbench {

struct ExportColumn {
  std::string_view name;
  std::string_view type;  // text, integer or real
  std::string_view meaning;
  bool clock = false;  // differs between equal runs; exported only on request, after all other columns
};

// One line per number; the first 17 columns identify a cell. A replicate that ended without numbers has one line whose
// metric, unit, index and value are empty (null in JSON).
inline constexpr std::array<ExportColumn, 29> export_columns = {{
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
    {"precision", "text", "f32 or f64"},
    {"heads", "integer", "heads of the problem"},
    {"logit_scale", "real", "factor on the logits q.k"},
    {"seed", "text", "base seed, an unsigned 64-bit integer"},
    {"threads", "integer", "threads; 0 where they cannot change the numbers"},
    {"parameters", "text", "JSON object: every parameter of method, input and experiment"},
    {"machine", "text", "where it was timed; empty where that cannot change the numbers"},
    {"replicate", "integer", "which independent repetition, from 0"},
    {"ending", "text", "done, skipped, failed, crashed, timed out, out of memory or invalid"},
    {"reason", "text", "why it ended otherwise than done"},
    {"metric", "text", "what was measured"},
    {"unit", "text", "unit of value; 1 for ratios and counts"},
    {"index", "text", "place in an array, as 3 or 3;7 (row;column); empty for a scalar"},
    {"value", "real", "the number; inf, -inf and nan as such (strings in JSON)"},
    {"seconds", "real", "wall time of the replicate", true},
    {"finished", "text", "when the replicate ended (UTC)", true},
    {"run", "integer", "number of the run that recorded it", true},
    {"started", "text", "when that run started (UTC)", true},
    {"command", "text", "command line of that run", true},
}};

}  // namespace attnbench
