// The Python scripts beside the program: plotting and the page.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace attnbench {

// Runs scripts/NAME with the interpreter that has the packages and returns its exit code. The scripts are looked for in
// the source tree that the program was built from. Throws Misuse when they or the interpreter are missing.
int run_script(const std::string& name, const std::vector<std::string>& arguments);

// Makes the folder that a script will write to, before what it shows is measured. Throws Misuse when that cannot be.
void require_folder(const std::string& command, const std::filesystem::path& folder);

}  // namespace attnbench
