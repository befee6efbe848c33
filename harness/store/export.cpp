// Streams the long table of a results file line by line, as CSV (RFC 4180) or as a JSON array of objects.

#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/Transaction.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/errors/error.hpp"
#include "harness/store/database.hpp"
#include "harness/store/export_columns.hpp"

namespace attnbench {

namespace {

// Columns [first, first + count) of export_columns, as one query returns them.
struct Columns {
  size_t first, count;
};
constexpr Columns cell_columns{0, 17}, replicate_columns{17, 3}, metric_columns{20, 2}, clock_columns{24, 5};
constexpr size_t index_column = 22, value_column = 23;
static_assert(export_columns[cell_columns.count - 1].name == "machine");
static_assert(export_columns[replicate_columns.first].name == "replicate");
static_assert(export_columns[metric_columns.first].name == "metric");
static_assert(export_columns[index_column].name == "index" && export_columns[value_column].name == "value");
static_assert(export_columns[clock_columns.first].name == "seconds" && export_columns[clock_columns.first].clock);
static_assert(clock_columns.first + clock_columns.count == export_columns.size());

// Sorted by content, because rowids follow the order of running. Seeds are text, and shorter ones are smaller numbers.
// Ties (same cell, different source version) are broken by version and key.
constexpr const char* select_cells = R"sql(
  SELECT experiment, method, input, nq, n, d, dv, causal, mask_offset, mask_keys, precision, heads, logit_scale, seed,
         threads, parameters, machine, id
  FROM cell
  ORDER BY experiment, method, input, nq, n, d, dv, causal, mask_offset, mask_keys, precision, heads, logit_scale,
           length(seed), seed, threads, parameters, machine, source_version, key)sql";
// In the order of the primary keys, so that SQLite sorts nothing.
constexpr const char* select_measurements = R"sql(
  SELECT replicate.replicate, ending, reason, metric, unit, shape, value, array,
         seconds, finished, run, started, command
  FROM replicate
  LEFT JOIN measurement ON measurement.cell = replicate.cell AND measurement.replicate = replicate.replicate
  LEFT JOIN run ON run.id = replicate.run
  WHERE replicate.cell = ?
  ORDER BY replicate.replicate, metric)sql";
constexpr int id_in_cells = 17;
constexpr int replicate_in_rows = 0, metric_in_rows = 3, shape_in_rows = 5, value_in_rows = 6, array_in_rows = 7,
              clock_in_rows = 8;

// Prints a number as the shortest text that reads back to it, and every NaN as "nan".
std::string_view printed(double number, fmt::memory_buffer& scratch) {
  if (std::isnan(number)) return "nan";
  scratch.clear();
  fmt::format_to(std::back_inserter(scratch), "{}", number);
  return {scratch.data(), scratch.size()};
}

constexpr std::string_view formula_signs = "=+-@\t\r";

bool is_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

// Each format appends a field after a comma; a line drops its first comma.
struct Csv {
  static void open_table(std::string& out, bool clock) {
    std::string names;
    for (const ExportColumn& column : export_columns)
      if (clock || !column.clock) (names += ',') += column.name;
    (out += std::string_view(names).substr(1)) += '\n';
  }
  static void close_table(std::string&, bool) {}
  static void open_line(std::string&, bool) {}
  static void close_line(std::string& out) { out += '\n'; }

  static void missing(std::string& fields, size_t) { fields += ','; }
  static void integer(std::string& fields, size_t, std::int64_t value) {
    fmt::format_to(std::back_inserter(fields), ",{}", value);
  }
  static void real(std::string& fields, size_t, double value) {
    fmt::memory_buffer scratch;
    (fields += ',') += printed(value, scratch);
  }
  // Spreadsheets compute a cell that begins like a formula, so an apostrophe comes before such a text.
  static void text(std::string& fields, size_t, std::string_view value) {
    fields += ',';
    std::string as_text;
    if (!value.empty() && formula_signs.find(value[0]) != std::string_view::npos && !is_number(value))
      value = as_text.append("'").append(value);
    if (value.find_first_of(",\"\r\n") == std::string_view::npos) {
      fields += value;
      return;
    }
    fields += '"';
    for (const char c : value) {
      if (c == '"') fields += '"';
      fields += c;
    }
    fields += '"';
  }
};

struct Json {
  static void open_table(std::string& out, bool) { out += '['; }
  static void close_table(std::string& out, bool first) { out += first ? "]\n" : "\n]\n"; }
  static void open_line(std::string& out, bool first) { out += first ? "\n{" : ",\n{"; }
  static void close_line(std::string& out) { out += '}'; }

  static void name(std::string& fields, size_t column) { ((fields += ",\"") += export_columns[column].name) += "\":"; }
  static void missing(std::string& fields, size_t column) {
    name(fields, column);
    fields += "null";
  }
  static void integer(std::string& fields, size_t column, std::int64_t value) {
    name(fields, column);
    fmt::format_to(std::back_inserter(fields), "{}", value);
  }
  static void real(std::string& fields, size_t column, double value) {
    name(fields, column);
    fmt::memory_buffer scratch;
    const std::string_view digits = printed(value, scratch);
    if (std::isfinite(value))
      fields += digits;
    else
      ((fields += '"') += digits) += '"';
  }
  static void text(std::string& fields, size_t column, std::string_view value) {
    name(fields, column);
    if (std::ranges::all_of(value, [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; })) {
      ((fields += '"') += value) += '"';
      return;
    }
    // A reason may quote a path or a worker's last output, which need not be UTF-8, and may be shown by a terminal.
    fields += nlohmann::json(value).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  }
};

std::string_view text_of(const SQLite::Column& column) {
  const char* text = column.getText();  // call before getBytes, which counts the bytes that getText made
  return {text, static_cast<size_t>(column.getBytes())};
}

template <class Format>
void append(std::string& fields, Columns columns, SQLite::Statement& row, int first_in_row) {
  for (size_t i = 0; i < columns.count; ++i) {
    const SQLite::Column value = row.getColumn(first_in_row + static_cast<int>(i));
    const size_t column = columns.first + i;
    if (value.isNull())
      Format::missing(fields, column);
    else if (export_columns[column].type == "text")
      Format::text(fields, column, text_of(value));
    else if (export_columns[column].type == "integer")
      Format::integer(fields, column, value.getInt64());
    else
      Format::real(fields, column, value.getDouble());
  }
}

// Collects lines and writes them in blocks, so that memory does not grow with the table.
template <class Format>
class Lines {
 public:
  Lines(std::ostream& out, bool clock) : out_(out) { Format::open_table(buffer_, clock); }

  void line(std::initializer_list<std::string_view> parts) {
    Format::open_line(buffer_, first_);
    first_ = false;
    bool leading = true;
    for (const std::string_view part : parts) {
      buffer_ += leading ? part.substr(1) : part;
      leading = false;
    }
    Format::close_line(buffer_);
    if (buffer_.size() > block) flush();
  }

  void finish() {
    Format::close_table(buffer_, first_);
    flush();
    out_.flush();
    if (!out_)
      throw Misuse("the export could not be written; expected room and permission where it goes; check the disk");
  }

 private:
  static constexpr size_t block = 1 << 16;

  void flush() {
    out_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    buffer_.clear();
  }

  std::ostream& out_;
  std::string buffer_;
  bool first_ = true;
};

// "3;7": the index of an element in row-major order, which advances like an odometer.
class Place {
 public:
  // shape: a JSON list of integers, as the store writes it
  explicit Place(std::string_view shape) {
    for (const char* at = shape.data(); at != shape.data() + shape.size(); ++at) {
      Index size = 0;
      const auto [end, error] = std::from_chars(at, shape.data() + shape.size(), size);
      if (error != std::errc()) continue;  // skip a bracket, comma or space
      shape_.push_back(size);
      at = end - 1;
    }
    place_.resize(shape_.size(), 0);
  }
  std::string text() const {
    std::string joined;
    for (const Index i : place_) fmt::format_to(std::back_inserter(joined), "{}{}", joined.empty() ? "" : ";", i);
    return joined;
  }
  void advance() {
    for (size_t axis = shape_.size(); axis-- > 0;) {
      if (++place_[axis] < shape_[axis]) return;
      place_[axis] = 0;
    }
  }

 private:
  std::vector<Index> shape_, place_;
};

template <class Format>
void write_numbers(Lines<Format>& lines, std::string_view before, std::string_view metric, SQLite::Statement& row,
                   std::string_view after) {
  std::string number;
  const SQLite::Column array = row.getColumn(array_in_rows);
  if (array.isNull()) {
    Format::missing(number, index_column);
    const SQLite::Column value = row.getColumn(value_in_rows);
    if (value.isNull())
      Format::missing(number, value_column);
    else
      Format::real(number, value_column, value.getDouble());
    lines.line({before, metric, number, after});
    return;
  }
  Place place(text_of(row.getColumn(shape_in_rows)));
  const std::span bytes(static_cast<const char*>(array.getBlob()), static_cast<size_t>(array.getBytes()));
  for (size_t at = 0; at + sizeof(double) <= bytes.size(); at += sizeof(double), place.advance()) {
    double value;
    std::memcpy(&value, &bytes[at], sizeof value);  // SQLite does not align blobs
    number.clear();
    Format::text(number, index_column, place.text());
    Format::real(number, value_column, value);
    lines.line({before, metric, number, after});
  }
}

template <class Format>
void write_table(SQLite::Database& database, std::ostream& out, bool clock) {
  const SQLite::Transaction snapshot(database);  // hides the writes of a run that records at the same time
  SQLite::Statement cells(database, select_cells), rows(database, select_measurements);
  Lines<Format> lines(out, clock);
  // Parts of a line: those that cells, replicates and metrics repeat, and the clock.
  std::string cell, before, metric, after;
  while (cells.executeStep()) {
    cell.clear();
    append<Format>(cell, cell_columns, cells, 0);
    rows.reset();
    rows.bind(1, cells.getColumn(id_in_cells).getInt64());
    std::optional<std::int64_t> last;
    while (rows.executeStep()) {
      const std::int64_t replicate = rows.getColumn(replicate_in_rows).getInt64();
      if (replicate != last) {
        before = cell;
        append<Format>(before, replicate_columns, rows, replicate_in_rows);
        after.clear();
        if (clock) append<Format>(after, clock_columns, rows, clock_in_rows);
        last = replicate;
      }
      metric.clear();
      append<Format>(metric, metric_columns, rows, metric_in_rows);
      write_numbers(lines, before, metric, rows, after);
    }
  }
  lines.finish();
}

}  // namespace

void Store::export_csv(std::ostream& out, bool clock) const {
  const std::lock_guard lock(implementation_->mutex);
  explained(implementation_->path, [&] { write_table<Csv>(implementation_->database, out, clock); });
}

void Store::export_json(std::ostream& out, bool clock) const {
  const std::lock_guard lock(implementation_->mutex);
  explained(implementation_->path, [&] { write_table<Json>(implementation_->database, out, clock); });
}

}  // namespace attnbench
