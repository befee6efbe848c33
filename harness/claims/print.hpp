// Prints a report: for people one line per claim, for programs everything.
#pragma once

#include <functional>
#include <string>

#include "harness/claims/check.hpp"

namespace attnbench {

// The word for an outcome: its name, in colour on a terminal.
using OutcomeWord = std::function<std::string(Outcome)>;

// One subject: each claim's deciding test with its numbers, and where it fails.
std::string text_of(const SubjectReport& subject, const OutcomeWord& word = name_of);
// The last line: tests, error rate, threshold, seconds. After a failure another one, which says where its usual causes
// are listed.
std::string summary_of(const Report& report, double seconds, const OutcomeWord& word = name_of);
std::string json_of(const Report& report, double seconds);

}  // namespace attnbench
