// A budget that several heads of one layer share, for methods whose heads take what is worth most over all of them.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "harness/core/approximation.hpp"

namespace attnbench {

// Second base class, beside Approximation.
template <class T>
class SharesBudget {
 public:
  virtual ~SharesBudget() = default;
  // One for each head of a layer, with the budget that the head gets of that of all of them. Empty: each head keeps its
  // own. heads: one for each instance, all of this method; scaled.
  virtual std::vector<std::unique_ptr<Approximation<T>>> divided(
      std::span<const std::unique_ptr<Approximation<T>>> instances, std::span<const HeadData<T>> heads, Mask mask,
      Context& context) const = 0;
};

// Divides the budget of the heads of one layer, if their method does so. Instances of several methods (per-head) keep
// their own.
template <class T>
void divide_budget(std::vector<std::unique_ptr<Approximation<T>>>& instances, std::span<const HeadData<T>> heads,
                   Mask mask, Context& context) {
  const auto shares = [](const auto& instance) { return dynamic_cast<const SharesBudget<T>*>(instance.get()); };
  if (instances.empty() || !std::all_of(instances.begin(), instances.end(), shares)) return;
  auto divided = shares(instances.front())->divided(instances, heads, mask, context);
  if (!divided.empty()) instances = std::move(divided);
}

}  // namespace attnbench
