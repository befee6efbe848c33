// The rules for the names of entries and of their parameters: a spec can write each of them, and means one thing by it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/core/registry.hpp"

namespace attnbench {

// Whether a spec can write it as the name of an entry or of a parameter: letters, digits, - and _, at least one.
bool is_name(std::string_view text);

// The names under which `--sweep` varies the problem itself. No parameter has such a name.
const std::vector<std::string>& problem_axes();

// Throws Misuse, which says which name breaks which rule. An entry and each of its parameters has a name that a spec
// can write. No two parameters that one spec may hold have the same name: those of the entry, those of the entries that
// its parameters may name, and those of the entries that may name it, up to the method that a user writes. The entry
// may be registered already.
void refuse_unusable_names(const std::string& plural, const Description& text,
                           const std::vector<Parameter>& parameters);

}  // namespace attnbench
