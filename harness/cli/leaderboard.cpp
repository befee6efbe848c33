// attnbench leaderboard: verifies bundles and makes a static site of ranks.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "harness/cli/command.hpp"
#include "harness/cli/script.hpp"
#include "harness/core/approximation.hpp"
#include "harness/plugins/plugins.hpp"

namespace attnbench::leaderboard_command {
namespace {

// A bundle with any other method must have its source. A plugin that this process knows makes no method built in.
std::vector<std::string> built_in_methods() {
  std::vector<std::string> names;
  for (const auto& name : catalogue("methods").names())
    if (plugins_among(catalogue("methods").source_files(name)).empty()) names.push_back(name);
  return names;
}

int run(const std::vector<std::string>& arguments) {
  std::vector<std::string> bundles;
  std::string suite, output;
  options::options_description visible("options");
  visible.add_options()("bundle", options::value(&bundles), "bundles that attnbench submit wrote")(
      "suite", options::value(&suite)->value_name("NAME"), "a suite or its file [the newest; see attnbench suite]")(
      "output,o", options::value(&output)->value_name("FOLDER")->default_value("results/leaderboard"), "for the site");
  if (!parse_arguments("leaderboard", visible, arguments, {{"bundle", -1}})) return 0;
  if (bundles.empty())
    throw Misuse("leaderboard: no bundle given; expected one, such as: attnbench leaderboard mine.zip -o site");
  require_folder("leaderboard", output);
  std::vector<std::string> words = bundles;
  words.insert(words.end(), {"--output", output, "--built-in", fmt::format("{}", fmt::join(built_in_methods(), ","))});
  if (!suite.empty()) words.insert(words.end(), {"--suite", suite});
  return run_script("leaderboard/ranking.py", words);
}

const bool registered = add(CommandEntry{
    .text = {.name = "leaderboard",
             .summary = "verify bundles of submissions and make a static site that ranks them",
             .formula = "leaderboard BUNDLE... [--suite NAME] [-o FOLDER]"},
    .run = run,
    .examples = {"leaderboard mine.zip theirs.zip -o site"},
    .details = [] {
      return std::string(
          "Nothing in a bundle is run. Exit codes: 0 all bundles are shown, 1 some are refused (each with its reason), "
          "2 misuse.\n");
    }});

}  // namespace
}  // namespace attnbench::leaderboard_command
