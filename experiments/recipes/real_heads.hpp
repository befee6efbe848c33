// Which heads of the project's own transformer the recipes on matrices look at: one sample, the same in every
// replicate, so that what is measured on them without drawing anything has no interval.
#pragma once

#include <string>
#include <vector>

#include "harness/runner/recipe.hpp"

namespace attnbench {

struct RealHead {
  Index layer, head;
  std::string input() const { return "model:layer=" + std::to_string(layer) + ",head=" + std::to_string(head); }
  std::string name() const { return "layer " + std::to_string(layer) + ", head " + std::to_string(head); }
};

// Every head of every layer.
inline std::vector<RealHead> all_heads() {
  std::vector<RealHead> all;
  for (Index layer = 0; layer < 4; ++layer)
    for (Index head = 0; head < 3; ++head) all.push_back({layer, head});
  return all;
}

// Of softmax attention as the model computes it: the densest head, the one with the most concentrated rows, and the one
// of the least rank; all of them at full size.
inline std::vector<RealHead> telling_heads(RecipeSize size) {
  if (size == RecipeSize::smoke) return {{2, 1}};
  if (size == RecipeSize::quick) return {{0, 1}, {2, 1}, {3, 1}};
  return all_heads();
}

inline std::vector<std::string> inputs_of(const std::vector<RealHead>& heads) {
  std::vector<std::string> inputs;
  for (const RealHead& head : heads) inputs.push_back(head.input());
  return inputs;
}

// Of what was measured once, because nothing was drawn, the number itself; of draws their mean with its interval.
inline Estimate mean_of(const Samples& samples, double error_rate) {
  return samples.size() == 1 ? certain(samples.begin()->second) : mean(samples, error_rate);
}
// a over b, where b is what each draw of a is compared with when it was measured once.
inline Estimate ratio_of(const Samples& a, const Samples& b, double error_rate) {
  if (b.size() != 1) return ratio(a, b, error_rate);
  const double below = b.begin()->second;
  if (a.size() == 1) return certain(a.begin()->second / below);
  Samples same;
  for (const auto& [replicate, value] : a) same[replicate] = below;
  return ratio(a, same, error_rate);
}

}  // namespace attnbench
