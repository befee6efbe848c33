// All outputs are 0. A method with a larger error than this does harm.
//   A = 0
#include "harness/core/approximation.hpp"

namespace attnbench::zero_method {
namespace {

template <class T>
class Zero final : public Approximation<T> {
 public:
  explicit Zero(const Draw&) {}
  void attend(const Head<T>&, Mask, Context&, Out<T> out) const override { out.setZero(); }
};

const bool registered = add(method<Zero>({
    .text = {.name = "zero",
             .printed = "Zero",
             .summary = "0: an error of all of the output",
             .formula = "A = 0",
             .reference = "none: the baseline",
             .cost = "O(n dv) time, no memory beyond input and output",
             .family = "baseline"},
    .parameters = {},
    .claims =
        [](const Params&, const Shape&) {
          return Claims{.non_negative = true, .permutation_equivariant = true, .causal_exact = true, .rank_at_most = 0};
        },
    .memory = [](const Params&, const Shape&) { return 0.0; },
    .cost = [](const Params&, const Shape&) { return Work{}; },
}));

}  // namespace
}  // namespace attnbench::zero_method
