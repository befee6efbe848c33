// Locates the files that the program reads: scripts, models, templates, bibliographies.
#pragma once

#include <filesystem>
#include <string>

namespace attnbench {

// The library that contains this code. It is the program's own, whichever process has loaded it.
const std::filesystem::path& library_file();

// The folder that `cmake --install` filled, with lib/attnbench, share/attnbench and so on. Empty if the library runs
// from its build folder.
const std::filesystem::path& installation();

// The folder that contains scripts/, harness/ and so on: share/attnbench of the installation or, without an
// installation, the source tree of the build.
const std::filesystem::path& source_tree();

// The folder to add to an interpreter's path so that it finds the Python package attnbench. It need not exist. Empty if
// pip installed the package: its interpreter finds it without help, and the folder has packages for that one alone.
std::filesystem::path python_path();

// The interpreter of the program's own scripts, and of Python plugins by default. The command that pip installs says it
// in ATTNBENCH_INTERPRETER; otherwise it is that of the build.
std::string own_python();

}  // namespace attnbench
