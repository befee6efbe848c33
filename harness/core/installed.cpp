#include "harness/core/installed.hpp"

#include <dlfcn.h>

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

fs::path find_source_tree() {
  // lib/attnbench/libattnbench.so and share/attnbench
  const fs::path installed = library_file().parent_path().parent_path().parent_path() / "share" / "attnbench";
  std::error_code none;
  return fs::exists(installed / "scripts", none) ? installed : fs::path(ATTNBENCH_SOURCE_TREE);
}

}  // namespace

// Both are found once: a search takes as long as a small cell.
const fs::path& library_file() {
  static const fs::path file = find_library();
  return file;
}

const fs::path& source_tree() {
  static const fs::path folder = find_source_tree();
  return folder;
}

}  // namespace attnbench
