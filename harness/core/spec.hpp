// The spec grammar: one string names one configuration everywhere (command line, store, legend, error message).
//   spec     := name [":" argument ("," argument)*]
//   argument := key "=" value | value              a value without a key goes to the entry's first parameter
//   value    := "[" anything, brackets balanced "]" | characters other than , [ ]
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attnbench {

struct Spec {
  std::string name;
  std::vector<std::pair<std::string, std::string>> arguments;  // key (empty if none was given), value without brackets
};

// Throws Misuse for text outside the grammar. Knows no names; Params gives them meaning.
Spec parse_spec(std::string_view text);
// A value as a spec contains it: in brackets if it has a comma or a bracket.
std::string quoted_value(const std::string& value);
std::string to_string(const Spec& spec);

}  // namespace attnbench
