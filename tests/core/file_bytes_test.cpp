#include "harness/core/file_bytes.hpp"

#include <fstream>

#include "tests/catch.hpp"
#include "tests/folder.hpp"

namespace attnbench::file_bytes_test {
namespace {

TEST_CASE("the bytes of a file are all of them, whatever they are, and a folder has none", "[unit]") {
  const Folder folder;
  std::string every;
  for (int i = 0; i < 70'001; ++i) every += static_cast<char>(i);  // more than one read, NUL and line ends among them
  for (const std::string& content : {every, std::string(), every.substr(0, size_t{1} << 16)}) {
    std::ofstream(folder / "file", std::ios::binary) << content;
    CHECK(file_bytes(folder / "file") == content);
  }
  CHECK_FALSE(file_bytes(folder.path()));
  CHECK_FALSE(file_bytes(folder / "missing"));
}

}  // namespace
}  // namespace attnbench::file_bytes_test
