#include "approximations/linear/linear_attention.hpp"

#include <cmath>

#include "harness/linalg/rows.hpp"

namespace attnbench {

namespace {
constexpr Index key_block = 256;
constexpr Index query_block = 256;
constexpr Index causal_chunk = 64;
constexpr Index most_key_chunks = 8;  // partial sums over keys, added in index order whatever the number of threads

template <class T>
constexpr T lowest = -std::numeric_limits<T>::infinity();

template <class T>
void divide_rows(Out<T> numerators, std::span<const T> normalisers) {
  for (Index i = 0; i < numerators.rows(); ++i) {
    const T normaliser = normalisers[static_cast<size_t>(i)];
    if (normaliser == 0)
      numerators.row(i).setZero();
    else
      numerators.row(i) /= normaliser;
  }
}

template <class T>
std::span<T> first(std::vector<T>& v, Index count) {
  return {v.data(), static_cast<size_t>(count)};
}
}  // namespace

// The features of one block of rows, with the memory for the largest block.
template <class T>
class LinearAttention<T>::Features {
 public:
  Features(const LinearAttention& owner, Index rows)
      : owner_(owner), block_(rows, owner.map_->features()), log_scale_(static_cast<size_t>(rows)) {}

  // Maps rows [first, first + count) of X.
  void map(Context& context, const In<T>& X, Side side, Index first_row, Index count) {
    count_ = count;
    owner_.map_->map(context, attnbench::rows(X, first_row, count), side, first_row, block(), log_scale());
    if (owner_.map_->form() == Form::exponents)
      for (Index i = 0; i < count; ++i) block_.row(i).array() += log_scale_[static_cast<size_t>(i)];
  }

  // Exponents to values with one log scale a row (its largest exponent); values are left as they are.
  void to_row_scaled(Context& context) {
    if (owner_.map_->form() == Form::values) return;
    row_maxima<T>(block(), log_scale());
    exponentiate_rows<T>(context, block(), log_scale());
  }

  Out<T> block() { return corner(block_, count_, block_.cols()); }
  std::span<T> log_scale() { return {log_scale_.data(), static_cast<size_t>(count_)}; }

 private:
  const LinearAttention& owner_;
  Matrix<T> block_;
  std::vector<T> log_scale_;
  Index count_ = 0;
};

// S and z over the keys absorbed so far. Exponents: feature f is scaled by exp(-scale_f). Values: all of it by
// exp(-scale_0).
template <class T>
struct LinearAttention<T>::State {
  State(Form map_form, Index features, Index dv)
      : form(map_form), S(Matrix<T>::Zero(features, dv)), z(Matrix<T>::Zero(features, 1)) {
    scale.assign(form == Form::exponents ? static_cast<size_t>(features) : 1, lowest<T>);
  }

  Form form;
  Matrix<T> S;  // F x dv
  Matrix<T> z;  // F x 1
  std::vector<T> scale;

  bool empty() const { return scale[0] == lowest<T>; }

  // Moves the sums to new scales, which are not below the old ones.
  void rescale(const std::vector<T>& fresh) {
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

  // Adds keys whose features are in `keys` (overwritten), with their values.
  void absorb(Context& context, Features& keys, const In<T>& V) {
    std::vector<T> fresh = scale;
    auto block = keys.block();
    if (form == Form::exponents) {
      raise_to_column_maxima<T>(block, fresh);
      rescale(fresh);
      exponentiate_columns<T>(context, block, fresh);
    } else {
      for (const T s : keys.log_scale()) fresh[0] = std::max(fresh[0], s);
      rescale(fresh);
      for (T& s : keys.log_scale()) s = std::exp(s - fresh[0]);
      scale_rows<T>(block, keys.log_scale());
    }
    transposed_multiply_add<T>(context, block, V, S);
    add_column_sums<T>(block, std::span<T>(z.data(), static_cast<size_t>(z.size())));
  }

  void merge(State& other) {
    std::vector<T> fresh = scale;
    for (size_t f = 0; f < scale.size(); ++f) fresh[f] = std::max(fresh[f], other.scale[f]);
    if (other.empty()) return;
    rescale(fresh);
    other.rescale(fresh);
    S += other.S;
    z += other.z;
  }

  // numerators_i = phi(q_i) S, normalisers_i = phi(q_i).z, over exp(log_scale_i). `queries` is overwritten.
  void read(Context& context, Features& queries, Out<T> numerators, std::span<T> normalisers,
            std::span<T> log_scale) const {
    auto block = queries.block();
    if (form == Form::exponents) {
      for (Index i = 0; i < block.rows(); ++i)
        for (Index f = 0; f < block.cols(); ++f) block(i, f) += scale[static_cast<size_t>(f)];
      row_maxima<T>(block, log_scale);
      exponentiate_rows<T>(context, block, log_scale);
    } else {
      for (size_t i = 0; i < log_scale.size(); ++i) log_scale[i] = queries.log_scale()[i] + scale[0];
    }
    multiply<T>(context, block, S, numerators);
    multiply<T>(context, block, z, Out<T>(normalisers.data(), block.rows(), 1, 1));
  }
};

template <class T>
std::unique_ptr<const LinearAttention<T>> LinearAttention<T>::given(const In<T>& K, Context& context) const {
  auto map = map_->given_keys(context, K);
  return map ? std::make_unique<const LinearAttention>(std::move(map)) : nullptr;
}

template <class T>
void LinearAttention<T>::attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const {
  stream(head, mask, context, [&](Index first_row, Out<T> numerators, std::span<T> normalisers, std::span<T>) {
    divide_rows<T>(numerators, normalisers);
    attnbench::rows(out, first_row, numerators.rows()) = numerators;
  });
}

template <class T>
void LinearAttention<T>::normalisers(const Head<T>& head, Mask mask, Context& context, std::span<T> values,
                                     std::span<T> log_scale) const {
  const Matrix<T> one = Matrix<T>::Ones(head.K.rows(), 1);  // any V: the numerators are dropped
  stream({head.Q, head.K, one, head.extra}, mask, context,
         [&](Index first_row, Out<T>, std::span<T> block_values, std::span<T> block_scale) {
           std::copy(block_values.begin(), block_values.end(), values.begin() + first_row);
           std::copy(block_scale.begin(), block_scale.end(), log_scale.begin() + first_row);
         });
}

template <class T>
void LinearAttention<T>::stream(const Head<T>& head, Mask mask, Context& context, const Sink& sink) const {
  const Index unpadded = Mask{.keys = mask.keys}.visible(0, head.K.rows());
  if (const auto same = given(attnbench::rows(head.K, 0, unpadded), context))
    same->stream(head, mask, context, sink);
  else if (mask.causal)
    stream_causal(head, mask, context, sink);
  else
    stream_bidirectional(head, mask, context, sink);
}

template <class T>
typename LinearAttention<T>::State LinearAttention<T>::absorb_all(const Head<T>& head, Index keys,
                                                                  Context& context) const {
  const Index chunk = std::max(4 * key_block, (keys + most_key_chunks - 1) / most_key_chunks);
  const Index chunks = std::max<Index>(1, (keys + chunk - 1) / chunk);
  std::vector<State> partial(static_cast<size_t>(chunks), State(map_->form(), map_->features(), head.V.cols()));
  context.for_blocks(keys, chunk, [&](Context& single, Index begin, Index count) {
    Features features(*this, std::min(count, key_block));
    for (Index j = begin; j < begin + count; j += key_block) {
      const Index b = std::min(key_block, begin + count - j);
      features.map(single, head.K, Side::key, j, b);
      partial[static_cast<size_t>(begin / chunk)].absorb(single, features, attnbench::rows(head.V, j, b));
    }
  });
  for (size_t c = 1; c < partial.size(); ++c) partial[0].merge(partial[c]);
  return std::move(partial[0]);
}

template <class T>
void LinearAttention<T>::stream_bidirectional(const Head<T>& head, Mask mask, Context& context,
                                              const Sink& sink) const {
  const Index nq = head.Q.rows(), dv = head.V.cols();
  const State state = absorb_all(head, mask.visible(0, head.K.rows()), context);
  context.for_blocks(nq, query_block, [&](Context& single, Index begin, Index count) {
    Features queries(*this, count);
    Matrix<T> numerators = Matrix<T>::Zero(count, dv);
    std::vector<T> normalisers(static_cast<size_t>(count)), log_scale(static_cast<size_t>(count), lowest<T>);
    if (!state.empty()) {
      queries.map(single, head.Q, Side::query, begin, count);
      state.read(single, queries, numerators, normalisers, log_scale);
    }
    sink(begin, numerators, normalisers, log_scale);
  });
}

template <class T>
void LinearAttention<T>::stream_causal(const Head<T>& head, Mask mask, Context& context, const Sink& sink) const {
  const Index nq = head.Q.rows(), nk = head.K.rows(), dv = head.V.cols();
  State state(map_->form(), map_->features(), dv);
  Features queries(*this, causal_chunk), keys(*this, causal_chunk);
  Matrix<T> numerators(causal_chunk, dv);
  std::vector<T> normalisers(causal_chunk), log_scale(causal_chunk);
  Index absorbed = 0;
  for (Index begin = 0; begin < nq; begin += causal_chunk) {
    const Index count = std::min(causal_chunk, nq - begin);
    for (const Index seen_by_all = mask.visible(begin, nk); absorbed < seen_by_all;) {
      const Index b = std::min(causal_chunk, seen_by_all - absorbed);
      keys.map(context, head.K, Side::key, absorbed, b);
      state.absorb(context, keys, attnbench::rows(head.V, absorbed, b));
      absorbed += b;
    }
    const auto block = corner(numerators, count, dv);
    if (state.empty()) {
      numerators.setZero();
      std::fill(normalisers.begin(), normalisers.end(), T(0));
      std::fill(log_scale.begin(), log_scale.end(), lowest<T>);
    } else {
      queries.map(context, head.Q, Side::query, begin, count);
      state.read(context, queries, block, first(normalisers, count), first(log_scale, count));
    }
    add_visible_in_chunk(head, mask, begin, absorbed, context, block, first(normalisers, count),
                         first(log_scale, count));
    sink(begin, block, first(normalisers, count), first(log_scale, count));
  }
}

// Adds, for each row of a causal chunk, the keys from `absorbed` on that this row sees.
template <class T>
void LinearAttention<T>::add_visible_in_chunk(const Head<T>& head, Mask mask, Index first_row, Index absorbed,
                                              Context& context, Out<T> numerators, std::span<T> normalisers,
                                              std::span<T> log_scale) const {
  const Index count = numerators.rows();
  const Index keys = mask.visible(first_row + count - 1, head.K.rows()) - absorbed;
  if (keys <= 0) return;
  Matrix<T> block(count, keys);
  std::vector<T> log_rows(static_cast<size_t>(count)), log_columns(static_cast<size_t>(keys));
  weights(head, first_row, absorbed, context, block, log_rows, log_columns);
  for (Index i = 0; i < count; ++i) {
    const Index seen = std::max<Index>(0, mask.visible(first_row + i, head.K.rows()) - absorbed);
    block.row(i).tail(keys - seen).setZero();
    if (seen == 0) continue;
    const auto row = static_cast<size_t>(i);
    const std::span<T> visible(block.data() + i * keys, static_cast<size_t>(seen));
    const T scale =
        stabilise_row(head, first_row + i, absorbed, context, visible, log_rows[row], first(log_columns, seen));
    const T common = std::max(scale, log_scale[row]);
    const T old_factor = std::exp(log_scale[row] - common), new_factor = std::exp(scale - common);
    numerators.row(i) *= old_factor;
    block.row(i) *= new_factor;
    normalisers[row] = normalisers[row] * old_factor + block.row(i).sum();
    log_scale[row] = common;
  }
  multiply_add<T>(context, block, attnbench::rows(head.V, absorbed, keys), numerators);
}

template <class T>
void LinearAttention<T>::weights(const Head<T>& head, Index i, Index j, Context& context, Out<T> block,
                                 std::span<T> log_rows, std::span<T> log_columns) const {
  if (const auto same = given(head.K, context)) return same->weights(head, i, j, context, block, log_rows, log_columns);
  Features queries(*this, block.rows()), keys(*this, block.cols());
  queries.map(context, head.Q, Side::query, i, block.rows());
  keys.map(context, head.K, Side::key, j, block.cols());
  queries.to_row_scaled(context);
  keys.to_row_scaled(context);
  multiply_transposed<T>(context, queries.block(), keys.block(), block);
  std::copy_n(queries.log_scale().begin(), block.rows(), log_rows.begin());
  std::copy_n(keys.log_scale().begin(), block.cols(), log_columns.begin());
}

template <class T>
T LinearAttention<T>::stabilise_row(const Head<T>& head, Index i, Index j, Context& context, std::span<T> row,
                                    T log_row, std::span<const T> log_columns) const {
  const auto count = static_cast<Index>(row.size());
  Eigen::Map<Eigen::Array<T, 1, Eigen::Dynamic>> weight(row.data(), count);
  const Eigen::Map<const Eigen::Array<T, 1, Eigen::Dynamic>> columns(log_columns.data(), count);
  const bool exponents = map_->form() == Form::exponents;
  const T scale = log_row + columns.maxCoeff();
  const Eigen::Array<T, 1, Eigen::Dynamic> scaled = weight * (columns - columns.maxCoeff()).exp();
  context.work.exps += static_cast<double>(count);
  // A sum this small may have lost products to underflow; a larger one is exact to rounding.
  const T suspicious = std::sqrt(std::numeric_limits<T>::min());
  if (!exponents || scaled.sum() > suspicious) {
    weight = scaled;
    return scale;
  }
  Features query(*this, 1), keys(*this, count);
  query.map(context, head.Q, Side::query, i, 1);
  keys.map(context, head.K, Side::key, j, count);
  for (Index c = 0; c < count; ++c) {
    auto sums = keys.block().row(c).array();
    sums += query.block().row(0).array();
    const T largest = sums.maxCoeff();
    weight[c] = largest + std::log((sums - largest).exp().sum());
  }
  const T largest = weight.maxCoeff();
  weight = (weight - largest).exp();
  return largest;
}

template <class T>
void LinearAttention<T>::kernel(const Head<T>& head, Context& context, Out<T> block, std::span<T> log_rows,
                                std::span<T> log_columns) const {
  weights(head, 0, 0, context, block, log_rows, log_columns);
}

template <class T>
void LinearAttention<T>::diagonal(const Head<T>& head, Context& context, std::span<T> values,
                                  std::span<T> log_scale) const {
  if (const auto same = given(head.K, context)) return same->diagonal(head, context, values, log_scale);
  Features queries(*this, std::min(query_block, head.Q.rows())), keys(*this, std::min(query_block, head.Q.rows()));
  for (Index first_row = 0; first_row < head.Q.rows(); first_row += query_block) {
    const Index count = std::min(query_block, head.Q.rows() - first_row);
    queries.map(context, head.Q, Side::query, first_row, count);
    keys.map(context, head.K, Side::key, first_row, count);
    for (Index i = 0; i < count; ++i) {
      const auto place = static_cast<size_t>(first_row + i);
      auto q = queries.block().row(i).array();
      const auto k = keys.block().row(i).array();
      if (map_->form() == Form::exponents) {
        q += k;
        log_scale[place] = q.maxCoeff();
        values[place] = (q - log_scale[place]).exp().sum();
        context.work.exps += static_cast<double>(q.size());
      } else {
        log_scale[place] = queries.log_scale()[static_cast<size_t>(i)] + keys.log_scale()[static_cast<size_t>(i)];
        values[place] = (q * k).sum();
      }
    }
  }
}

template <class T>
void LinearAttention<T>::attention_rows(const Head<T>& head, Mask mask, Index first_row, Context& context,
                                        Out<T> A) const {
  std::vector<T> log_rows(static_cast<size_t>(A.rows())), log_columns(static_cast<size_t>(A.cols()));
  weights(head, first_row, 0, context, A, log_rows, log_columns);
  for (Index i = 0; i < A.rows(); ++i) {
    const Index seen = mask.visible(first_row + i, A.cols());
    A.row(i).tail(A.cols() - seen).setZero();
    if (seen == 0) continue;
    const std::span<T> visible(A.data() + i * A.outerStride(), static_cast<size_t>(seen));
    stabilise_row(head, first_row + i, 0, context, visible, log_rows[static_cast<size_t>(i)], first(log_columns, seen));
    const T sum = A.row(i).sum();
    if (sum == 0)
      A.row(i).setZero();
    else
      A.row(i) /= sum;
  }
}

template <class T>
void LinearAttention<T>::factors(const Head<T>& head, Mask mask, Context& context, Matrix<T>& L, Matrix<T>& R) const {
  if (mask.causal) throw Skip("a causal attention matrix has no factors of rank F: the mask is applied entry by entry");
  const Index nq = head.Q.rows(), nk = head.K.rows(), F = map_->features();
  const Index visible = mask.visible(0, nk);
  if (const auto same = given(attnbench::rows(head.K, 0, visible), context))
    return same->factors(head, mask, context, L, R);
  R = Matrix<T>::Zero(nk, F);
  L = Matrix<T>::Zero(nq, F);
  if (visible == 0) return;
  State state(map_->form(), F, 0);  // V has no columns: only z and the scales are wanted
  Features keys(*this, visible), queries(*this, nq);
  keys.map(context, head.K, Side::key, 0, visible);
  state.absorb(context, keys, In<T>(nullptr, visible, 0, 0));
  attnbench::rows(R, 0, visible) = keys.block();  // absorb left the scaled features in place
  queries.map(context, head.Q, Side::query, 0, nq);
  std::vector<T> normalisers(static_cast<size_t>(nq)), log_scale(static_cast<size_t>(nq));
  Matrix<T> none(nq, 0);
  state.read(context, queries, none, normalisers, log_scale);
  L = queries.block();
  divide_rows<T>(L, normalisers);
}

template class LinearAttention<float>;
template class LinearAttention<double>;

}  // namespace attnbench
