#include "harness/core/file_bytes.hpp"

#include <fstream>
#include <vector>

namespace attnbench {

std::optional<std::string> file_bytes(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string bytes;
  std::vector<char> piece(size_t{1} << 16);
  while (stream.read(piece.data(), static_cast<std::streamsize>(piece.size())), stream.gcount() > 0)
    bytes.append(piece.data(), static_cast<size_t>(stream.gcount()));
  if (!stream.eof()) return {};
  return bytes;
}

}  // namespace attnbench
