// attnbench history: finds the commits that changed a number.
#include <fmt/format.h>

#include "harness/cli/command.hpp"
#include "harness/cli/request.hpp"
#include "harness/cli/script.hpp"
#include "harness/store/store.hpp"

namespace attnbench::history_command {
namespace {

int run(const std::vector<std::string>& arguments) {
  std::string repository, range, metric, rounds, store, build, output;
  std::vector<std::string> measured;
  bool every = false;
  options::options_description visible("options");
  visible.add_options()("repository", options::value(&repository), "a clone of attnbench")(
      "range", options::value(&range), "of commits, such as HEAD~10..HEAD")(
      "words", options::value(&measured), "after --: the command that measures, such as: run speed --method softmax")(
      "metric", options::value(&metric)->value_name("NAME")->default_value("seconds"), "of which less is better")(
      "rounds", options::value(&rounds)->value_name("N")->default_value("12"), "turns of every program, at least 6")(
      "every", options::bool_switch(&every), "build every commit [bisect between the ends of the range]")(
      "store", options::value(&store)->value_name("FILE"), "keeps what was measured, for the next call")(
      "build", options::value(&build)->value_name("COMMAND"),
      "builds a commit in its tree and installs it in {folder} [scripts/build.sh and cmake --install]")(
      "output,o", options::value(&output)->value_name("FOLDER")->default_value("results/history"),
      "for the builds, the figure and the table");
  if (!parse_arguments("history", visible, arguments, {{"repository", 1}, {"range", 1}, {"words", -1}})) return 0;
  if (measured.empty())
    throw Misuse(
        "history: expected a repository, a range and a command, such as: attnbench history . HEAD~10..HEAD -- run "
        "speed "
        "--method softmax -n 1024");
  if (measured[0] != "run")
    throw Misuse(
        fmt::format("history: {}: expected a command that measures, such as: run speed --method softmax", measured[0]));
  // Hours of builds do not begin with a command that this program would refuse.
  if (!parse_request("run", {measured.begin() + 1, measured.end()})) return 0;
  require_folder("history", output);
  std::vector<std::string> words{"--metric", metric, "--rounds", rounds, "--output", output};
  if (every) words.emplace_back("--every");
  if (!store.empty()) words.insert(words.end(), {"--store", store});
  if (!build.empty()) words.insert(words.end(), {"--build", build});
  words.insert(words.end(), {"--", repository, range});
  words.insert(words.end(), measured.begin(), measured.end());
  return run_script("history/history.py", words);
}

const bool registered = add(CommandEntry{
    .text = {.name = "history",
             .summary = "build commits, measure them in turns, and find those that changed a number",
             .formula =
                 "history REPOSITORY RANGE [--metric NAME] [--rounds N] [--every] [-o FOLDER] -- run EXPERIMENT ..."},
    .run = run,
    .examples = {"history . HEAD~10..HEAD -- run speed --method softmax --method performer -n 1024 --threads 1",
                 "history . v0.1..HEAD --metric relative_output_error -- run attention-error --method performer"},
    .details = [] {
      return std::string(
          "Each commit is SAME (within 5 %), BETTER or WORSE (beyond 5 %) or AMBIGUOUS against the one before, by the "
          "95 % "
          "interval of the median over rounds. Exit codes: 0 nothing is worse, 1 something is, 2 misuse.\n");
    }});

}  // namespace
}  // namespace attnbench::history_command
