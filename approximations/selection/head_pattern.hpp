// Softmax over a pattern of keys that is made for each head from its queries and keys. methods.md U.
#pragma once

#include "approximations/sparse/sparse_softmax.hpp"

namespace attnbench {

template <class T>
class HeadPattern : public Approximation<T>, public Rows<T>, public Pattern<T> {
 public:
  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    sparse_softmax<T>(*pattern_of(head, mask, context), head, mask, context, out);
  }
  const Rows<T>* rows() const override { return this; }
  const Pattern<T>* pattern() const override { return this; }
  void attention_rows(const Head<T>& head, Mask mask, Index first, Context& context, Out<T> A) const override {
    sparse_softmax_rows<T>(*pattern_of(head, mask, context), head, mask, first, context, A);
  }
  void keys_of_rows(const Head<T>& head, Mask mask, Index first, Context& context,
                    std::span<std::vector<Index>> keys) const override {
    keys_of_pattern(*pattern_of(head, mask, context), head.Q.rows(), head.K.rows(), mask, first, keys);
  }

 private:
  virtual std::unique_ptr<const SparsePattern> pattern_of(const Head<T>& head, Mask mask, Context& context) const = 0;
};

}  // namespace attnbench
