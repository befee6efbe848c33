#include "harness/store/reference.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "harness/core/file_bytes.hpp"
#include "harness/core/installed.hpp"
#include "harness/errors/error.hpp"
#include "harness/store/csv.hpp"

namespace attnbench {

namespace {

// The writer puts an apostrophe before a text that a spreadsheet would compute.
std::string without_apostrophe(const std::string& text) {
  return text.size() > 1 && text[0] == '\'' && std::string_view("=+-@\t\r").find(text[1]) != std::string_view::npos
             ? text.substr(1)
             : text;
}

Reference reference_of(const std::vector<std::vector<std::string>>& rows) {
  if (rows.empty()) throw Misuse("it is empty");
  const auto& names = rows.front();
  const auto place_of = [&](const char* name) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) throw Misuse(fmt::format("its first line names no column '{}'", name));
    return static_cast<size_t>(found - names.begin());
  };
  const size_t recipe = place_of("recipe"), size = place_of("size"), outcome = place_of("outcome"),
               statement = place_of("statement");
  Reference reference;
  for (size_t row = 1; row < rows.size(); ++row) {
    const auto& fields = rows[row];
    if (fields.size() != names.size())
      throw Misuse(
          fmt::format("row {} has {} fields; its first line names {} columns", row, fields.size(), names.size()));
    const auto ruling = ruling_named(fields[outcome]);
    if (!ruling)
      throw Misuse(fmt::format("row {} has the outcome '{}'; expected {}", row, fields[outcome], all_rulings()));
    reference.insert_or_assign({fields[recipe], without_apostrophe(fields[statement])},
                               ReferenceVerdict{fields[size], *ruling});
  }
  return reference;
}

}  // namespace

std::filesystem::path reference_file() { return source_tree() / "results/reference/verdicts.csv"; }

Reference read_reference(const std::filesystem::path& file) {
  try {
    const auto table = file_bytes(file);
    if (!table) throw Misuse("it cannot be read");
    return reference_of(rows_of_csv(*table));
  } catch (const Misuse& misuse) {
    throw Misuse(fmt::format("the reference {}: {}; expected the table that scripts/verdicts.py --format csv writes",
                             file.string(), misuse.what()));
  }
}

BesideReference compared(const std::string& recipe, const Verdict& verdict, const Reference& reference) {
  using Result = BesideReference::Result;
  const auto found = reference.find({recipe, verdict.statement.text});
  if (found == reference.end())
    return {contradicts_expectation(verdict) ? Result::unexpected : Result::as_expected, nullptr};
  const Ruling here = verdict.finding.ruling, there = found->second.ruling;
  const Result result = here == there                                   ? Result::same
                        : here == Ruling::open || there == Ruling::open ? Result::undecided
                                                                        : Result::different;
  return {result, &found->second};
}

}  // namespace attnbench
