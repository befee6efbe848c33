// The table of docs/method-list.md is the registry's.
#include <cstdio>
#include <fstream>
#include <string>

#include "tests/catch.hpp"

TEST_CASE("the table of docs/method-list.md is the registry's; attnbench list methods --markdown prints it",
          "[end-to-end]") {
  std::ifstream stream(std::string(ATTNBENCH_SOURCE_DIR) + "/docs/method-list.md");
  const std::string page{std::istreambuf_iterator<char>(stream), {}};
  const std::string begin = "<!-- methods: attnbench list methods --markdown -->\n", end = "<!-- end of methods -->";
  REQUIRE(page.find(begin) != std::string::npos);
  const size_t first = page.find(begin) + begin.size();
  FILE* pipe = popen("'" ATTNBENCH_PROGRAM "' list methods --markdown", "r");
  REQUIRE(pipe != nullptr);
  std::string table;
  for (int c = 0; (c = fgetc(pipe)) != EOF;) table += static_cast<char>(c);
  REQUIRE(pclose(pipe) == 0);
  CHECK(page.substr(first, page.find(end) - first) == table);
}
