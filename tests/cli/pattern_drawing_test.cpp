// attnbench describe --pattern, as a user would call it.

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/catch.hpp"
#include "tests/folder.hpp"
#include "tests/program.hpp"

namespace attnbench::pattern_drawing_test {

namespace {

Answer describe(const std::string& arguments) { return program("describe " + arguments); }

std::string contents(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace

TEST_CASE("a pattern is drawn a character a pair, with its pairs and density", "[end-to-end]") {
  const auto drawn = describe("local:window=1 --pattern -n 5");
  CHECK(drawn.code == 0);
  CHECK_THAT(drawn.text, ContainsSubstring("local:window=1, n = 5: nnz 13, density 0.52\n"));
  CHECK_THAT(drawn.text, ContainsSubstring("\n##...\n###..\n.###.\n..###\n...##\n"));
  const auto causal = describe("local:window=1 --pattern -n 5 --causal");
  CHECK_THAT(causal.text, ContainsSubstring("nnz 9"));
  CHECK_THAT(causal.text, ContainsSubstring("\n#....\n##...\n.##..\n..##.\n...##\n"));
  CHECK_THAT(describe("dilated:stride=2 --pattern -n 4").text, ContainsSubstring("\n#.#.\n.#.#\n#.#.\n.#.#\n"));
  CHECK_THAT(describe("global:global=1,self=false --pattern -n 3").text, ContainsSubstring("\n###\n#..\n#..\n"));
}

TEST_CASE("more tokens than a line has characters are drawn in cells", "[end-to-end]") {
  const auto drawn = describe("local:window=1 --pattern -n 192");
  CHECK(drawn.code == 0);
  CHECK_THAT(drawn.text, ContainsSubstring("a character is 2 x 2 pairs"));
  CHECK_THAT(drawn.text, ContainsSubstring("\n#+" + std::string(94, '.') + "\n"));
}

TEST_CASE("without a number of tokens a pattern is drawn at a length at which it leaves out half of the pairs",
          "[end-to-end]") {
  const auto local = describe("local --pattern");  // of its window, 64 on either side, 64 tokens show nothing
  CHECK_THAT(local.text, ContainsSubstring("local, n = 256: nnz 28864, density 0.4404\n"));
  CHECK_THAT(local.text, ContainsSubstring("."));
  CHECK_THAT(describe("local --pattern --causal").text, ContainsSubstring(", n = 256: "));
  CHECK_THAT(describe("local:window=4 --pattern").text, ContainsSubstring(", n = 64: "));
  CHECK_THAT(describe("local:window=4096 --pattern").text, ContainsSubstring(", n = 1024: nnz 1048576, density 1\n"));
}

TEST_CASE("a pattern that depends on the tokens says so, and others do not", "[end-to-end]") {
  CHECK_THAT(describe("top-k:k=3 --pattern -n 8").text, ContainsSubstring("nnz 24") && ContainsSubstring("depends"));
  CHECK_THAT(describe("heavy-hitter:heavy=2,recent=2 --pattern -n 8 --causal").text, ContainsSubstring("depends"));
  const auto drawn = describe("bigbird:block=2 --pattern -n 40");
  CHECK_THAT(drawn.text, !ContainsSubstring("depends"));
  CHECK(drawn.text == describe("bigbird:block=2 --pattern -n 40").text);
}

TEST_CASE("a pattern is drawn as an image, equal bytes for equal patterns", "[end-to-end]") {
  const Folder folder;
  for (const auto& [ending, begins] : {std::pair<std::string, std::string>{"png", "\x89PNG"}, {"svg", "<?xml"}}) {
    const std::string one = folder / ("one." + ending), two = folder / ("two." + ending);
    const auto drawn = describe("strided:stride=4 --pattern -n 32 --image " + one);
    INFO(drawn.text);
    CHECK(drawn.code == 0);
    CHECK(contents(one).starts_with(begins));
    CHECK(describe("strided:stride=4 --pattern -n 32 --image " + two).code == 0);
    CHECK(contents(one) == contents(two));
  }
  CHECK(describe("local --pattern --image " + (folder / "missing/x.png")).code == 2);
}

TEST_CASE("what cannot be drawn is refused with a reason", "[end-to-end]") {
  for (const auto& [arguments, reason] : {std::pair<std::string, std::string>{"softmax --pattern", "has no pattern"},
                                          {"local --pattern -n 0", "expected 1 to"},
                                          {"local --pattern -n 100000", "expected 1 to"},
                                          {"local --pattern --image x.gif", ".png or .svg"},
                                          {"heavy-hitter --pattern", "no bidirectional form"},
                                          {"lokal --pattern", "local"},
                                          {"local -n 5", "--pattern"},
                                          {"local --causal", "--pattern"}}) {
    INFO(arguments);
    const auto refused = describe(arguments);
    CHECK(refused.code == 2);
    CHECK_THAT(refused.text, ContainsSubstring(reason));
  }
}

}  // namespace attnbench::pattern_drawing_test
