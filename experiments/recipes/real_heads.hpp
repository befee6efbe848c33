// The heads of the project's byte-level model that recipes measure. Replicates are texts, each from a different
// held-out file.
#pragma once

#include <string>
#include <vector>

#include "harness/runner/recipe.hpp"

namespace attnbench {

// All texts that come with the model. A median over 32 texts has an interval down to an error rate of 2^-31.
constexpr Index texts = 32;

struct RealHead {
  Index layer, head;
  std::string input() const { return "model:layer=" + std::to_string(layer) + ",head=" + std::to_string(head); }
  std::string name() const { return "layer " + std::to_string(layer) + ", head " + std::to_string(head); }
};

// Three heads of the model by softmax attention on text 0, as the model computes it (model.json): the one with the
// largest effective support and the least effective rank, one in between, and the one with the smallest support, which
// looks at the previous token.
inline constexpr RealHead dense_head{0, 2}, typical_head{2, 0}, concentrated_head{1, 1};

// Every head of every layer.
std::vector<RealHead> all_heads();
// These three, one in a smoke run, and all heads at full size.
std::vector<RealHead> telling_heads(const Recipe& recipe);
std::vector<std::string> inputs_of(const std::vector<RealHead>& heads);

// The settings of a statement: some random inputs, then the telling heads.
struct LawOrHead {
  std::string name, input;
  std::string part = name;  // its region: one of its own, or the one of all heads
};
std::vector<LawOrHead> laws_and_heads(const Recipe& recipe, std::vector<LawOrHead> laws);
std::vector<std::string> inputs_of(const std::vector<LawOrHead>& all);
// The least and the greatest of several numbers. The interval runs from the extreme lower end to the extreme upper end,
// which is valid because the intervals hold simultaneously.
Estimate least_of(const std::vector<Estimate>& all);
Estimate greatest_of(const std::vector<Estimate>& all);
// The region of that name; it is added if missing.
Region& region(std::vector<Region>& regions, const std::string& name);

}  // namespace attnbench
