// The program, run through a shell as a user runs it.
#pragma once

#include <fmt/format.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

#include "tests/catch.hpp"

namespace attnbench {

struct Answer {
  int code;          // -1: a signal ended it
  std::string text;  // standard output, and with the default redirection standard error
};

inline Answer program(const std::string& arguments, const std::string& redirection = "2>&1",
                      const char* file = ATTNBENCH_PROGRAM) {
  FILE* pipe = popen(fmt::format("'{}' {} {}", file, arguments, redirection).c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string text;
  std::array<char, 4096> buffer{};
  for (size_t n = 0; (n = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) text.append(buffer.data(), n);
  const int status = pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text};
}

}  // namespace attnbench
