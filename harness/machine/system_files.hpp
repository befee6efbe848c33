// Reads Linux's text files about this machine: /proc, /sys and /etc. A file that cannot be read gives empty text.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace attnbench {

std::string first_line(const std::filesystem::path& path);
// The rest of the first line that starts with `name`, without the separator. Empty if no line does.
std::string line_after(const std::filesystem::path& path, std::string_view name);

}  // namespace attnbench
