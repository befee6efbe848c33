// Prompts that ask for a fact: what they state, where, and in how many tokens.
#include "harness/inputs/recall_prompts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "harness/random/streams.hpp"
#include "tests/catch.hpp"
#include "tests/inputs/tiny_language_model.hpp"
#include "tests/misuse.hpp"

namespace attnbench {
namespace {

struct Made {
  std::string text, answer;
};

Made made(const RecallTask& task, Index n, Index replicate = 0) {
  const Tokeniser tokeniser({.vocabulary = TinyLanguageModel::tokens(),
                             .merges = TinyLanguageModel::merges(),
                             .splitter = split_rule("gpt-2", "made").steps},
                            "made");
  const auto filler = tokeniser.encode(std::string(4000, '-'));
  auto generator = Streams(1).stream("recall", replicate);
  const RecallPrompt prompt = recall_prompt(tokeniser, filler, task, n, generator);
  CHECK(std::ssize(prompt.tokens) == n);
  const std::string all = tokeniser.decode(prompt.tokens);
  const auto length = static_cast<size_t>(prompt.answer);
  return {all.substr(0, all.size() - length), all.substr(all.size() - length)};
}

// The question with which the prompt ends.
std::string question(const Made& prompt) { return prompt.text.substr(prompt.text.rfind("The secret")); }

}  // namespace

TEST_CASE("a prompt states what it asks for, once, and the answer comes behind it", "[unit]") {
  for (const Index facts : {1, 4, 20})
    for (Index replicate = 0; replicate < 20; ++replicate) {
      const Made prompt = made({.facts = facts}, 2000, replicate);
      const std::string stated = fmt::format("{}{}.\n\n", question(prompt), prompt.answer);
      const size_t place = prompt.text.find(stated);
      REQUIRE(place != std::string::npos);
      CHECK(prompt.text.find(stated, place + 1) == std::string::npos);
      CHECK(prompt.answer.starts_with(" "));
      // Every name and every word is there once.
      std::set<std::string> names, words;
      for (size_t at = prompt.text.find("of "); at != std::string::npos; at = prompt.text.find("of ", at + 1)) {
        const size_t end = prompt.text.find(" is", at);
        names.insert(prompt.text.substr(at + 3, end - at - 3));
        words.insert(prompt.text.substr(end, prompt.text.find_first_of(".", end) - end));
      }
      CHECK(std::ssize(names) == facts);
      CHECK(std::ssize(words) == facts + 1);  // the question has none
    }
}

TEST_CASE("prompts of other replicates ask for other facts", "[unit]") {
  std::set<std::string> answers;
  for (Index replicate = 0; replicate < 40; ++replicate) answers.insert(made({.facts = 4}, 500, replicate).answer);
  CHECK(answers.size() > 15);
}

TEST_CASE("the fact that a prompt asks for is at its depth", "[unit]") {
  for (const double depth : {0.0, 0.25, 1.0})
    for (const Index facts : {1, 3}) {
      const Made prompt = made({.facts = facts, .depth = depth}, 1000);
      const size_t place = prompt.text.find(question(prompt) + prompt.answer);
      const std::string before = prompt.text.substr(0, place);
      const auto dashes = std::count(before.begin(), before.end(), '-');
      const auto all = std::count(prompt.text.begin(), prompt.text.end(), '-');
      CHECK(dashes == static_cast<Index>(depth * static_cast<double>(all)));
    }
}

TEST_CASE("impossible prompts are refused", "[unit]") {
  CHECK(contains(misuse_of([] { made({.facts = 33}, 1000); }), "expected 1 to 32"));
  CHECK(contains(misuse_of([] { made({.facts = 4}, 100); }), "facts=4 take"));
  CHECK(contains(misuse_of([] { made({.facts = 1}, 5000); }), "the text between facts has 4000 tokens"));
}

}  // namespace attnbench
