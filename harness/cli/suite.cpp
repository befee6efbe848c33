// attnbench suite: what submissions measure.
#include "harness/cli/command.hpp"
#include "harness/cli/script.hpp"

namespace attnbench::suite_command {
namespace {

int run(const std::vector<std::string>& arguments) {
  std::string suite;
  options::options_description visible("options");
  visible.add_options()("suite", options::value(&suite), "a suite or its file; none: list them");
  if (!parse_arguments("suite", visible, arguments, {{"suite", 1}})) return 0;
  return run_script("leaderboard/describe_suite.py", suite.empty() ? std::vector<std::string>{} : std::vector{suite});
}

const bool registered =
    add(CommandEntry{.text = {.name = "suite",
                              .summary = "list the suites that submissions measure, or describe one",
                              .formula = "suite [NAME|FILE.json]"},
                     .run = run,
                     .examples = {"suite", "suite attnbench-2026"}});

}  // namespace
}  // namespace attnbench::suite_command
