// Decoding without a cache: every step recomputes the causal attention of all tokens. Source 004 (methods.md Z) counts
// the cost of a softmax step this way. O(t^2 (d + dv)) a step.
#pragma once

#include <fmt/format.h>

#include "harness/core/approximation.hpp"

namespace attnbench {

template <class T>
class Recomputation final : public Decoder<T> {
 public:
  Recomputation(const Approximation<T>& method, const Shape& shape)
      : method_(method),
        Q_(shape.nk, shape.d),
        K_(shape.nk, shape.d),
        V_(shape.nk, shape.dv),
        out_(shape.nk, shape.dv) {}

  void prefill(const Head<T>& tokens, Context&) override {
    const Index count = tokens.K.rows();
    if (came_ + count > K_.rows())
      throw Misuse(fmt::format("a decoder for {} tokens was given {}; make it with a larger shape.nk", K_.rows(),
                               came_ + count));
    Q_.middleRows(came_, count) = tokens.Q;
    K_.middleRows(came_, count) = tokens.K;
    V_.middleRows(came_, count) = tokens.V;
    came_ += count;
  }

  void step(const Head<T>& token, Context& context, Out<T> out) override {
    prefill(token, context);
    method_.attend({row_block(Q_, 0, came_), row_block(K_, 0, came_), row_block(V_, 0, came_)}, {.causal = true},
                   context, row_block(out_, 0, came_));
    out.row(0) = out_.row(came_ - 1);
  }

  // The tokens themselves.
  size_t bytes() const override { return static_cast<size_t>(came_ * (Q_.cols() + K_.cols() + V_.cols())) * sizeof(T); }

 private:
  const Approximation<T>& method_;
  Matrix<T> Q_, K_, V_;  // capacity x d, capacity x d, capacity x dv
  Matrix<T> out_;        // capacity x dv
  Index came_ = 0;
};

}  // namespace attnbench
