#include "harness/machine/system_files.hpp"

#include <fstream>

namespace attnbench {

std::string first_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string line_after(const std::filesystem::path& path, std::string_view name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(name)) {
      const size_t value = line.find_first_not_of(" \t:", name.size());
      return value == std::string::npos ? "" : line.substr(value);
    }
  return "";
}

}  // namespace attnbench
