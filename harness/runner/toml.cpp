#include "harness/runner/toml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#define TOML_MAX_NESTED_VALUES 32  // stack: each level of a value is a call
#include <toml++/toml.h>

#include "harness/errors/error.hpp"

namespace attnbench {

namespace {

constexpr size_t longest_file = 1 << 20;
// Dots in keys nest tables, and toml++ destroys nested tables by recursion: 40,000 of them overflowed a stack of 8 MB.
constexpr std::ptrdiff_t most_dots = 5'000;

size_t line_of(const toml::node& node) { return std::max<size_t>(node.source().begin.line, 1); }

TomlTable table_of(const toml::table& table, const std::string& file);

TomlValue value_of(const toml::node& node, const std::string& file) {
  TomlValue value{.content = false, .line = line_of(node)};
  if (const auto* flag = node.as_boolean()) {
    value.content = flag->get();
  } else if (const auto* integer = node.as_integer()) {
    value.content = static_cast<Index>(integer->get());
  } else if (const auto* real = node.as_floating_point()) {
    value.content = real->get();
  } else if (const auto* text = node.as_string()) {
    value.content = text->get();
  } else if (const auto* array = node.as_array()) {
    TomlValue::List list;
    for (const toml::node& element : *array) list.push_back(value_of(element, file));
    value.content = std::move(list);
  } else if (const auto* table = node.as_table()) {
    value.content = table_of(*table, file);
  } else {
    throw Misuse(
        fmt::format("{}, line {}: given a date or a time; expected a string, a number, true, false or a "
                    "list: write it in quotes",
                    file, value.line));
  }
  return value;
}

TomlTable table_of(const toml::table& table, const std::string& file) {
  TomlTable all(file, line_of(table));
  std::vector<std::pair<toml::source_position, const toml::key*>> ordered;
  for (const auto& [key, node] : table) ordered.emplace_back(key.source().begin, &key);
  std::stable_sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [position, key] : ordered) all.set(std::string(key->str()), value_of(*table.get(*key), file));
  return all;
}

}  // namespace

TomlTable parse_toml(std::string_view text, const std::string& file) {
  if (text.size() > longest_file)
    throw Misuse(fmt::format("{}: {} bytes; expected at most {}", file, text.size(), longest_file));
  if (const auto dots = std::count(text.begin(), text.end(), '.'); dots > most_dots)
    throw Misuse(
        fmt::format("{}: {} dots, each of which may nest a table; expected at most {}", file, dots, most_dots));
  try {
    return table_of(toml::parse(text, std::string_view(file)), file);
  } catch (const toml::parse_error& error) {
    throw Misuse(
        fmt::format("{}, line {}: this is not TOML: {}; expected lines such as title = \"A title\", and [[run]] "
                    "before the lines of a run",
                    file, error.source().begin.line, error.description()));
  }
}

std::string TomlValue::kind() const {
  static constexpr const char* names[] = {"true or false", "an integer", "a number", "a string", "a list", "a table"};
  return names[content.index()];
}

std::string TomlValue::text(const std::string& separator) const {
  if (const auto* flag = as<bool>()) return *flag ? "true" : "false";
  if (const auto* integer = as<Index>()) return fmt::format("{}", *integer);
  if (const auto* real = as<double>()) return fmt::format("{}", *real);
  if (const auto* words = as<std::string>()) return *words;
  if (!as<List>()) throw std::logic_error("a table has no text");
  std::string all;
  for (const TomlValue& element : *as<List>()) all += (all.empty() ? "" : separator) + element.text(separator);
  return all;
}

TomlTable::TomlTable(std::string file, size_t line) : file_(std::move(file)), line_(line) {}

const TomlValue* TomlTable::find(const std::string& key) const {
  const auto place = std::find(keys_.begin(), keys_.end(), key);
  return place == keys_.end() ? nullptr : &values_[static_cast<size_t>(place - keys_.begin())];
}

const TomlValue& TomlTable::at(const std::string& key) const {
  if (const TomlValue* value = find(key)) return *value;
  refuse(fmt::format("'{}' is missing", key));
}

void TomlTable::set(const std::string& key, TomlValue value) {
  const auto place = std::find(keys_.begin(), keys_.end(), key);
  if (place != keys_.end()) {
    values_[static_cast<size_t>(place - keys_.begin())] = std::move(value);
    return;
  }
  keys_.push_back(key);
  values_.push_back(std::move(value));
}

std::string TomlTable::place(size_t line) const { return fmt::format("{}, line {}", file_, line); }

void TomlTable::refuse(const std::string& why) const { throw Misuse(fmt::format("{}: {}", place(), why)); }

void TomlTable::refuse(const std::string& key, const std::string& why) const {
  const TomlValue* value = find(key);
  throw Misuse(fmt::format("{}: '{}' {}", place(value ? value->line : line_), key, why));
}

void TomlTable::require_known(const std::string& what, const std::vector<std::string>& known) const {
  for (const std::string& key : keys_)
    if (std::find(known.begin(), known.end(), key) == known.end())
      throw Misuse(fmt::format("{}: {} has no '{}'{}", place(find(key)->line), what, key, nearest_names(key, known)));
}

std::string TomlTable::text(const std::string& key) const {
  const auto* words = at(key).as<std::string>();
  if (!words) refuse(key, fmt::format("is {}; expected a string", at(key).kind()));
  if (words->empty()) refuse(key, "is empty; expected words");
  return *words;
}

std::string TomlTable::text_or(const std::string& key, std::string otherwise) const {
  return find(key) ? text(key) : std::move(otherwise);
}

double TomlTable::number(const std::string& key) const {
  const TomlValue& value = at(key);
  const double number = value.as<Index>()    ? static_cast<double>(*value.as<Index>())
                        : value.as<double>() ? *value.as<double>()
                                             : std::nan("");
  if (!std::isfinite(number))
    refuse(key, fmt::format("is {}; expected a finite number", value.as<double>() ? "NaN or infinite" : value.kind()));
  return number;
}

double TomlTable::number_or(const std::string& key, double otherwise) const {
  return find(key) ? number(key) : otherwise;
}

bool TomlTable::flag_or(const std::string& key, bool otherwise) const {
  if (!find(key)) return otherwise;
  if (!at(key).as<bool>()) refuse(key, fmt::format("is {}; expected true or false", at(key).kind()));
  return *at(key).as<bool>();
}

std::vector<std::string> TomlTable::texts(const std::string& key) const {
  if (!find(key)) return {};
  if (at(key).as<std::string>()) return {text(key)};
  const auto* list = at(key).as<TomlValue::List>();
  if (!list) refuse(key, fmt::format("is {}; expected a string or a list of strings", at(key).kind()));
  std::vector<std::string> all;
  for (const TomlValue& element : *list) {
    if (!element.as<std::string>())
      refuse(key, fmt::format("holds {}; expected a string or a list of strings", element.kind()));
    all.push_back(*element.as<std::string>());
  }
  return all;
}

std::vector<double> TomlTable::numbers(const std::string& key) const {
  const auto* list = at(key).as<TomlValue::List>();
  if (!list) return {number(key)};
  std::vector<double> all;
  for (const TomlValue& element : *list) {
    const double value = element.as<Index>()    ? static_cast<double>(*element.as<Index>())
                         : element.as<double>() ? *element.as<double>()
                                                : std::nan("");
    if (!std::isfinite(value)) refuse(key, fmt::format("holds {}; expected finite numbers", element.kind()));
    all.push_back(value);
  }
  return all;
}

TomlTable TomlTable::table(const std::string& key) const {
  const auto* found = at(key).as<TomlTable>();
  if (!found) refuse(key, fmt::format("is {}; expected a table, such as {{ method = \"performer\" }}", at(key).kind()));
  return *found;
}

std::vector<TomlTable> TomlTable::tables(const std::string& key) const {
  if (!find(key)) return {};
  const auto* list = at(key).as<TomlValue::List>();
  if (!list) refuse(key, fmt::format("is {}; expected [[{}]] in two pairs of brackets", at(key).kind(), key));
  std::vector<TomlTable> all;
  for (const TomlValue& element : *list) {
    if (!element.as<TomlTable>())
      refuse(key, fmt::format("holds {}; expected [[{}]] in two pairs of brackets", element.kind(), key));
    all.push_back(*element.as<TomlTable>());
  }
  return all;
}

}  // namespace attnbench
