// Decoding with a state of constant size: S += phi(k) v^T, z += phi(k), out = phi(q) S / phi(q).z (methods.md H;
// Katharopoulos et al., arXiv:2006.16236, section 3.4).
#include "approximations/linear/linear_attention.hpp"

namespace attnbench {
namespace {

constexpr Index prefill_block = 256;

template <class T>
class LinearDecoder final : public Decoder<T> {
 public:
  LinearDecoder(const FeatureMap<T>& map, Index dv) : map_(map), state_(map, dv), query_(map, 1), key_(map, 1) {}

  void prefill(const Head<T>& tokens, Context& context) override {
    FeatureBlock<T> keys(map_, std::min(prefill_block, tokens.K.rows()));
    for (Index j = 0; j < tokens.K.rows(); j += prefill_block) {
      const Index count = std::min(prefill_block, tokens.K.rows() - j);
      keys.map(context, row_block(tokens.K, j, count), Side::key, position_);
      state_.absorb(context, keys, row_block(tokens.V, j, count));
      position_ += count;
    }
  }

  void step(const Head<T>& token, Context& context, Out<T> out) override {
    key_.map(context, token.K, Side::key, position_);
    state_.absorb(context, key_, token.V);
    query_.map(context, token.Q, Side::query, position_);
    query_.scale_queries(context, state_.scale);
    T normaliser = 0;
    state_.read(context, query_.block(), out, {&normaliser, 1});
    out = normaliser == 0 ? Matrix<T>::Zero(1, out.cols()) : Matrix<T>(out / normaliser);
    ++position_;
  }

  size_t bytes() const override {
    return sizeof(T) * (static_cast<size_t>(state_.S.size() + state_.z.size()) + state_.scale.size());
  }

 private:
  const FeatureMap<T>& map_;
  LinearState<T> state_;
  FeatureBlock<T> query_, key_;
  Index position_ = 0;
};

}  // namespace

template <class T>
std::unique_ptr<Decoder<T>> LinearAttention<T>::decoder(const Shape& shape) const {
  if (map_->depends_on_keys()) return nullptr;
  return std::make_unique<LinearDecoder<T>>(*map_, shape.dv);
}

template std::unique_ptr<Decoder<float>> LinearAttention<float>::decoder(const Shape&) const;
template std::unique_ptr<Decoder<double>> LinearAttention<double>::decoder(const Shape&) const;

}  // namespace attnbench
