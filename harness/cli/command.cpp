#include "harness/cli/command.hpp"

#include <fmt/format.h>

#include <iostream>

#include "harness/cli/option_error.hpp"
#include "harness/cli/plugin_options.hpp"
#include "harness/plugins/plugins.hpp"
#include "harness/store/environment.hpp"

namespace attnbench {

namespace {
std::string command_line;
}

void keep_command_line(std::string words) { command_line = std::move(words); }

std::int64_t begin_run(Store& store) { return store.begin_run(command_line, environment_json(python_of_plugins())); }

std::optional<options::variables_map> parse_arguments(const std::string& command, options::options_description visible,
                                                      const std::vector<std::string>& arguments,
                                                      const std::vector<std::pair<const char*, int>>& positional,
                                                      const MoreValues& more) {
  visible.add_options()("help,h", "this text");
  options::positional_options_description words;
  for (const auto& [name, count] : positional) words.add(name, count);
  options::variables_map values;
  try {
    options::store(options::command_line_parser(arguments)
                       .options(visible)
                       .positional(words)
                       .style(options::command_line_style::unix_style & ~options::command_line_style::allow_guessing)
                       .run(),
                   values);
    if (more && !values.contains("help")) more(values);
    if (!values.contains("help")) options::notify(values);
  } catch (options::error& error) {
    throw Misuse(fmt::format("{}: {}; see attnbench {} --help", command, message_of(error), command));
  }
  if (!values.contains("help")) return values;
  const auto& text = find<CommandEntry>(command).text;
  std::cout << "usage: attnbench " << text.formula << "\n"
            << text.summary << "\n\n"
            << visible << "\n"
            << plugin_options();
  return std::nullopt;
}

}  // namespace attnbench
