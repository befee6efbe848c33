// V itself: what attention costs when it costs nothing, the lower line of timings.
//   A_ij = 1 if j is the row's own position i + offset, 0 otherwise
// A row whose own position is no key that it sees is 0.
#include "harness/core/approximation.hpp"

namespace attnbench {
namespace {

template <class T>
class Identity final : public Approximation<T> {
 public:
  explicit Identity(const Draw&) {}

  void attend(const Head<T>& head, Mask mask, Context&, Out<T> out) const override {
    const Index keys = Mask{.keys = mask.keys}.visible(0, head.K.rows());  // a causal mask leaves a row itself
    for (Index i = 0; i < head.Q.rows(); ++i) {
      const Index own = i + mask.offset;
      if (own >= 0 && own < keys)
        out.row(i) = head.V.row(own);
      else
        out.row(i).setZero();
    }
  }
};

const bool registered = add(method<Identity>({
    .text = {.name = "identity",
             .summary = "V itself: the cost of attention that costs nothing",
             .formula = "A_ij = [j = i + offset]",
             .reference = "none: the baseline of timings",
             .cost = "O(n dv) time, no memory beyond input and output",
             .family = "baseline"},
    .parameters = {},
    .claims = [](const Params&,
                 const Shape&) { return Claims{.row_stochastic = true, .non_negative = true, .causal_exact = true}; },
    .cost = [](const Params&, const Shape&) { return Work{}; },
}));

}  // namespace
}  // namespace attnbench
