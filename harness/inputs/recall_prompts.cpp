#include "harness/inputs/recall_prompts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "harness/errors/error.hpp"
#include "harness/random/uniform_numbers.hpp"

namespace attnbench {
namespace {

constexpr std::array<const char*, most_facts> names{
    "Alice", "Robert", "Maria",  "David",  "Sarah",  "James", "Laura", "Peter", "Emma",  "Thomas", "Julia",
    "Henry", "Clara",  "Martin", "Sophie", "Daniel", "Helen", "Frank", "Nora",  "Simon", "Ruth",   "Paul",
    "Anna",  "Jack",   "Lucy",   "Mark",   "Rose",   "Adam",  "Grace", "Leo",   "Kate",  "Hugo"};
constexpr std::array<const char*, most_facts> words{
    "apple",  "bridge", "candle", "river",  "garden", "window",  "silver", "dragon", "mirror", "pepper",  "violin",
    "hammer", "castle", "rabbit", "marble", "forest", "bottle",  "ticket", "planet", "basket", "lantern", "pillow",
    "copper", "saddle", "engine", "button", "carpet", "kitchen", "needle", "ladder", "falcon", "harbor"};

// The first `count` of all numbers below most_facts in random order.
std::vector<size_t> drawn(Generator& generator, Index count) {
  std::vector<size_t> all(most_facts);
  std::iota(all.begin(), all.end(), 0);
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    const double left = static_cast<double>(all.size() - i);
    std::swap(all[i], all[i + static_cast<size_t>(uniform_number(generator) * left)]);
  }
  all.resize(static_cast<size_t>(count));
  return all;
}

std::string question(size_t name) { return fmt::format("The secret word of {} is", names[name]); }

}  // namespace

RecallPrompt recall_prompt(const Tokeniser& tokeniser, std::span<const Index> filler, const RecallTask& task, Index n,
                           Generator& generator) {
  if (task.facts < 1 || task.facts > most_facts)
    throw Misuse(fmt::format("llm: facts={} was asked for; expected 1 to {}", task.facts, most_facts));
  const auto of = drawn(generator, task.facts), to = drawn(generator, task.facts);
  const auto asked = static_cast<size_t>(uniform_number(generator) * static_cast<double>(task.facts));
  std::vector<std::vector<Index>> facts;
  for (size_t i = 0; i < of.size(); ++i)
    facts.push_back(tokeniser.encode(fmt::format("\n\n{} {}.\n\n", question(of[i]), words[to[i]])));
  std::vector<Index> end = tokeniser.encode("\n\n" + question(of[asked]));
  const auto answer = tokeniser.encode(fmt::format(" {}", words[to[asked]]));
  end.insert(end.end(), answer.begin(), answer.end());

  Index room = n - std::ssize(end);  // for filler
  for (const auto& fact : facts) room -= std::ssize(fact);
  if (room < 0)
    throw Misuse(fmt::format("llm: facts={} take {} tokens; expected n to be at least that, and not {}", task.facts,
                             n - room, n));
  if (room > std::ssize(filler))
    throw Misuse(fmt::format("llm: n={} was asked for, and the text between facts has {} tokens; give a smaller n", n,
                             filler.size()));
  const auto share_of = [&](size_t fact) {
    return fact == asked && task.depth ? *task.depth
                                       : (static_cast<double>(fact) + 0.5) / static_cast<double>(task.facts);
  };
  std::vector<size_t> order(facts.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, share_of);

  RecallPrompt prompt{.tokens = {}, .answer = std::ssize(answer)};
  auto read = filler.begin();
  for (const size_t fact : order) {
    const auto until = filler.begin() + static_cast<Index>(std::floor(share_of(fact) * static_cast<double>(room)));
    prompt.tokens.insert(prompt.tokens.end(), read, until);
    prompt.tokens.insert(prompt.tokens.end(), facts[fact].begin(), facts[fact].end());
    read = until;
  }
  prompt.tokens.insert(prompt.tokens.end(), read, filler.begin() + room);
  prompt.tokens.insert(prompt.tokens.end(), end.begin(), end.end());
  return prompt;
}

}  // namespace attnbench
