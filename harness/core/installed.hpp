// Locates the files that the program reads: scripts, models, templates, bibliographies.
#pragma once

#include <filesystem>

namespace attnbench {

// The library that contains this code. It is the program's own, whichever process has loaded it.
const std::filesystem::path& library_file();

// The folder that contains scripts/, harness/ and so on: share/attnbench of the installation or, without an
// installation, the source tree of the build.
const std::filesystem::path& source_tree();

}  // namespace attnbench
