// Makes all that a command prints safe for a terminal, in one place.
#pragma once

#include <iosfwd>
#include <memory>
#include <streambuf>

namespace attnbench {

// While it lives, all that is written to the stream is `printable` (harness/errors/printable.hpp).
class PrintableOutput {
 public:
  explicit PrintableOutput(std::ostream& stream);
  ~PrintableOutput();
  PrintableOutput(const PrintableOutput&) = delete;
  PrintableOutput& operator=(const PrintableOutput&) = delete;

 private:
  std::ostream& stream_;
  std::streambuf* own_;
  std::unique_ptr<std::streambuf> filter_;
};

}  // namespace attnbench
