#include "harness/store/ending.hpp"

#include <fmt/format.h>

#include <array>
#include <stdexcept>
#include <utility>

namespace attnbench {

namespace {
using Kind = Ending::Kind;
constexpr std::array<std::pair<Kind, std::string_view>, 7> names{{{Kind::done, "done"},
                                                                  {Kind::skipped, "skipped"},
                                                                  {Kind::failed, "failed"},
                                                                  {Kind::crashed, "crashed"},
                                                                  {Kind::timed_out, "timed out"},
                                                                  {Kind::out_of_memory, "out of memory"},
                                                                  {Kind::invalid, "invalid"}}};
}  // namespace

std::string to_string(Ending::Kind kind) {
  for (const auto& [known, name] : names)
    if (known == kind) return std::string(name);
  throw std::logic_error("an unknown ending");
}

Ending::Kind ending_kind(std::string_view name) {
  for (const auto& [kind, known] : names)
    if (known == name) return kind;
  throw std::invalid_argument(fmt::format("no replicate ends as '{}'", name));
}

bool settled(Ending::Kind kind) { return kind == Kind::done || kind == Kind::skipped || kind == Kind::invalid; }

}  // namespace attnbench
