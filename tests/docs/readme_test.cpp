// README's table of methods is what the registry says.
#include <fstream>
#include <string>

#include "tests/catch.hpp"
#include "tests/program.hpp"

TEST_CASE("the README's table of methods is the registry's; attnbench list methods --markdown prints it",
          "[end-to-end]") {
  std::ifstream stream(std::string(ATTNBENCH_SOURCE_DIR) + "/README.md");
  const std::string readme{std::istreambuf_iterator<char>(stream), {}};
  const std::string begin = "<!-- methods: attnbench list methods --markdown -->\n", end = "<!-- end of methods -->";
  const size_t first = readme.find(begin) + begin.size();
  const auto table = attnbench::program("list methods --markdown");
  REQUIRE(table.code == 0);
  CHECK(readme.substr(first, readme.find(end) - first) == table.text);
}
