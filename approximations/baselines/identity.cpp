// Returns V itself: the lower bound of all timings, since it does no attention work.
//   A_ij = 1 if j is the row's own position i + offset, 0 otherwise
// A row that sees no key at its own position is 0.
#include "harness/core/approximation.hpp"

namespace attnbench::identity_method {
namespace {

template <class T>
class OwnValue final : public Decoder<T> {
 public:
  void prefill(const Head<T>&, Context&) override {}
  void step(const Head<T>& token, Context&, Out<T> out) override { out = token.V; }
  size_t bytes() const override { return 0; }
};

template <class T>
class Identity final : public Approximation<T>, public Rows<T>, public Pattern<T>, public Differentiable<T> {
 public:
  explicit Identity(const Draw&) {}

  void attend(const Head<T>& head, Mask mask, Context&, Out<T> out) const override {
    for (Index i = 0; i < head.Q.rows(); ++i)
      if (const Index own = own_key(i, mask, head.K.rows()); own >= 0)
        out.row(i) = head.V.row(own);
      else
        out.row(i).setZero();
  }

  const Rows<T>* rows() const override { return this; }
  const Pattern<T>* pattern() const override { return this; }
  const Differentiable<T>* differentiable() const override { return this; }
  std::unique_ptr<Decoder<T>> decoder(const Shape&) const override { return std::make_unique<OwnValue<T>>(); }

  void attention_rows(const Head<T>&, Mask mask, Index first, Context&, Out<T> A) const override {
    A.setZero();
    for (Index i = 0; i < A.rows(); ++i)
      if (const Index own = own_key(first + i, mask, A.cols()); own >= 0) A(i, own) = 1;
  }
  void keys_of_rows(const Head<T>& head, Mask mask, Index first, Context&,
                    std::span<std::vector<Index>> keys) const override {
    for (size_t a = 0; a < keys.size(); ++a) {
      const Index own = own_key(first + static_cast<Index>(a), mask, head.K.rows());
      keys[a].assign(own >= 0 ? 1 : 0, own);
    }
  }

  void forward(const Head<T>& head, Mask mask, Context& context, Out<T> out, std::vector<T>&) const override {
    attend(head, mask, context, out);
  }
  void backward(const Head<T>& head, Mask mask, const In<T>&, const std::vector<T>&, const In<T>& G, Context&,
                Gradients<T> gradients) const override {
    gradients.Q.setZero();
    gradients.K.setZero();
    gradients.V.setZero();
    for (Index i = 0; i < head.Q.rows(); ++i)
      if (const Index own = own_key(i, mask, head.K.rows()); own >= 0) gradients.V.row(own) = G.row(i);
  }

 private:
  // The key at the row's own position, or -1. A causal mask never hides it.
  static Index own_key(Index i, Mask mask, Index nk) {
    const Index own = i + mask.offset;
    return own < Mask{.keys = mask.keys}.visible(0, nk) ? own : -1;
  }
};

const bool registered = add(method<Identity>({
    .text = {.name = "identity",
             .printed = "V itself",
             .summary = "V itself: the cost of attention that costs nothing",
             .formula = "A_ij = [j = i + offset]",
             .reference = "none: the baseline of timings",
             .cost = "O(n dv) time, no memory beyond input and output",
             .family = "baseline"},
    .parameters = {},
    .claims = [](const Params&,
                 const Shape&) { return Claims{.row_stochastic = true, .non_negative = true, .causal_exact = true}; },
    .memory = [](const Params&, const Shape&) { return 0.0; },
    .cost = [](const Params&, const Shape&) { return Work{}; },
}));

}  // namespace
}  // namespace attnbench::identity_method
