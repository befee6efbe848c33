#include "harness/core/installed.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <stdexcept>

namespace attnbench {

namespace fs = std::filesystem;

namespace {

fs::path find_library() {
  Dl_info info{};
  static const char here = 0;
  if (dladdr(&here, &info) == 0) throw std::runtime_error("the program's own library cannot be found");
  return fs::canonical(info.dli_fname);
}

// The library is lib/attnbench/libattnbench.so, or glibc-hwcaps/LEVEL/libattnbench.so beside it.
fs::path find_installation() {
  std::error_code none;
  for (fs::path folder = library_file().parent_path(); folder.has_relative_path(); folder = folder.parent_path())
    if (folder.filename() == "attnbench" && folder.parent_path().filename() == "lib") {
      const fs::path found = folder.parent_path().parent_path();
      return fs::exists(found / "share/attnbench/scripts", none) ? found : fs::path();
    }
  return {};
}

}  // namespace

// All are found once: a search takes as long as a small cell.
const fs::path& library_file() {
  static const fs::path file = find_library();
  return file;
}

const fs::path& installation() {
  static const fs::path folder = find_installation();
  return folder;
}

const fs::path& source_tree() {
  static const fs::path folder = installation().empty() ? ATTNBENCH_SOURCE_TREE : installation() / "share/attnbench";
  return folder;
}

fs::path python_path() {
  if (installation().empty()) return library_file().parent_path() / "python";
  const fs::path own = installation() / "lib/attnbench/python";
  std::error_code none;
  // A wheel has the installation inside the package: attnbench/installed.
  const bool by_pip = !fs::exists(own, none) && fs::exists(installation().parent_path() / "__init__.py", none);
  return by_pip ? fs::path() : own;
}

std::string own_python() {
  const char* given = std::getenv("ATTNBENCH_INTERPRETER");
  return given && *given ? given : ATTNBENCH_PYTHON;
}

}  // namespace attnbench
