// The exceptions of attnbench. Any other exception is a defect or a failing method.
#pragma once

#include <span>
#include <stdexcept>
#include <string>

namespace attnbench {

// The user asked for something impossible. Says what was given, what was expected and how to fix it. Exit code 2.
class Misuse : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A model is needed that `attnbench fetch` gets, and it is not there.
class NotFetched : public Misuse {
 public:
  using Misuse::Misuse;
};

// A cell that makes no sense for this method or input. Recorded as `skipped` with the reason, never as a failure.
class Skip : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A method produced NaN or infinity. Recorded as `invalid`, with which of the two and where it first occurs.
class NumericallyInvalid : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// "; did you mean a, b?" with the names nearest to the given one, or "; known: ..." if none is near. Of `others`, such
// as aliases, the message names only those that are near.
std::string nearest_names(const std::string& given, std::span<const std::string> known,
                          std::span<const std::string> others = {});

}  // namespace attnbench
