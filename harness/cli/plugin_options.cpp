#include "harness/cli/plugin_options.hpp"

#include <fmt/format.h>
#include <string.h>
#include <sys/wait.h>

#include <boost/process.hpp>
#include <iostream>

#include "harness/cli/option_error.hpp"
#include "harness/plugins/plugins.hpp"

namespace attnbench {

options::options_description plugin_options() {
  options::options_description all("options of every command");
  all.add_options()(
      "plugin", options::value<std::vector<std::string>>()->value_name("FILE"),
      "a plugin: .so, .py, a folder of them, or package.module:Class (repeatable; also ATTNBENCH_PLUGINS, separated by "
      "colons)")(
      "python", options::value<std::string>()->value_name("PROGRAM"),
      "interpreter of plugins and peers in Python, such as that of a virtual environment (also ATTNBENCH_PYTHON)");
  return all;
}

bool take_plugins(std::vector<std::string>& words) {
  const options::options_description own = plugin_options();
  options::variables_map values;
  std::vector<std::string> rest;
  try {
    const auto parsed =
        options::command_line_parser(words)
            .options(own)
            .style(options::command_line_style::unix_style & ~options::command_line_style::allow_guessing)
            .allow_unregistered()
            .run();
    options::store(parsed, values);
    rest = options::collect_unrecognized(parsed.options, options::include_positional);
  } catch (options::error& error) {
    throw Misuse(fmt::format("{}; see attnbench COMMAND --help", message_of(error)));
  }
  Plugins all = plugins();
  if (values.contains("plugin"))
    for (const auto& file : values["plugin"].as<std::vector<std::string>>()) all.files.emplace_back(file);
  if (values.contains("python")) all.python = values["python"].as<std::string>();
  set_plugins(all);
  if (values.contains("plugin") || values.contains("python")) words = rest;
  return !all.files.empty();
}

int run_in_worker(const std::vector<std::string>& words) {
  namespace process = boost::process;
  std::vector<std::string> command = worker_command(plugins().files);
  const std::string program = command.front();
  command.erase(command.begin());
  command.insert(command.end(), words.begin(), words.end());
  std::cout.flush();
  process::child child(program, process::args(command));
  child.wait();
  const int status = child.native_exit_code();
  if (!WIFSIGNALED(status)) return child.exit_code();
  const char* name = sigabbrev_np(WTERMSIG(status));
  throw std::runtime_error(fmt::format("{} died of {} in a plugin, or in code that it called", words[0],
                                       name ? "SIG" + std::string(name) : fmt::format("signal {}", WTERMSIG(status))));
}

}  // namespace attnbench
