// A file that people write as values that know their line, so that every message names the place. toml++ reads TOML.
// JSON is read for one more release, without lines.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "harness/linalg/matrix.hpp"

namespace attnbench {

struct DataValue;

// A table: keys with values, in the order of the file. Every function that reads throws Misuse with file and line for a
// value of another kind, and unless it takes a default, for a missing one.
class DataTable {
 public:
  DataTable(std::string file, size_t line);

  const std::vector<std::string>& keys() const { return keys_; }
  const DataValue* find(const std::string& key) const;  // null if missing
  const DataValue& at(const std::string& key) const;
  void set(const std::string& key, DataValue value);
  DataTable empty_there() const { return {file_, line_}; }  // another table with this place

  // Throws Misuse for a key that is not among these. what: names the table in the message, such as "a statement".
  void require_known(const std::string& what, const std::vector<std::string>& known) const;

  // Not empty. Line breaks and runs of spaces become one space. In JSON a long text may be a list of strings and
  // numbers, which are joined by spaces.
  std::string text(const std::string& key) const;
  std::string text_or(const std::string& key, std::string otherwise) const;  // also where the text is empty
  double number(const std::string& key) const;                               // finite
  double number_or(const std::string& key, double otherwise) const;
  bool flag_or(const std::string& key, bool otherwise) const;
  // One text or a list of them; none if missing.
  std::vector<std::string> texts(const std::string& key) const;
  std::vector<double> numbers(const std::string& key) const;  // one or a list
  DataTable table(const std::string& key) const;
  std::vector<DataTable> tables(const std::string& key) const;  // a list of them; none if missing
  // The place of the value of that key whose text is one of `known`. Throws Misuse with the nearest names.
  size_t one_of(const std::string& key, const std::string& otherwise, const std::vector<std::string>& known) const;

  std::string place() const { return place(line_); }  // "mine.recipe.toml, line 12"
  [[noreturn]] void refuse(const std::string& why) const;
  [[noreturn]] void refuse(const std::string& key, const std::string& why) const;

 private:
  std::string place(size_t line) const;

  std::string file_;
  size_t line_ = 1;  // 0: unknown
  std::vector<std::string> keys_;
  std::vector<DataValue> values_;
};

struct DataValue {
  using List = std::vector<DataValue>;
  std::variant<bool, Index, double, std::string, List, DataTable> content;
  size_t line = 1;

  template <class T>
  const T* as() const {
    return std::get_if<T>(&content);
  }
  std::string kind() const;  // "a string", "an integer", ...
  // As a user would write it in a text; the elements of a list with the separator between them. Throws std::logic_error
  // for a table.
  std::string text(const std::string& separator) const;
};

// Both throw Misuse with the line for a text that is not of the language, holds dates or null, or is too long or too
// deep for a file that people write. file: its name, for messages.
DataTable parse_toml(std::string_view text, const std::string& file);
DataTable parse_json(std::string_view text, const std::string& file);  // comments (// and /* */) may be anywhere

// The table as a TOML file.
std::string toml_of(const DataTable& table);

}  // namespace attnbench
