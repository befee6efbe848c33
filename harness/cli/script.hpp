// Runs the project's Python scripts, for plotting and for the page.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace attnbench {

// Runs scripts/NAME with the interpreter that has the packages and returns its exit code. Looks for the scripts in
// source_tree(). Throws Misuse if they or the interpreter are missing.
int run_script(const std::string& name, const std::vector<std::string>& arguments);

// Creates the folder that a script will write to, before anything is measured. Throws Misuse if that is impossible.
void require_folder(const std::string& command, const std::filesystem::path& folder);

}  // namespace attnbench
