// The message of a Misuse, for tests that check that it names what was given and what was expected.
#pragma once

#include <string>

#include "harness/errors/error.hpp"
#include "tests/catch.hpp"

namespace attnbench {

// The message of the Misuse that the action throws; fails the test when none is thrown.
template <class Action>
std::string misuse_of(Action&& action) {
  try {
    action();
  } catch (const Misuse& misuse) {
    return misuse.what();
  }
  FAIL_CHECK("no misuse was reported");
  return "";
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace attnbench
