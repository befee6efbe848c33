#include "harness/core/spec.hpp"

#include <fmt/format.h>

#include "harness/core/error.hpp"

namespace attnbench {

namespace {
constexpr size_t longest_spec = 4096;  // longer than any path or nested spec; bounds the work on hostile input

bool name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

// Splits at commas outside brackets; throws when brackets do not balance.
std::vector<std::string_view> split_arguments(std::string_view text, std::string_view whole) {
  std::vector<std::string_view> parts;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == ',' && depth == 0)) {
      parts.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    } else if (text[i] == '[') {
      ++depth;
    } else if (text[i] == ']' && --depth < 0) {
      throw Misuse(fmt::format("spec '{}': ']' without '['; remove it or open the bracket", whole));
    }
  }
  if (depth != 0) throw Misuse(fmt::format("spec '{}': '[' is never closed; add ']'", whole));
  return parts;
}

std::string unbracketed(std::string_view value) {
  if (value.size() >= 2 && value.front() == '[' && value.back() == ']') value = value.substr(1, value.size() - 2);
  return std::string(value);
}
}  // namespace

Spec parse_spec(std::string_view text) {
  if (text.size() > longest_spec)
    throw Misuse(fmt::format("a spec of {} characters; at most {} are read", text.size(), longest_spec));
  const size_t colon = text.find(':');
  Spec spec{std::string(text.substr(0, colon)), {}};
  if (spec.name.empty()) throw Misuse(fmt::format("spec '{}' has no name; expected name:key=value,...", text));
  for (const char c : spec.name)
    if (!name_character(c))
      throw Misuse(
          fmt::format("spec '{}': '{}' is no name; expected letters, digits, - and _, then ':' and key=value "
                      "pairs",
                      text, spec.name));
  if (colon == std::string_view::npos) return spec;
  for (const auto part : split_arguments(text.substr(colon + 1), text)) {
    if (part.empty())
      throw Misuse(fmt::format("spec '{}': an empty argument; expected key=value between the commas", text));
    size_t equals = 0;
    while (equals < part.size() && name_character(part[equals])) ++equals;
    const bool keyed = equals > 0 && equals < part.size() && part[equals] == '=';
    std::string key = keyed ? std::string(part.substr(0, equals)) : std::string();
    std::string value = unbracketed(keyed ? part.substr(equals + 1) : part);
    if (value.empty()) throw Misuse(fmt::format("spec '{}': '{}' has no value; expected key=value", text, part));
    spec.arguments.emplace_back(std::move(key), std::move(value));
  }
  return spec;
}

std::string quoted_value(const std::string& value) {
  return value.find_first_of(",[]") == std::string::npos ? value : fmt::format("[{}]", value);
}

std::string to_string(const Spec& spec) {
  std::string text = spec.name;
  char separator = ':';
  for (const auto& [key, value] : spec.arguments) {
    text += separator;
    if (!key.empty()) text += key + "=";
    text += quoted_value(value);
    separator = ',';
  }
  return text;
}

}  // namespace attnbench
