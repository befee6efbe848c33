// attnbench verify: checks that a results file has everything that was recorded into it, as it was recorded.
#include "harness/store/verify.hpp"

#include <fmt/format.h>

#include <iostream>

#include "harness/cli/command.hpp"

namespace attnbench::verify_command {
namespace {

int run(const std::vector<std::string>& arguments) {
  std::string file;
  options::options_description visible("options");
  visible.add_options()("file", options::value(&file), "results file");
  if (!parse_arguments("verify", visible, arguments, {{"file", 1}})) return 0;
  if (file.empty()) throw Misuse("verify: no results file given; expected one, such as: attnbench verify results.db");
  const Verification found = verify(file);
  std::string endings;
  for (const auto& [ending, replicates] : found.endings)
    endings += fmt::format("{}{} {}", endings.empty() ? "" : ", ", replicates, ending);
  for (const auto& remark : found.remarks) std::cout << "note: " << remark << "\n";
  for (const auto& problem : found.problems) std::cout << "problem: " << problem << "\n";
  std::cout << fmt::format("{}: {} runs, {} cells, {} replicates{}, {} measurements: {}\n", file, found.runs,
                           found.cells, found.replicates, endings.empty() ? "" : " (" + endings + ")",
                           found.measurements,
                           found.problems.empty() ? "whole" : fmt::format("{} problems", found.problems.size()));
  return found.problems.empty() ? 0 : 1;
}

const bool registered = add(CommandEntry{
    .text = {.name = "verify",
             .summary = "finds what is missing, damaged or altered in a results file; exit code 1 if anything is",
             .formula = "verify FILE"},
    .run = run,
    .examples = {"verify results/attnbench.db"}});

}  // namespace
}  // namespace attnbench::verify_command
