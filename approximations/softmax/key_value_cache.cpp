#include "approximations/softmax/key_value_cache.hpp"

#include <fmt/format.h>

#include "harness/linalg/rows.hpp"

namespace attnbench {

namespace {
template <class T>
Index slots_for(const Shape& shape, const Eviction<T>* eviction) {
  return eviction ? std::min(eviction->slots(), shape.nk) : shape.nk;
}
}  // namespace

template <class T>
KeyValueCache<T>::KeyValueCache(const Shape& shape, std::unique_ptr<Eviction<T>> eviction)
    : eviction_(std::move(eviction)),
      capacity_(shape.nk),
      K_(slots_for(shape, eviction_.get()), shape.d),
      V_(K_.rows(), shape.dv),
      weights_(1, K_.rows()) {}

template <class T>
void KeyValueCache<T>::prefill(const Head<T>& tokens, Context& context) {
  for (Index j = 0; j < tokens.K.rows(); ++j) {
    add(row_block(tokens.K, j, 1), row_block(tokens.V, j, 1));
    if (eviction_ && eviction_->looks_at_attention()) weigh(row_block(tokens.Q, j, 1), context);
  }
}

template <class T>
void KeyValueCache<T>::step(const Head<T>& token, Context& context, Out<T> out) {
  add(token.K, token.V);
  read(token.Q, context, out);
}

template <class T>
size_t KeyValueCache<T>::bytes() const {
  const auto numbers = static_cast<size_t>(kept_ * (K_.cols() + V_.cols()));
  return numbers * sizeof(T) + (eviction_ ? eviction_->bytes(kept_) : 0);
}

template <class T>
void KeyValueCache<T>::add(const In<T>& k, const In<T>& v) {
  if (came_ == capacity_)
    throw Misuse(fmt::format("a decoder for {} tokens was given one more; make it with a larger shape.nk", capacity_));
  const Index slot = kept_ < K_.rows() ? kept_++ : eviction_->evict(came_);
  K_.row(slot) = k.row(0);
  V_.row(slot) = v.row(0);
  if (eviction_) eviction_->placed(came_, slot);
  ++came_;
}

template <class T>
void KeyValueCache<T>::read(const In<T>& q, Context& context, Out<T> out) {
  if (kept_ == 0) {
    out.setZero();
    return;
  }
  weigh(q, context);
  multiply<T>(context, weights(), row_block(V_, 0, kept_), out);
}

template <class T>
void KeyValueCache<T>::weigh(const In<T>& q, Context& context) {
  const Out<T> kept = corner(weights_, 1, kept_);
  multiply_transposed<T>(context, q, row_block(K_, 0, kept_), kept);
  softmax_within<T>(context, kept, 0, 0, kept_);
  if (eviction_) eviction_->attended({weights_.data(), static_cast<size_t>(kept_)});
}

template class KeyValueCache<float>;
template class KeyValueCache<double>;

}  // namespace attnbench
