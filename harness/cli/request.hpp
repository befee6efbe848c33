// The requests of attnbench run and attnbench plan, from the command line and from a file of options.
#pragma once

#include <istream>
#include <optional>
#include <string>
#include <vector>

#include "harness/cli/command.hpp"
#include "harness/runner/execute.hpp"
#include "harness/runner/plan.hpp"

namespace attnbench {

struct RunArguments {
  RunRequest request;
  Limits limits;
  std::string results;
  bool all = false;    // plan: every cell, however many
  bool audit = false;  // run: measure what is done again, and compare
};

// Parses the words after `attnbench run` or `attnbench plan` and the options of the file that --config names. An option
// among the words replaces the one of the same name in the file. Returns nullopt after printing --help. Throws Misuse.
std::optional<RunArguments> parse_request(const std::string& command, const std::vector<std::string>& words);

// The same for the text of such a file alone. name: for messages.
RunArguments parse_request_config(std::istream& text, const std::string& name);

// An option with one of its values, such as {"method", "performer:m=64"}.
using NamedOption = std::pair<std::string, std::string>;

// The request of a recipe's run, from the options that say what is measured: not those that say how, such as a limit.
// Throws Misuse.
RunRequest parse_recipe_run(const std::vector<NamedOption>& given);

// The headings under which --help shows the options of run and plan.
std::vector<OptionGroup> request_groups();

// "4GB", "512MiB", "1e9": bytes, at least 1, in decimal or binary units. Throws Misuse. option: for the message.
double parse_memory_size(const std::string& option, const std::string& text);

}  // namespace attnbench
