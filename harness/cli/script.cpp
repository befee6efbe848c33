#include "harness/cli/script.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <boost/process.hpp>
#include <cerrno>
#include <cstring>
#include <iostream>

#include "harness/core/installed.hpp"
#include "harness/errors/error.hpp"

namespace attnbench {

int run_script(const std::string& name, const std::vector<std::string>& arguments) {
  const std::filesystem::path script = source_tree() / "scripts" / name;
  if (!std::filesystem::exists(script))
    throw Misuse("the script " + script.string() + " is not there; expected the source tree that this was built from");
  std::vector<std::string> words{"-u", script.string()};  // each line as it is printed, into the pipe below
  words.insert(words.end(), arguments.begin(), arguments.end());
  // Its lines go through this process, whose end says whether they could be written.
  boost::process::ipstream lines;
  boost::process::child child(own_python(), boost::process::args(words), boost::process::std_out > lines);
  for (std::string line; std::getline(lines, line);) std::cout << line << std::endl;
  child.wait();
  return child.exit_code();
}

void require_folder(const std::string& command, const std::filesystem::path& folder) {
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  if (problem)
    throw Misuse(fmt::format("{}: the folder '{}' cannot be made: {}; give another with -o", command, folder.string(),
                             problem.message()));
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    throw Misuse(fmt::format("{}: the folder '{}' cannot be written: {}; give another with -o", command,
                             folder.string(), std::strerror(errno)));
}

}  // namespace attnbench
