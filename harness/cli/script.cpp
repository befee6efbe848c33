#include "harness/cli/script.hpp"

#include <boost/process.hpp>
#include <filesystem>
#include <iostream>

#include "harness/core/error.hpp"

namespace attnbench {

int run_script(const std::string& name, const std::vector<std::string>& arguments) {
  const std::filesystem::path script = std::filesystem::path(ATTNBENCH_SCRIPTS_DIR) / name;
  if (!std::filesystem::exists(script))
    throw Misuse("the script " + script.string() + " is not there; expected the source tree that this was built from");
  std::vector<std::string> words{script.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::cout.flush();
  return boost::process::system(ATTNBENCH_PYTHON, boost::process::args(words));
}

}  // namespace attnbench
