// Commands of the attnbench program. Each has its own file, which registers it.
#pragma once

#include <boost/program_options.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/core/registry.hpp"

namespace attnbench {

class Store;

namespace options = boost::program_options;

// Options that --help shows under one heading.
struct OptionGroup {
  std::string heading;
  std::vector<std::string> options;  // long names without dashes; a name that the command lacks is passed over
};

struct CommandEntry {
  static constexpr const char* kind = "command";
  static constexpr const char* plural = "commands";

  Description text;  // formula holds the usage line
  std::vector<Parameter> parameters = {};
  std::function<int(const std::vector<std::string>& arguments)> run;
  // In this process, not in workers: with plugins it runs in a process that a crash may end.
  bool makes_methods = false;
  std::vector<std::string> examples = {};     // command lines that --help shows, without "attnbench "
  std::function<std::string()> details = {};  // text that --help shows after the options
  // Names that complete a word without a dash in a shell: the plural of a catalogue, or "metrics". Empty: file names.
  std::vector<std::string> names = {};
  std::vector<OptionGroup> groups = {};  // of the options; those in no group come last, as "options"
};

extern template class Registry<CommandEntry>;

// Adds values of options from another source to those of the command line.
using MoreValues = std::function<void(options::variables_map&)>;

// Parses a command's arguments. --help prints usage and options and returns nullopt. positional: the options for words
// without a dash. more: called with the options given, before any variable receives its value. Throws Misuse for
// anything unknown, with what the user may have meant.
std::optional<options::variables_map> parse_arguments(const std::string& command, options::options_description visible,
                                                      const std::vector<std::string>& arguments,
                                                      const std::vector<std::pair<const char*, int>>& positional,
                                                      const MoreValues& more = {});

// The options of a command, as --help lists them: "--method", "-m". takes_value: whether a value follows.
struct KnownOption {
  std::string name, help;
  bool takes_value;
};
std::vector<KnownOption> options_of(const std::string& command);

// Keeps the command line as typed, quoted for a shell.
void keep_command_line(std::string words);
// Begins a run with that command line and this process's environment. Returns the run's number.
std::int64_t begin_run(Store& store);

}  // namespace attnbench
