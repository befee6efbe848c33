// Prompts that ask a language model for a fact that they have stated before: needles, and lists of keys and values.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "harness/inputs/checkpoint/tokeniser.hpp"
#include "harness/random/generator.hpp"

namespace attnbench {

struct RecallTask {
  Index facts = 1;              // that the prompt states, at most most_facts; it asks for one of them
  std::optional<double> depth;  // of the fact that it asks for, from 0 to 1; empty: facts are spread evenly
};

constexpr Index most_facts = 32;

struct RecallPrompt {
  std::vector<Index> tokens;  // the answer comes last
  Index answer = 0;           // tokens of the answer
};

// A prompt of n tokens, its answer included: the filler with sentences such as "The secret word of Alice is apple."
// between its parts, and the question "The secret word of Alice is". Names and words are drawn without replacement.
// Throws Misuse if the task is impossible, n is too small for the sentences or the filler is too short for n.
RecallPrompt recall_prompt(const Tokeniser& tokeniser, std::span<const Index> filler, const RecallTask& task, Index n,
                           Generator& generator);

}  // namespace attnbench
