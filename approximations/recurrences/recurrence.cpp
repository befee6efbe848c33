#include "approximations/recurrences/recurrence.hpp"

#include "approximations/recurrences/reading_rows.hpp"

namespace attnbench {

namespace {

// A chunk of tokens with the gates between them multiplied out; tokens and queries as rows.
template <class T>
struct Decayed {
  Matrix<T> queries, keys;  // Gamma_t0 q_t and, for the delta rule, Gamma_t0 k_t
  Matrix<T> reads;          // q_t Gamma_ts k_s for s <= t, else 0: queries x tokens
  Matrix<T> overlaps;       // k_t Gamma_ts k_s for s < t, else 0 (delta rule): tokens x tokens
  Matrix<T> last;           // Gamma_Cs k_s, C the last token
  Matrix<T> all;            // Gamma_C0, 1 x 1 or 1 x d
};

// One gate a token: Gamma_ts is a number.
template <class T>
Decayed<T> by_token(const In<T>& K, const In<T>& keep, const In<T>& Q, Index first, bool erases, Context& context) {
  const Index tokens = K.rows();
  Matrix<T> gamma = Matrix<T>::Zero(tokens, tokens), start(tokens, 1);
  for (Index t = 0; t < tokens; ++t) {
    start(t, 0) = keep(t, 0) * (t == 0 ? T(1) : start(t - 1, 0));
    if (t > 0) gamma.row(t).head(t) = keep(t, 0) * gamma.row(t - 1).head(t);
    gamma(t, t) = 1;
  }
  const auto of_queries = start.col(0).segment(first, Q.rows()).array();
  Decayed<T> at{.queries = (Q.array().colwise() * of_queries).matrix(), .reads = Matrix<T>(Q.rows(), tokens)};
  multiply_transposed<T>(context, Q, K, at.reads);
  at.reads.array() *= gamma.middleRows(first, Q.rows()).array();
  if (erases) {
    at.keys = (K.array().colwise() * start.col(0).array()).matrix();
    at.overlaps.resize(tokens, tokens);
    multiply_transposed<T>(context, K, K, at.overlaps);
    at.overlaps.array() *= gamma.array();
  }
  at.last = (K.array().colwise() * gamma.row(tokens - 1).transpose().array()).matrix();
  at.all = start.bottomRows(1);
  return at;
}

// A gate a channel, without the delta rule: `last` holds Gamma_ts k_s while t moves on.
template <class T>
Decayed<T> by_channel(const In<T>& K, const In<T>& keep, const In<T>& Q, Index first, Context& context) {
  const Index tokens = K.rows(), d = K.cols(), end = first + Q.rows();
  Decayed<T> at{.queries = Q,
                .reads = Matrix<T>::Zero(Q.rows(), tokens),
                .last = Matrix<T>(tokens, d),
                .all = Matrix<T>::Ones(1, d)};
  for (Index t = 0; t < tokens; ++t) {
    const auto gates = keep.row(t).array();
    at.all.row(0).array() *= gates;
    at.last.topRows(t).array().rowwise() *= gates;
    context.work.flops += static_cast<double>(t * d);
    at.last.row(t) = K.row(t);
    if (t < first || t >= end) continue;
    const Index row = t - first;
    at.queries.row(row).array() *= at.all.row(0).array();
    const Out<T> of_row(at.reads.data() + row * tokens, 1, t + 1, tokens);
    multiply_transposed<T>(context, row_block(Q, row, 1), row_block(at.last, 0, t + 1), of_row);
  }
  return at;
}

}  // namespace

template <class T>
void RecurrentState<T>::take_in(const In<T>& K, const In<T>& V, const In<T>& keep, const In<T>& write, const In<T>& Q,
                                Index first, Context& context, Out<T> out) {
  const Index tokens = K.rows();
  if (tokens == 0) return;
  Decayed<T> at =
      keep.cols() == 1 ? by_token<T>(K, keep, Q, first, erases_, context) : by_channel<T>(K, keep, Q, first, context);
  const auto strength = write.col(0).array();
  Matrix<T> U(tokens, V.cols());
  if (erases_) {
    multiply<T>(context, at.keys, S_, U);
    U = ((V - U).array().colwise() * strength).matrix();
    at.overlaps.array().colwise() *= strength;
    at.overlaps.template triangularView<Eigen::UnitLower>().solveInPlace(U);
    context.work.flops += static_cast<double>(tokens * tokens * V.cols());
  } else {
    U = (V.array().colwise() * strength).matrix();
  }
  if (Q.rows() > 0) {
    multiply<T>(context, at.queries, S_, out);
    multiply_add<T>(context, at.reads, U, out);
  }
  if (at.all.cols() == 1)
    S_ *= at.all(0, 0);
  else
    S_.array().colwise() *= at.all.row(0).transpose().array();
  transposed_multiply_add<T>(context, at.last, U, S_);
}

template <class T>
Matrix<T> Recurrence<T>::prepared(const In<T>& X) const {
  Matrix<T> Y = X;
  if (!form_.unit_length) return Y;
  for (Index i = 0; i < Y.rows(); ++i)
    if (const T length = Y.row(i).stableNorm(); length > 0) Y.row(i) /= length;
  return Y;
}

template <class T>
void Recurrence<T>::attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const {
  const ReadingRows rows(head.Q.rows(), head.K.rows(), mask);
  const Matrix<T> Q = prepared(head.Q), K = prepared(head.K);
  const Gates<T> given = gates(head, context);
  RecurrentState<T> state(head.K.cols(), head.V.cols(), form_.erases);
  out.topRows(rows.begin).setZero();
  for (Index t = 0; t < rows.tokens; t += chunk_) {
    const Index count = std::min(chunk_, rows.tokens - t), row = rows.of(t), queries = rows.of(t + count) - row;
    const Index first = queries > 0 ? row + mask.offset - t : 0;
    state.take_in(row_block(K, t, count), row_block(head.V, t, count), row_block(given.keep, t, count),
                  row_block(given.write, t, count), row_block(Q, row, queries), first, context,
                  row_block(out, row, queries));
  }
  const Index after = head.Q.rows() - rows.end;
  if (after > 0) state.read(row_block(Q, rows.end, after), context, row_block(out, rows.end, after));
}

// One token after another with the state alone.
template <class T>
class Recurrence<T>::Decoding final : public Decoder<T> {
 public:
  Decoding(const Recurrence& recurrence, const Shape& shape)
      : recurrence_(recurrence), state_(shape.d, shape.dv, recurrence.form_.erases) {}

  void prefill(const Head<T>& tokens, Context& context) override {
    Matrix<T> none(0, tokens.V.cols());
    for (Index t = 0; t < tokens.K.rows(); t += recurrence_.chunk_) {
      const HeadPart<T> chunk = HeadPart<T>::tokens(tokens, t, std::min(recurrence_.chunk_, tokens.K.rows() - t));
      take_in(chunk.view(), row_block(tokens.Q, 0, 0), context, none);
    }
  }
  void step(const Head<T>& token, Context& context, Out<T> out) override {
    take_in(token, recurrence_.prepared(token.Q), context, out);
  }
  size_t bytes() const override { return sizeof(T) * static_cast<size_t>(state_.S().size()); }

 private:
  void take_in(const Head<T>& tokens, const In<T>& Q, Context& context, Out<T> out) {
    const Gates<T> gates = recurrence_.gates(tokens, context);
    state_.take_in(recurrence_.prepared(tokens.K), tokens.V, gates.keep, gates.write, Q, 0, context, out);
  }

  const Recurrence& recurrence_;
  RecurrentState<T> state_;
};

template <class T>
std::unique_ptr<Decoder<T>> Recurrence<T>::decoder(const Shape& shape) const {
  return std::make_unique<Decoding>(*this, shape);
}

Parameter chunk_parameter() {
  return Parameter::integer("chunk", 64, "tokens that are taken in at once; 1: one after another", 1, 4096)
      .as_numerics();
}

Claims recurrence_claims(const Shape& shape) {
  return {
      .no_form = shape.mask.causal ? "" : "a recurrence reads tokens in their order, so that it has a causal form only",
      .causal_exact = true,
      .normaliser = Normaliser::none};
}

Work recurrence_cost(const Params& params, const Shape& shape, bool channels, bool erases) {
  const double n = static_cast<double>(shape.nk), rows = static_cast<double>(std::min(shape.nq, shape.nk));
  const double d = static_cast<double>(shape.d), dv = static_cast<double>(shape.dv);
  const double chunk = static_cast<double>(std::min(params.integer("chunk"), shape.nk));
  Work work{.flops = 2 * (n + rows) * d * dv + 2 * rows * chunk * dv};
  work.flops += channels ? chunk * d * (rows + n / 2) : 2 * rows * chunk * d;
  if (erases) work.flops += 2 * n * d * dv + n * chunk * dv + 2 * n * chunk * d;
  return work;
}

double recurrence_memory(const Params& params, const Shape& shape, bool channels, bool erases) {
  const double nq = static_cast<double>(shape.nq), nk = static_cast<double>(shape.nk);
  const double d = static_cast<double>(shape.d), dv = static_cast<double>(shape.dv);
  const double chunk = static_cast<double>(std::min(params.integer("chunk"), shape.nk));
  const double gates = (channels ? 2 : 1) * nk * d;  // logits and gates
  const double in_chunk = chunk * ((erases ? 3 : 2) * d + dv + (erases ? 3 : 2) * chunk);
  return ((nq + nk) * d + (channels ? gates : 4 * nk) + d * dv + in_chunk) * bytes_of(shape.precision);
}

template class RecurrentState<float>;
template class RecurrentState<double>;
template void Recurrence<float>::attend(const Head<float>&, Mask, Context&, Out<float>) const;
template void Recurrence<double>::attend(const Head<double>&, Mask, Context&, Out<double>) const;
template std::unique_ptr<Decoder<float>> Recurrence<float>::decoder(const Shape&) const;
template std::unique_ptr<Decoder<double>> Recurrence<double>::decoder(const Shape&) const;
template Matrix<float> Recurrence<float>::prepared(const In<float>&) const;
template Matrix<double> Recurrence<double>::prepared(const In<double>&) const;

}  // namespace attnbench
