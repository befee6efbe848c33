// The heads of the project's byte-level model that recipes look at. Replicates are texts: each is another held-out
// file.
#pragma once

#include <string>
#include <vector>

#include "harness/runner/recipe.hpp"

namespace attnbench {

// As many texts as the model comes with. A median over 32 texts has an interval down to an error rate of 2^-31.
constexpr Index texts = 32;

struct RealHead {
  Index layer, head;
  std::string input() const { return "model:layer=" + std::to_string(layer) + ",head=" + std::to_string(head); }
  std::string name() const { return "layer " + std::to_string(layer) + ", head " + std::to_string(head); }
};

// Every head of every layer.
std::vector<RealHead> all_heads();
// Of softmax attention as the model computes it: the densest head, the one with the most concentrated rows, and the one
// of the least rank; all of them at full size.
std::vector<RealHead> telling_heads(const Recipe& recipe);
std::vector<std::string> inputs_of(const std::vector<RealHead>& heads);

// Some laws, and after them the telling heads, as the settings of a statement.
struct LawOrHead {
  std::string name, input;
  std::string part = name;  // the region that it belongs to: of its own, or that of all heads
};
std::vector<LawOrHead> laws_and_heads(const Recipe& recipe, std::vector<LawOrHead> laws);
std::vector<std::string> inputs_of(const std::vector<LawOrHead>& all);
// The extremes of numbers whose intervals hold all at once: they lie between the extremes of the ends.
Estimate least_of(const std::vector<Estimate>& all);
Estimate greatest_of(const std::vector<Estimate>& all);
// The region of that name, which is added when it is not there.
Region& region(std::vector<Region>& regions, const std::string& name);

}  // namespace attnbench
