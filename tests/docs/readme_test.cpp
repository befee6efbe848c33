// README's table of methods is what the registry says.
#include <cstdio>
#include <fstream>
#include <string>

#include "tests/catch.hpp"

TEST_CASE("the README's table of methods is the registry's; attnbench list methods --markdown prints it",
          "[end-to-end]") {
  std::ifstream stream(std::string(ATTNBENCH_SOURCE_DIR) + "/README.md");
  const std::string readme{std::istreambuf_iterator<char>(stream), {}};
  const std::string begin = "<!-- methods: attnbench list methods --markdown -->\n", end = "<!-- end of methods -->";
  const size_t first = readme.find(begin) + begin.size();
  FILE* pipe = popen("'" ATTNBENCH_PROGRAM "' list methods --markdown", "r");
  REQUIRE(pipe != nullptr);
  std::string table;
  for (int c = 0; (c = fgetc(pipe)) != EOF;) table += static_cast<char>(c);
  REQUIRE(pclose(pipe) == 0);
  CHECK(readme.substr(first, readme.find(end) - first) == table);
}
