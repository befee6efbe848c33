// Commands of the attnbench program. One file each; it registers itself.
#pragma once

#include <boost/program_options.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/core/registry.hpp"
#include "harness/store/store.hpp"

namespace attnbench {

namespace options = boost::program_options;

struct CommandEntry {
  static constexpr const char* kind = "command";
  static constexpr const char* plural = "commands";

  Description text;  // formula holds the usage line
  std::vector<Parameter> parameters = {};
  std::function<int(const std::vector<std::string>& arguments)> run;
  bool makes_methods = false;  // itself, not in workers: with plugins it runs in a process that may be lost
};

// Values of options that do not come from the command line: adds them to those that do.
using MoreValues = std::function<void(options::variables_map&)>;

// Parses a command's arguments; --help prints usage and options and returns nothing. positional: the option that words
// without a dash belong to, "" for none. more: called with what was given, before anything has its value. Throws Misuse
// for anything unknown.
std::optional<options::variables_map> parse_arguments(const std::string& command, options::options_description visible,
                                                      const std::vector<std::string>& arguments,
                                                      const std::vector<std::pair<const char*, int>>& positional,
                                                      const MoreValues& more = {});

// Keeps the command line as it was typed, quoted for a shell.
void keep_command_line(std::string words);
// Begins a run of that command line, in the environment of this process. Returns the run's number.
std::int64_t begin_run(Store& store);

}  // namespace attnbench
