// attnbench submit: measures methods on a suite and packs the bundle that a leaderboard takes.
#include <filesystem>

#include "harness/cli/command.hpp"
#include "harness/cli/script.hpp"
#include "harness/core/approximation.hpp"

namespace attnbench::submit_command {
namespace {

int run(const std::vector<std::string>& arguments) {
  std::vector<std::string> methods, authors;
  std::string suite, licence, note, results, output;
  options::options_description visible("options");
  visible.add_options()("method", options::value(&methods), "method specs; the suite chooses their budgets")(
      "author", options::value(&authors)->value_name("NAME"), "who submits (repeatable)")(
      "licence", options::value(&licence)->value_name("NAME"),
      "under which others may show the numbers and the plugin's source, such as MIT")(
      "note", options::value(&note)->value_name("TEXT"), "anything that readers should know")(
      "suite", options::value(&suite)->value_name("NAME"), "a suite or its file [the newest; see attnbench suite]")(
      "results", options::value(&results)->value_name("FILE"), "results file [the bundle's name with .db]")(
      "output,o", options::value(&output)->value_name("FILE")->default_value("bundle.zip"), "the bundle");
  if (!parse_arguments("submit", visible, arguments, {{"method", -1}})) return 0;
  if (methods.empty()) throw Misuse("submit: no method given; expected one, such as: attnbench submit performer");
  if (authors.empty() || licence.empty())
    throw Misuse(
        "submit: a bundle says who submits it and under which licence; add --author \"Your Name\" --licence MIT");
  for (const auto& method : methods) Params("methods", method);  // throws Misuse for one that does not exist
  std::vector<std::string> words = methods;
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {option, value});
  };
  for (const auto& author : authors) add("--author", author);
  add("--licence", licence);
  add("--note", note);
  add("--suite", suite);
  add("--results", results);
  add("--output", output);
  add("--program", std::filesystem::read_symlink("/proc/self/exe").string());
  return run_script("leaderboard/submitting.py", words);
}

const bool registered = add(CommandEntry{
    .text = {.name = "submit",
             .summary = "measure methods on a suite and pack one zip file for a leaderboard",
             .formula = "submit METHOD... --author NAME --licence NAME [--note TEXT] [--suite NAME] [-o FILE]"},
    .run = run,
    .examples = {"submit mine --plugin mine.py --author \"A. Author\" --licence MIT -o mine.zip",
                 "submit performer local --author me --licence Apache-2.0"},
    .names = {"methods"}});

}  // namespace
}  // namespace attnbench::submit_command
