// The reference: the verdicts of a full reproduction, which attnbench brings along in results/reference.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "harness/store/verdict.hpp"

namespace attnbench {

struct ReferenceVerdict {
  std::string size;  // of the reproduction: "full"
  Ruling ruling;
};
// By recipe and statement.
using Reference = std::map<std::pair<std::string, std::string>, ReferenceVerdict>;

// Where the program has its table of the reference. An installation may lack it.
std::filesystem::path reference_file();

// Reads the table that `scripts/verdicts.py --format csv` writes. Throws Misuse if the file is no such table.
Reference read_reference(const std::filesystem::path& file);

// A verdict beside that of the reference on the same statement. Without one, beside what its author expected.
struct BesideReference {
  // undecided: one of the two is OPEN, which contradicts nothing. as_expected includes what is OPEN or MEASURED.
  enum class Result { same, undecided, different, as_expected, unexpected };
  Result result;
  const ReferenceVerdict* reference;  // null: the reference lacks the statement
};
BesideReference compared(const std::string& recipe, const Verdict& verdict, const Reference& reference);

}  // namespace attnbench
