// A JSON file as values that know their line, so that every message names the place. nlohmann_json parses; its own
// values do not know where they began.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "harness/linalg/matrix.hpp"

namespace attnbench {

struct JsonValue;

// An object: keys with values, in the order of the file. Every function that reads throws Misuse with file and line for
// a value of another kind, and unless it takes a default, for a missing one.
class JsonObject {
 public:
  JsonObject(std::string file, size_t line);

  const std::vector<std::string>& keys() const { return keys_; }
  const JsonValue* find(const std::string& key) const;  // null if missing
  const JsonValue& at(const std::string& key) const;
  void set(const std::string& key, JsonValue value);

  // Throws Misuse for a key that is not among these. what: names the object in the message, such as "a statement".
  void require_known(const std::string& what, const std::vector<std::string>& known) const;

  // Not empty. A long text may be a list of strings and numbers, which are joined by spaces.
  std::string text(const std::string& key) const;
  std::string text_or(const std::string& key, std::string otherwise) const;
  double number(const std::string& key) const;  // finite
  double number_or(const std::string& key, double otherwise) const;
  bool flag_or(const std::string& key, bool otherwise) const;
  // One text or a list of them; none if missing.
  std::vector<std::string> texts(const std::string& key) const;
  std::vector<double> numbers(const std::string& key) const;  // one or a list
  JsonObject object(const std::string& key) const;
  std::vector<JsonObject> objects(const std::string& key) const;  // a list of them; none if missing

  std::string place() const { return place(line_); }  // "mine.recipe.json, line 12"
  [[noreturn]] void refuse(const std::string& why) const;
  [[noreturn]] void refuse(const std::string& key, const std::string& why) const;

 private:
  std::string place(size_t line) const;

  std::string file_;
  size_t line_ = 1;
  std::vector<std::string> keys_;
  std::vector<JsonValue> values_;
};

struct JsonValue {
  using List = std::vector<JsonValue>;
  std::variant<bool, Index, double, std::string, List, JsonObject> content;
  size_t line = 1;

  template <class T>
  const T* as() const {
    return std::get_if<T>(&content);
  }
  std::string kind() const;  // "a string", "an integer", ...
  // As a user would write it in a text; the elements of a list with the separator between them. Throws std::logic_error
  // for an object.
  std::string text(const std::string& separator) const;
};

// Comments (// and /* */) may be anywhere. Throws Misuse with the line for text that is not JSON, holds null or a key
// twice, or is too long or too deep for a file that people write. file: its name, for messages.
JsonObject parse_json(std::string_view text, const std::string& file);

}  // namespace attnbench
