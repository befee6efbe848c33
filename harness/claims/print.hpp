// Prints a report: for people one line per claim, for programs everything.
#pragma once

#include <string>

#include "harness/claims/check.hpp"

namespace attnbench {

// One subject: each claim's deciding test with its numbers, and where it fails.
std::string text_of(const SubjectReport& subject);
// The last line: tests, error rate, threshold, seconds.
std::string summary_of(const Report& report, double seconds);
std::string json_of(const Report& report, double seconds);

}  // namespace attnbench
