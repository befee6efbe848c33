// A method's claims in words: for `describe`, and for the table of `list methods --markdown`.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/core/approximation.hpp"

namespace attnbench {

// The shape that claims, costs and caveats are printed for.
inline constexpr Shape example_shape{.nq = 4096, .nk = 4096, .d = 64, .dv = 64};

// An instance for a small head that fitted methods learn from, with the mask that the method has a form for. Null where
// it has no form for so small a head.
struct SmallSizes {
  Index n, d;
};
inline constexpr SmallSizes small_sizes{256, 16};
std::unique_ptr<Approximation<double>> small_instance(const Params& params);

struct Promise {
  std::string words, brief;  // a line of `describe`, and a few words of a table, which leaves out empty ones
};
// Of a configuration, in the order in which they are printed. `attnbench check` tests each of them.
std::vector<Promise> promises_of(const Params& params);

}  // namespace attnbench
