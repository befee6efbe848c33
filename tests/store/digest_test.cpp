// Digests, texts and shapes: known answers, and every flipped bit.
#include "harness/store/digest.hpp"

#include <set>

#include "harness/store/shape.hpp"
#include "harness/store/text.hpp"
#include "tests/catch.hpp"

namespace attnbench::digest_test {

namespace {

std::string counting(size_t length) {
  std::string bytes;
  for (size_t i = 0; i < length; ++i) bytes += static_cast<char>(i % 251);
  return bytes;
}

}  // namespace

// The answers come from a program of ten lines that follows the words of digest.hpp; results_file_test.py has them too.
TEST_CASE("digests are those that were computed by hand", "[unit]") {
  CHECK(digest_of("") == "9fb3ead23c8c0206");
  CHECK(digest_of("a") == "c977875341c301e6");
  CHECK(digest_of(std::string(64, 'a')) == "c0ec7c7004e81535");
  CHECK(digest_of(std::string(65, 'a')) == "6aa71173b074b57e");
  CHECK(digest_of(counting(5000)) == "5c4d1a158045ea59");  // 79 blocks, 10 and 2 of hashes
}

TEST_CASE("every flipped bit gives another digest, and so do exchanged blocks", "[unit]") {
  const std::string bytes = counting(700);
  std::set<std::string> digests{digest_of(bytes)};
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    digests.insert(digest_of(flipped));
  }
  digests.insert(digest_of(bytes.substr(64, 64) + bytes.substr(0, 64) + bytes.substr(128)));
  CHECK(digests.size() == 1 + 8 * bytes.size() + 1);
}

TEST_CASE("a text is UTF-8 without NUL", "[unit]") {
  for (const std::string text : {"", "plain\n\x7f", "\xc2\x80 \xdf\xbf", "\xe0\xa0\x80 \xed\x9f\xbf \xef\xbf\xbf",
                                 "\xf0\x90\x80\x80 \xf4\x8f\xbf\xbf"}) {
    CAPTURE(text);
    CHECK(is_text(text));
    CHECK(as_text(text) == text);
  }
  const std::string replaced = "\xef\xbf\xbd";
  for (const std::string& wrong :
       {std::string(1, '\0'), std::string("\x80"), std::string("\xc1\xbf"), std::string("\xc2"),
        std::string("\xe0\x9f\xbf"), std::string("\xed\xa0\x80"), std::string("\xe2\x82"),
        std::string("\xf0\x8f\xbf\xbf"), std::string("\xf4\x90\x80\x80"), std::string("\xf5\x80\x80\x80"),
        std::string("\xff")}) {
    CAPTURE(wrong);
    CHECK_FALSE(is_text(wrong));
    CHECK_FALSE(is_text("a" + wrong + "b"));
    std::string expected = "a";
    for (size_t i = 0; i < wrong.size(); ++i) expected += replaced;
    CHECK(as_text("a" + wrong + "b") == expected + "b");
  }
  CHECK(on_one_line("a\nb\t\xff") == "a?b?" + replaced);
}

TEST_CASE("a shape is read as it is written, and in no other form", "[unit]") {
  CHECK(to_text({}) == "[]");
  CHECK(to_text({4, 64}) == "[4,64]");
  CHECK(elements_of("[]") == 1);
  CHECK(elements_of("[0]") == 0);
  CHECK(elements_of("[4,64]") == 256);
  CHECK(elements_of("[125000000]") == most_elements);
  for (const char* wrong : {"",
                            "[",
                            "]",
                            "4",
                            "[4",
                            "4]",
                            "[-1]",
                            "[4,]",
                            "[,4]",
                            "[4, 64]",
                            "[04]",
                            "[+4]",
                            "[4.0]",
                            "[[4]]",
                            "{4}",
                            "[4]]",
                            "[125000001]",
                            "[125000000,2]",
                            "[4611686018427387904,4]",
                            "[99999999999999999999]"}) {
    CAPTURE(wrong);
    CHECK_FALSE(elements_of(wrong));
  }
}

}  // namespace attnbench::digest_test
