// Where what the program reads beside itself lies: scripts, models, templates, bibliographies.
#pragma once

#include <filesystem>

namespace attnbench {

// The library that this code is in: the program's own, whatever process has loaded it.
std::filesystem::path library_file();

// The folder that holds scripts/, harness/ and so on: share/attnbench of where it was installed, otherwise the source
// tree that it was built from.
std::filesystem::path source_tree();

}  // namespace attnbench
