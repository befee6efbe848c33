// The exceptions of attnbench. Everything else that is thrown is a defect or a failing method.
#pragma once

#include <span>
#include <stdexcept>
#include <string>

namespace attnbench {

// The user asked for something that cannot be: says what was given, what was expected and how to mend it. Exit code 2.
class Misuse : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A cell that makes no sense for this method or input: recorded as "skipped" with the reason, never as a failure.
class Skip : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A method produced numbers that are none: recorded as "invalid" with the kind and the first place.
class NumericallyInvalid : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// "; did you mean a, b?" from the names nearest to what was given, or "; known: ..." when none is near.
std::string nearest_names(const std::string& given, std::span<const std::string> known);

}  // namespace attnbench
