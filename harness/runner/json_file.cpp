#include "harness/runner/json_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "harness/errors/error.hpp"
#include "harness/store/text.hpp"

namespace attnbench {

namespace {

constexpr size_t longest_file = 1 << 20;
constexpr size_t most_keys = 100;   // of an object, which is searched from its beginning
constexpr size_t most_levels = 12;  // of values in each other; recipes have six

// Reads a text and keeps the line of the last character that was not a space: the line of the token that ends there.
// The parser reads one character beyond a number.
class LineCounter {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  LineCounter(const char* place, size_t* line) : place_(place), line_(line) {}
  reference operator*() const { return *place_; }
  LineCounter& operator++() {
    const char passed = *place_++;
    now_ += passed == '\n';
    if (line_ && !std::isspace(static_cast<unsigned char>(passed))) *line_ = now_;
    return *this;
  }
  LineCounter operator++(int) {
    const LineCounter before = *this;
    ++*this;
    return before;
  }
  bool operator==(const LineCounter& other) const { return place_ == other.place_; }
  bool operator!=(const LineCounter& other) const { return place_ != other.place_; }

 private:
  const char* place_;
  size_t* line_;
  size_t now_ = 1;
};

// Builds the values as nlohmann_json reads them.
class Builder {
 public:
  Builder(std::string file, const size_t& line) : file_(std::move(file)), line_(line) {}

  bool null() { refuse("null; leave the key out instead"); }
  bool boolean(bool value) { return put(value); }
  bool number_integer(std::int64_t value) { return put(static_cast<Index>(value)); }
  bool number_unsigned(std::uint64_t value) {
    return value <= static_cast<std::uint64_t>(std::numeric_limits<Index>::max()) ? put(static_cast<Index>(value))
                                                                                  : put(static_cast<double>(value));
  }
  bool number_float(double value, const std::string&) { return put(value); }
  bool string(std::string& value) { return put(std::move(value)); }
  bool binary(std::vector<std::uint8_t>&) { refuse("bytes"); }
  bool start_object(size_t) { return open(JsonObject(file_, line_)); }
  bool start_array(size_t) { return open(JsonValue::List()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& name) {
    const auto& object = std::get<JsonObject>(open_.back().content);
    if (object.keys().size() == most_keys) refuse(fmt::format("an object of more than {} keys", most_keys));
    if (object.find(name)) refuse(fmt::format("'{}' a second time", name));
    keys_.back() = name;
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 3, column 5: syntax error while ..."
    std::string why = error.what();
    if (const size_t colon = why.find(": "); colon != why.npos) why.erase(0, colon + 2);
    constexpr size_t longest_reason = 300;
    throw Misuse(
        fmt::format("{}, line {}: this is not JSON: {}", file_, line_, on_one_line(why.substr(0, longest_reason))));
  }

  JsonValue result = {.content = false};

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Misuse(fmt::format("{}, line {}: given {}", file_, line_, on_one_line(what)));
  }

  template <class Content>
  bool open(Content content) {
    if (open_.size() == most_levels)
      refuse(fmt::format("brackets in more than {} others; expected a recipe (docs/sharing.md)", most_levels));
    open_.push_back({.content = std::move(content), .line = line_});
    keys_.emplace_back();
    return true;
  }
  bool close() {
    JsonValue done = std::move(open_.back());
    open_.pop_back();
    keys_.pop_back();
    return keep(std::move(done));
  }
  template <class Content>
  bool put(Content content) {
    return keep({.content = std::move(content), .line = line_});
  }
  bool keep(JsonValue value) {
    if (open_.empty())
      result = std::move(value);
    else if (auto* list = std::get_if<JsonValue::List>(&open_.back().content))
      list->push_back(std::move(value));
    else
      std::get<JsonObject>(open_.back().content).set(keys_.back(), std::move(value));
    return true;
  }

  std::string file_;
  const size_t& line_;
  std::vector<JsonValue> open_;
  std::vector<std::string> keys_;  // of each open object, the one that is read
};

}  // namespace

JsonObject parse_json(std::string_view text, const std::string& file) {
  if (text.size() > longest_file)
    throw Misuse(fmt::format("{}: {} bytes; expected at most {}", file, text.size(), longest_file));
  size_t line = 1;
  Builder builder(file, line);
  constexpr bool to_the_end = true, ignore_comments = true;
  nlohmann::json::sax_parse(LineCounter(text.data(), &line), LineCounter(text.data() + text.size(), nullptr), &builder,
                            nlohmann::json::input_format_t::json, to_the_end, ignore_comments);
  if (const auto* table = builder.result.as<JsonObject>()) return *table;
  throw Misuse(fmt::format("{}, line {}: given {}; expected an object in braces", file, line, builder.result.kind()));
}

std::string JsonValue::kind() const {
  static constexpr const char* names[] = {"true or false", "an integer", "a number", "a string", "a list", "an object"};
  return names[content.index()];
}

std::string JsonValue::text(const std::string& separator) const {
  if (const auto* flag = as<bool>()) return *flag ? "true" : "false";
  if (const auto* integer = as<Index>()) return fmt::format("{}", *integer);
  if (const auto* real = as<double>()) return fmt::format("{}", *real);
  if (const auto* words = as<std::string>()) return *words;
  if (!as<List>()) throw std::logic_error("an object has no text");
  std::string all;
  for (const JsonValue& element : *as<List>()) all += (all.empty() ? "" : separator) + element.text(separator);
  return all;
}

JsonObject::JsonObject(std::string file, size_t line) : file_(std::move(file)), line_(line) {}

const JsonValue* JsonObject::find(const std::string& key) const {
  const auto place = std::find(keys_.begin(), keys_.end(), key);
  return place == keys_.end() ? nullptr : &values_[static_cast<size_t>(place - keys_.begin())];
}

const JsonValue& JsonObject::at(const std::string& key) const {
  if (const JsonValue* value = find(key)) return *value;
  refuse(fmt::format("'{}' is missing", key));
}

void JsonObject::set(const std::string& key, JsonValue value) {
  const auto place = std::find(keys_.begin(), keys_.end(), key);
  if (place != keys_.end()) {
    values_[static_cast<size_t>(place - keys_.begin())] = std::move(value);
    return;
  }
  keys_.push_back(key);
  values_.push_back(std::move(value));
}

std::string JsonObject::place(size_t line) const { return fmt::format("{}, line {}", file_, line); }

void JsonObject::refuse(const std::string& why) const {
  throw Misuse(fmt::format("{}: {}", place(), on_one_line(why)));
}

void JsonObject::refuse(const std::string& key, const std::string& why) const {
  const JsonValue* value = find(key);
  throw Misuse(fmt::format("{}: '{}' {}", place(value ? value->line : line_), on_one_line(key), on_one_line(why)));
}

void JsonObject::require_known(const std::string& what, const std::vector<std::string>& known) const {
  for (const std::string& key : keys_)
    if (std::find(known.begin(), known.end(), key) == known.end())
      throw Misuse(fmt::format("{}: {} has no '{}'{}", place(find(key)->line), what, on_one_line(key),
                               nearest_names(key, known)));
}

std::string JsonObject::text(const std::string& key) const {
  const auto* list = at(key).as<JsonValue::List>();
  const bool words =
      list ? std::all_of(list->begin(), list->end(),
                         [](const JsonValue& line) { return !line.as<JsonValue::List>() && !line.as<JsonObject>(); })
           : at(key).as<std::string>() != nullptr;
  if (!words) refuse(key, fmt::format("is {}; expected a string", at(key).kind()));
  std::string all = at(key).text(" ");
  if (all.empty()) refuse(key, "is empty; expected words");
  return all;
}

std::string JsonObject::text_or(const std::string& key, std::string otherwise) const {
  return find(key) ? text(key) : std::move(otherwise);
}

double JsonObject::number(const std::string& key) const {
  const JsonValue& value = at(key);
  const double number = value.as<Index>()    ? static_cast<double>(*value.as<Index>())
                        : value.as<double>() ? *value.as<double>()
                                             : std::nan("");
  if (!std::isfinite(number))
    refuse(key, fmt::format("is {}; expected a finite number", value.as<double>() ? "NaN or infinite" : value.kind()));
  return number;
}

double JsonObject::number_or(const std::string& key, double otherwise) const {
  return find(key) ? number(key) : otherwise;
}

bool JsonObject::flag_or(const std::string& key, bool otherwise) const {
  if (!find(key)) return otherwise;
  if (!at(key).as<bool>()) refuse(key, fmt::format("is {}; expected true or false", at(key).kind()));
  return *at(key).as<bool>();
}

std::vector<std::string> JsonObject::texts(const std::string& key) const {
  if (!find(key)) return {};
  if (const auto* one = at(key).as<std::string>()) return {*one};
  const auto* list = at(key).as<JsonValue::List>();
  if (!list) refuse(key, fmt::format("is {}; expected a string or a list of strings", at(key).kind()));
  std::vector<std::string> all;
  for (const JsonValue& element : *list) {
    if (!element.as<std::string>())
      refuse(key, fmt::format("holds {}; expected a string or a list of strings", element.kind()));
    all.push_back(*element.as<std::string>());
  }
  return all;
}

std::vector<double> JsonObject::numbers(const std::string& key) const {
  const auto* list = at(key).as<JsonValue::List>();
  if (!list) return {number(key)};
  std::vector<double> all;
  for (const JsonValue& element : *list) {
    const double value = element.as<Index>()    ? static_cast<double>(*element.as<Index>())
                         : element.as<double>() ? *element.as<double>()
                                                : std::nan("");
    if (!std::isfinite(value)) refuse(key, fmt::format("holds {}; expected finite numbers", element.kind()));
    all.push_back(value);
  }
  return all;
}

JsonObject JsonObject::object(const std::string& key) const {
  const auto* found = at(key).as<JsonObject>();
  if (!found)
    refuse(key, fmt::format("is {}; expected an object, such as {{\"method\": \"performer\"}}", at(key).kind()));
  return *found;
}

std::vector<JsonObject> JsonObject::objects(const std::string& key) const {
  if (!find(key)) return {};
  const auto* list = at(key).as<JsonValue::List>();
  if (!list) refuse(key, fmt::format("is {}; expected a list of objects, [{{...}}, {{...}}]", at(key).kind()));
  std::vector<JsonObject> all;
  for (const JsonValue& element : *list) {
    if (!element.as<JsonObject>())
      refuse(key, fmt::format("holds {}; expected a list of objects, [{{...}}, {{...}}]", element.kind()));
    all.push_back(*element.as<JsonObject>());
  }
  return all;
}

}  // namespace attnbench
