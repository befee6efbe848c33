// Files as text. An istreambuf_iterator takes single bytes, so that a run spent a tenth of a second on its own library,
// and ten seconds under sanitizers.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace attnbench {

// The bytes of a file; nothing if it cannot be read, as a folder cannot.
std::optional<std::string> file_bytes(const std::filesystem::path& file);

}  // namespace attnbench
