// Streams the table of a results file line by line, as CSV (RFC 4180) or as a JSON array of objects.
#include "harness/store/export.hpp"

#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/Transaction.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <iterator>
#include <map>
#include <optional>
#include <ostream>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "harness/core/spec.hpp"
#include "harness/errors/error.hpp"
#include "harness/statistics/intervals.hpp"
#include "harness/store/database.hpp"
#include "harness/store/store.hpp"

namespace attnbench {

namespace {

// In the order of the primary keys, so that SQLite sorts nothing.
constexpr const char* select_measurements = R"sql(
  SELECT replicate.replicate, ending, reason, metric, unit, shape, value, array,
         seconds, finished, run, started, command
  FROM replicate
  LEFT JOIN measurement ON measurement.cell = replicate.cell AND measurement.replicate = replicate.replicate
  LEFT JOIN run ON run.id = replicate.run
  WHERE replicate.cell = ?
  ORDER BY replicate.replicate, metric)sql";
enum Selected { at_replicate, at_ending, at_reason, at_metric, at_unit, at_shape, at_value, at_array, at_clock };

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

// Each format appends a field after a comma; a line drops its first comma. column: its name.
struct Csv {
  static void open_table(std::string& out, const std::vector<std::string>& columns) {
    std::string names;
    for (const std::string& column : columns) text(names, column, column);
    (out += std::string_view(names).substr(1)) += '\n';
  }
  static void close_table(std::string&, bool) {}
  static void open_line(std::string&, bool) {}
  static void close_line(std::string& out) { out += '\n'; }

  static void missing(std::string& fields, std::string_view) { fields += ','; }
  static void number(std::string& fields, std::string_view, std::string_view digits) { (fields += ',') += digits; }
  static void real(std::string& fields, std::string_view, double value) {
    fmt::memory_buffer scratch;
    (fields += ',') += printed(value, scratch);
  }
  // Spreadsheets compute a cell that begins like a formula, so an apostrophe comes before such a text.
  static void text(std::string& fields, std::string_view, std::string_view value) {
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
  static void open_table(std::string& out, const std::vector<std::string>&) { out += '['; }
  static void close_table(std::string& out, bool first) { out += first ? "]\n" : "\n]\n"; }
  static void open_line(std::string& out, bool first) { out += first ? "\n{" : ",\n{"; }
  static void close_line(std::string& out) { out += '}'; }

  static void quoted(std::string& fields, std::string_view value) {
    if (std::ranges::all_of(value, [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; })) {
      ((fields += '"') += value) += '"';
      return;
    }
    // A reason may quote a path or a worker's last output, which need not be UTF-8, and may be shown by a terminal.
    fields += nlohmann::json(value).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  }
  static void name(std::string& fields, std::string_view column) {
    fields += ',';
    quoted(fields, column);
    fields += ':';
  }
  static void missing(std::string& fields, std::string_view column) {
    name(fields, column);
    fields += "null";
  }
  static void number(std::string& fields, std::string_view column, std::string_view digits) {
    name(fields, column);
    fields += digits;
  }
  static void real(std::string& fields, std::string_view column, double value) {
    name(fields, column);
    fmt::memory_buffer scratch;
    const std::string_view digits = printed(value, scratch);
    if (std::isfinite(value))
      fields += digits;
    else
      ((fields += '"') += digits) += '"';
  }
  static void text(std::string& fields, std::string_view column, std::string_view value) {
    name(fields, column);
    quoted(fields, value);
  }
};

std::string_view text_of(const SQLite::Column& column) {
  const char* text = column.getText();  // call before getBytes, which counts the bytes that getText made
  return {text, static_cast<size_t>(column.getBytes())};
}

template <class Format>
void append(std::string& fields, const StoredColumn& column, const SQLite::Column& value) {
  if (value.isNull())
    Format::missing(fields, column.name);
  else if (column.type == "text")
    Format::text(fields, column.name, text_of(value));
  else if (column.type == "integer")
    Format::number(fields, column.name, std::to_string(value.getInt64()));
  else
    Format::real(fields, column.name, value.getDouble());
}

std::vector<double> numbers_of(const SQLite::Column& array) {
  std::vector<double> numbers(static_cast<size_t>(array.getBytes()) / sizeof(double));
  if (!numbers.empty()) std::memcpy(numbers.data(), array.getBlob(), numbers.size() * sizeof(double));
  return numbers;
}

// Collects lines and writes them in blocks, so that memory does not grow with the table.
template <class Format>
class Lines {
 public:
  Lines(std::ostream& out, const std::vector<std::string>& columns) : out_(out) {
    Format::open_table(buffer_, columns);
  }

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

// The cells of an export with their parameters and metrics, found before the first line is written.
struct Contents {
  std::vector<StoredCell> cells;
  std::vector<std::string> parameters;  // of any cell
  std::vector<std::string> metrics;     // with wide or when some were asked for: those that the table has
};

std::string experiment_of(const StoredCell& cell) { return parse_spec(cell.column("experiment")).name; }

Contents contents_of(SQLite::Database& database, const std::string& file, const ExportRequest& request) {
  Contents all{.cells = selected_cells(database, file, request.where), .parameters = {}, .metrics = {}};
  if (request.wide || !request.metrics.empty()) {
    SQLite::Statement select(database, "SELECT DISTINCT metric, shape FROM measurement WHERE cell = ?");
    const std::set<std::string> asked(request.metrics.begin(), request.metrics.end());
    std::set<std::string> tabled, arrays, measuring;  // metrics, metrics, and experiments that have one
    for (const StoredCell& cell : all.cells) {
      select.reset();
      select.bind(1, cell.id);
      while (select.executeStep()) {
        const std::string metric = select.getColumn(0).getString(), shape = select.getColumn(1).getString();
        (request.arrays || shape == "[]" || is_samples(cell, shape) ? tabled : arrays).insert(metric);
        if (asked.contains(metric)) measuring.insert(experiment_of(cell));
      }
    }
    for (const std::string& metric : request.metrics) {
      if (tabled.contains(metric)) continue;
      if (arrays.contains(metric))
        throw Misuse(fmt::format(
            "--metric {}: it is an array in '{}'; add --arrays, which gives a row for each element", metric, file));
      tabled.insert(arrays.begin(), arrays.end());
      throw Misuse(fmt::format("--metric {}: no selected cell of '{}' has it{}", metric, file,
                               nearest_names(metric, std::vector<std::string>(tabled.begin(), tabled.end()))));
    }
    if (!asked.empty())
      std::erase_if(all.cells, [&](const auto& cell) { return !measuring.contains(experiment_of(cell)); });
    const auto& columns = asked.empty() ? tabled : asked;
    all.metrics.assign(columns.begin(), columns.end());
  }
  std::set<std::string> names;
  for (const StoredCell& cell : all.cells)
    for (const auto& [name, value] : cell.parameters.items()) names.insert(name);
  all.parameters.assign(names.begin(), names.end());
  return all;
}

template <class Format>
class Table {
 public:
  Table(SQLite::Database& database, const std::string& file, const ExportRequest& request, std::ostream& out)
      : request_(request),
        contents_(contents_of(database, file, request)),
        lines_(out, columns()),
        rows_(database, select_measurements) {}

  void write() {
    for (const StoredCell& cell : contents_.cells) write_cell(cell);
    lines_.finish();
  }

 private:
  static bool about_a_number(std::string_view column) {
    return column == "metric" || column == "unit" || column == "index" || column == "value";
  }
  // A metric with the name of another column: a wide table keeps both.
  std::string column_of(const std::string& metric, const std::vector<std::string>& others) const {
    return std::find(others.begin(), others.end(), metric) == others.end() ? metric : "metric_" + metric;
  }

  std::vector<std::string> columns() {
    std::vector<std::string> names;
    for (const StoredColumn& column : cell_columns) names.emplace_back(column.name);
    names.insert(names.end(), contents_.parameters.begin(), contents_.parameters.end());
    for (const StoredColumn& column : row_columns)
      if (!(request_.wide && about_a_number(column.name)) && (request_.arrays || column.name != "index"))
        names.emplace_back(column.name);
    std::vector<std::string> clock;
    for (const StoredColumn& column : clock_columns)
      if (request_.clock) clock.emplace_back(column.name);
    if (request_.wide) {
      std::vector<std::string> others = names;
      others.insert(others.end(), clock.begin(), clock.end());
      for (const std::string& metric : contents_.metrics) names.push_back(column_of(metric, others));
      metric_columns_.assign(names.end() - std::ssize(contents_.metrics), names.end());
    }
    names.insert(names.end(), clock.begin(), clock.end());
    return names;
  }

  std::string fields_of(const StoredCell& cell) const {
    std::string fields;
    for (size_t i = 0; i < cell.values.size(); ++i) {
      const StoredColumn& column = cell_columns[i];
      if (column.type == "text")
        Format::text(fields, column.name, cell.values[i]);
      else
        Format::number(fields, column.name, cell.values[i]);
    }
    for (const std::string& name : contents_.parameters) {
      const auto found = cell.parameters.find(name);
      if (found == cell.parameters.end())
        Format::missing(fields, name);
      else if (found->is_number())
        Format::number(fields, name, found->dump());
      else
        Format::text(fields, name, *cell.value(name));
    }
    return fields;
  }

  bool asked(const std::string& metric) const {
    return request_.metrics.empty() ||
           std::find(request_.metrics.begin(), request_.metrics.end(), metric) != request_.metrics.end();
  }

  void write_cell(const StoredCell& cell) {
    const std::string fields = fields_of(cell);
    rows_.reset();
    rows_.bind(1, cell.id);
    std::optional<std::int64_t> last;
    while (rows_.executeStep()) {
      const std::int64_t replicate = rows_.getColumn(at_replicate).getInt64();
      if (replicate != last) {
        if (last) finish_replicate();
        begin_replicate(fields);
        last = replicate;
      }
      if (!rows_.getColumn(at_metric).isNull()) write_measurement(cell);
    }
    if (last) finish_replicate();
  }

  void begin_replicate(const std::string& cell) {
    before_ = cell;
    for (int i = 0; i < 3; ++i) append<Format>(before_, row_columns[i], rows_.getColumn(at_replicate + i));
    after_.clear();
    if (request_.clock)
      for (int i = 0; i < 5; ++i) append<Format>(after_, clock_columns[i], rows_.getColumn(at_clock + i));
    numbers_.clear();
    written_.clear();
  }

  void write_measurement(const StoredCell& cell) {
    const std::string metric = rows_.getColumn(at_metric).getString();
    if (!asked(metric)) return;
    const SQLite::Column array = rows_.getColumn(at_array);
    const std::string shape = rows_.getColumn(at_shape).getString();
    if (!array.isNull() && request_.arrays) {
      Place place(shape);
      for (const double value : numbers_of(array)) {
        write_number(metric, place.text(), value);
        place.advance();
      }
    } else if (array.isNull()) {
      write_number(metric, "", rows_.getColumn(at_value).getDouble());
    } else if (is_samples(cell, shape) && array.getBytes() > 0) {
      write_number(metric, "", median(numbers_of(array)));
    }
  }

  void write_number(const std::string& metric, const std::string& index, double value) {
    if (request_.wide) {
      numbers_[metric] = value;
      return;
    }
    std::string number;
    append<Format>(number, row_columns[3], rows_.getColumn(at_metric));
    append<Format>(number, row_columns[4], rows_.getColumn(at_unit));
    if (request_.arrays && index.empty()) Format::missing(number, "index");
    if (request_.arrays && !index.empty()) Format::text(number, "index", index);
    Format::real(number, "value", value);
    lines_.line({before_, number, after_});
    written_.insert(metric);
  }

  // Writes the line of a wide table, or lines without a value for metrics that the replicate lacks.
  void finish_replicate() {
    std::string fields;
    if (request_.wide) {
      for (size_t i = 0; i < contents_.metrics.size(); ++i) {
        const auto found = numbers_.find(contents_.metrics[i]);
        if (found == numbers_.end())
          Format::missing(fields, metric_columns_[i]);
        else
          Format::real(fields, metric_columns_[i], found->second);
      }
      lines_.line({before_, fields, after_});
      return;
    }
    std::vector<std::string> lacking;
    for (const std::string& metric : request_.metrics)
      if (!written_.contains(metric)) lacking.push_back(metric);
    if (request_.metrics.empty() && written_.empty()) lacking.emplace_back();
    for (const std::string& metric : lacking) {
      fields.clear();
      if (metric.empty())
        Format::missing(fields, "metric");
      else
        Format::text(fields, "metric", metric);
      Format::missing(fields, "unit");
      if (request_.arrays) Format::missing(fields, "index");
      Format::missing(fields, "value");
      lines_.line({before_, fields, after_});
    }
  }

  const ExportRequest& request_;
  Contents contents_;
  std::vector<std::string> metric_columns_ = {};  // of a wide table
  Lines<Format> lines_;
  SQLite::Statement rows_;
  std::string before_ = {}, after_ = {};        // fields of a replicate: of its cell and its ending, and of the clock
  std::map<std::string, double> numbers_ = {};  // of a replicate, for a wide table
  std::set<std::string> written_ = {};          // metrics of a replicate
};

}  // namespace

bool is_samples(const StoredCell& cell, const std::string& shape) {
  return cell.timing() && shape.starts_with('[') && shape.find(',') == std::string::npos && shape != "[]";
}

void Store::export_table(std::ostream& out, const ExportRequest& request) const {
  if (request.wide && request.arrays)
    throw Misuse("--wide has one row a replicate and --arrays one row an element; keep one of them");
  const std::lock_guard lock(implementation_->mutex);
  explained(implementation_->path, [&] {
    SQLite::Database& database = implementation_->database;
    const std::string file = implementation_->path.string();
    const SQLite::Transaction snapshot(database);  // hides the writes of a run that records at the same time
    if (request.format == ExportRequest::Format::csv)
      Table<Csv>(database, file, request, out).write();
    else
      Table<Json>(database, file, request, out).write();
  });
}

}  // namespace attnbench
