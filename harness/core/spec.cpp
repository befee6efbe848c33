#include "harness/core/spec.hpp"

#include <fmt/format.h>

#include "harness/core/entry_names.hpp"
#include "harness/errors/error.hpp"

namespace attnbench {

namespace {
// More than any path or nested spec needs. These bounds limit the work on hostile input: nested specs are parsed again
// at each level, and 40 levels took a quarter of a second.
constexpr size_t longest_spec = 4096;
constexpr int deepest_brackets = 16;

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
      if (++depth > deepest_brackets)
        throw Misuse(fmt::format("spec '{}': brackets more than {} deep; nest less", whole, deepest_brackets));
    } else if (text[i] == ']' && --depth < 0) {
      throw Misuse(fmt::format("spec '{}': ']' without '['; remove it or open the bracket", whole));
    }
  }
  if (depth != 0) throw Misuse(fmt::format("spec '{}': '[' is never closed; add ']'", whole));
  return parts;
}

// The length of the key in "key=value"; 0 if the text has no key.
size_t key_length(std::string_view argument) {
  size_t length = 0;
  while (length < argument.size() && is_name(argument.substr(length, 1))) ++length;
  return length < argument.size() && argument[length] == '=' ? length : 0;
}

// A value with balanced brackets, without its outer pair. Throws if brackets are anywhere except around the whole
// value.
std::string unbracketed(std::string_view value, std::string_view whole) {
  if (value.find_first_of("[]") == std::string_view::npos) return std::string(value);
  size_t end = 0;
  for (int depth = 0; end < value.size() && (end == 0 || depth > 0); ++end)
    depth += value[end] == '[' ? 1 : value[end] == ']' ? -1 : 0;
  if (value.front() != '[' || end < value.size())
    throw Misuse(
        fmt::format("spec '{}': brackets inside '{}'; put them around the whole value: [{}]", whole, value, value));
  return std::string(value.substr(1, value.size() - 2));
}
}  // namespace

Spec parse_spec(std::string_view text) {
  if (text.size() > longest_spec)
    throw Misuse(fmt::format("a spec of {} characters; at most {} are read", text.size(), longest_spec));
  const size_t colon = text.find(':');
  Spec spec{std::string(text.substr(0, colon)), {}};
  if (spec.name.size() > 1 && spec.name.ends_with('+')) spec.name.pop_back();  // FAVOR+ is favor
  if (spec.name.empty()) throw Misuse(fmt::format("spec '{}' has no name; expected name:key=value,...", text));
  if (!is_name(spec.name))
    throw Misuse(
        fmt::format("spec '{}': '{}' is not a name; expected letters, digits, - and _, then ':' and key=value pairs",
                    text, spec.name));
  if (colon == std::string_view::npos) return spec;
  for (const auto part : split_arguments(text.substr(colon + 1), text)) {
    if (part.empty())
      throw Misuse(fmt::format("spec '{}': an empty argument; expected key=value between the commas", text));
    std::string key(part.substr(0, key_length(part)));
    std::string value = unbracketed(key.empty() ? part : part.substr(key.size() + 1), text);
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
    // A value without a key that looks like "key=value" keeps its brackets.
    text += key.empty() && key_length(value) > 0 ? fmt::format("[{}]", value) : quoted_value(value);
    separator = ',';
  }
  return text;
}

}  // namespace attnbench
