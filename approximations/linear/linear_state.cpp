#include "approximations/linear/linear_state.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "harness/linalg/exponentials.hpp"
#include "harness/linalg/per_row.hpp"
#include "harness/linalg/rounding.hpp"
#include "harness/linalg/rows.hpp"

namespace attnbench {

template <class T>
void FeatureBlock<T>::map(Context& context, const In<T>& X, Side side, Index first) {
  count_ = X.rows();
  map_.map(context, X, side, first, block(), log_scale());
}

template <class T>
void FeatureBlock<T>::raise(std::vector<T>& scale, Index count) const {
  const std::span<const T> offsets(log_scale_.data(), static_cast<size_t>(count));
  if (map_.form() == Form::exponents)
    raise_to_column_maxima<T>(row_block(block_, 0, count), offsets, scale);
  else
    for (const T s : offsets) scale[0] = std::max(scale[0], s);
}

namespace {
template <class T>
std::vector<T> negated(const std::vector<T>& v) {
  std::vector<T> down(v.size());
  std::transform(v.begin(), v.end(), down.begin(), std::negate<>());
  return down;
}
}  // namespace

template <class T>
Index FeatureBlock<T>::first_above(const std::vector<T>& scale, T most, Index begin) const {
  PerRow<T> excess(count_ - begin, -scale[0]);
  if (map_.form() == Form::exponents) row_maxima<T>(row_block(block_, begin, count_ - begin), negated(scale), excess);
  for (Index i = begin; i < count_; ++i)
    if (!(excess[i - begin] + log_scale_[static_cast<size_t>(i)] <= most)) return i;
  return count_;
}

template <class T>
void FeatureBlock<T>::scale_keys(Context& context, const std::vector<T>& scale, Index count, std::span<T> column_sum) {
  const auto kept = corner(block_, count, block_.cols());
  if (map_.form() == Form::exponents) {
    exponentiate<T>(context, kept, {log_scale_.data(), static_cast<size_t>(count)}, negated(scale), column_sum);
  } else {
    for (Index i = 0; i < count; ++i)
      if (const T s = log_scale_[static_cast<size_t>(i)]; s != scale[0]) block_.row(i) *= std::exp(s - scale[0]);
    round_to<T>(context.rounding(), kept);
    if (!column_sum.empty()) add_column_sums<T>(kept, column_sum);
  }
  block().bottomRows(count_ - count).setZero();
}

template <class T>
void FeatureBlock<T>::scale_queries(Context& context, const std::vector<T>& scale) {
  if (map_.form() == Form::values) {
    for (T& s : log_scale()) s += scale[0];
    return round_to<T>(context.rounding(), block());
  }
  PerRow<T> largest(count_);
  row_maxima<T>(block(), scale, largest);
  for (T& c : largest) c = -c;
  exponentiate<T>(context, block(), largest, scale);
  for (size_t i = 0; i < largest.size(); ++i) log_scale_[i] -= largest[i];
}

template <class T>
LinearState<T>::LinearState(const FeatureMap<T>& map, Index dv)
    : form(map.form()),
      S(Matrix<T>::Zero(map.features(), dv)),
      z(Matrix<T>::Zero(map.features(), 1)),
      scale(form == Form::exponents ? static_cast<size_t>(map.features()) : 1, -std::numeric_limits<T>::infinity()) {}

template <class T>
void LinearState<T>::rescale(const std::vector<T>& fresh) {
  for (size_t f = 0; f < scale.size(); ++f) {
    if (scale[f] == fresh[f]) continue;
    const T factor = std::exp(scale[f] - fresh[f]);
    if (form == Form::exponents) {
      S.row(static_cast<Index>(f)) *= factor;
      z(static_cast<Index>(f), 0) *= factor;
    } else {
      S *= factor;
      z *= factor;
    }
    scale[f] = fresh[f];
  }
}

template <class T>
void LinearState<T>::absorb(Context& context, FeatureBlock<T>& keys, const In<T>& V) {
  std::vector<T> fresh = scale;
  keys.raise(fresh, V.rows());
  rescale(fresh);
  keys.scale_keys(context, scale, V.rows(), z_entries());
  add_products(context, keys.block(), V);
}

template <class T>
void LinearState<T>::add_products(Context& context, const Out<T>& keys, const In<T>& V) {
  transposed_multiply_add<T>(context, keys, V, S);
  round_to<T>(context.rounding(), Out<T>(z));
}

template <class T>
void LinearState<T>::merge(LinearState& other) {
  if (other.empty()) return;
  std::vector<T> fresh = scale;
  for (size_t f = 0; f < scale.size(); ++f) fresh[f] = std::max(fresh[f], other.scale[f]);
  rescale(fresh);
  other.rescale(fresh);
  S += other.S;
  z += other.z;
}

template <class T>
void LinearState<T>::read(Context& context, const Out<T>& queries, Out<T> numerators, std::span<T> normalisers) const {
  multiply<T>(context, queries, S, numerators);
  multiply<T>(context, queries, z, Out<T>(normalisers.data(), queries.rows(), 1, 1));
}

template <class T>
LinearState<T> absorb_all(const FeatureMap<T>& map, const Head<T>& head, Index keys, Context& context) {
  constexpr Index key_block = 256, most_chunks = 8;
  const Index chunk = std::max(4 * key_block, (keys + most_chunks - 1) / most_chunks);
  const Index chunks = std::max<Index>(1, (keys + chunk - 1) / chunk);
  std::vector<LinearState<T>> partial(static_cast<size_t>(chunks), LinearState<T>(map, head.V.cols()));
  context.for_blocks(keys, chunk, [&](Context& single, Index begin, Index count) {
    FeatureBlock<T> features(map, std::min(count, key_block));
    for (Index j = begin; j < begin + count; j += key_block) {
      const Index b = std::min(key_block, begin + count - j), next = std::min(key_block, begin + count - j - b);
      features.map(single, row_block(head.K, j, b), Side::key, j);
      fetch_during_products<T>({row_block(head.K, j + b, next), row_block(head.V, j + b, next)});
      partial[static_cast<size_t>(begin / chunk)].absorb(single, features, row_block(head.V, j, b));
    }
  });
  for (size_t c = 1; c < partial.size(); ++c) partial[0].merge(partial[c]);
  return std::move(partial[0]);
}

template <class T>
void divide_rows(const Out<T>& numerators, std::span<const T> normalisers, Out<T> out) {
  for (Index i = 0; i < numerators.rows(); ++i) {
    const T normaliser = normalisers[static_cast<size_t>(i)];
    if (normaliser == 0)
      out.row(i).setZero();
    else if (std::abs(normaliser) < std::numeric_limits<T>::min())  // subnormal: its reciprocal may be infinite
      out.row(i) = numerators.row(i) / normaliser;
    else
      out.row(i) = numerators.row(i) * (1 / normaliser);
  }
}

template LinearState<float> absorb_all<float>(const FeatureMap<float>&, const Head<float>&, Index, Context&);
template LinearState<double> absorb_all<double>(const FeatureMap<double>&, const Head<double>&, Index, Context&);
template void divide_rows<float>(const Out<float>&, std::span<const float>, Out<float>);
template void divide_rows<double>(const Out<double>&, std::span<const double>, Out<double>);
template class FeatureBlock<float>;
template class FeatureBlock<double>;
template struct LinearState<float>;
template struct LinearState<double>;

}  // namespace attnbench
