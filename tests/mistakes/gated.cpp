// Linear attention with a constant gate (Sun et al. 2023, arXiv:2307.08621, without its group norm; normalised by row
// sums), written as a plugin's author would. `mistake` plants one mistake by its number; mistakes_test.py names the
// claim that must find it.
//   out_i = sum_{j<=i} g^(i-j) phi(q_i).phi(k_j) v_j / sum_{j<=i} g^(i-j) phi(q_i).phi(k_j),  phi(x) = exp(W x)
#include <cmath>

#include "harness/core/approximation.hpp"

namespace attnbench {
namespace {

enum Mistake {
  none = 0,
  float_zeros,
  float_five_percent,
  float_other_exponent,
  late_decoder,
  short_prompt,
  doubled_state,
  reads_padding,
  hundredfold_cost,
  millionfold_memory,
  negative_cost,
  shares_replicates,
  shares_heads,
  squared_gates,
  rows_without_gates,
  uncounted_exponentials,
  future_normaliser,
  row_sums,
  depends_on_threads,
  keeps_state,
  writes_inputs,
  nan_in_empty_rows,
  ignores_strides,
  float_draws_anew,
  decoders_share,
  prompt_resets,
  undeclared_matrix,
  negative_entries,
  claims_permutation,
  claims_rank,
  not_linear,
  wrong_offset,
  state_without_effect,
  first_row_of_chunk,
  transcription_of_another
};

Matrix<double> draw_weights(const Draw& draw, long mistake, bool single) {
  const Index d = draw.shape.d;
  if (const Matrix<double>* given = draw.injected("W", d, d); given && mistake != state_without_effect) return *given;
  const Index replicate = mistake == shares_replicates ? 0 : draw.replicate,
              head = mistake == shares_heads ? 0 : draw.head;
  const Index other = mistake == float_draws_anew && single ? 1 : 0;
  Generator generator = draw.streams.stream("gated", d, head, replicate, other);
  return standard_normal(generator, d, d) / (2 * std::sqrt(static_cast<double>(d)));
}

template <class T>
class Gated;

template <class T>
class GatedDecoder final : public Decoder<T> {
 public:
  GatedDecoder(const Gated<T>& owner, Index features, Index dv)
      : owner_(owner), own_S_(Matrix<T>::Zero(features, dv)), own_z_(Matrix<T>::Zero(features, 1)) {
    if (owner.mistake == decoders_share) owner.shared_S = own_S_, owner.shared_z = own_z_;
  }
  void prefill(const Head<T>& tokens, Context&) override {
    if (owner_.mistake == prompt_resets) S().setZero(), z().setZero();
    const Index n = tokens.K.rows() - (owner_.mistake == short_prompt ? 1 : 0);
    for (Index j = 0; j < n; ++j) absorb(tokens.K.row(j), tokens.V.row(j));
  }
  void step(const Head<T>& token, Context&, Out<T> out) override {
    if (owner_.mistake != late_decoder) absorb(token.K.row(0), token.V.row(0));
    const Matrix<T> q = owner_.phi(token.Q);
    const T sum = (q * z())(0, 0);
    out.setZero();
    if (sum != T(0)) out = q * S() / sum;
    if (owner_.mistake == late_decoder) absorb(token.K.row(0), token.V.row(0));
  }
  size_t bytes() const override { return sizeof(T) * static_cast<size_t>(own_S_.size() + own_z_.size()); }

 private:
  Matrix<T>& S() { return owner_.mistake == decoders_share ? owner_.shared_S : own_S_; }
  Matrix<T>& z() { return owner_.mistake == decoders_share ? owner_.shared_z : own_z_; }
  template <class Row>
  void absorb(const Row& k, const Row& v) {
    const Matrix<T> features = owner_.phi(Matrix<T>(k)).transpose();
    S() = owner_.gate * S() + features * v;
    z() = owner_.gate * z() + features;
  }

  const Gated<T>& owner_;
  Matrix<T> own_S_, own_z_;
};

template <class T>
class Gated final : public Approximation<T>, public Rows<T> {
 public:
  explicit Gated(const Draw& draw)
      : mistake(draw.params.integer("mistake")),
        gate(static_cast<T>(draw.params.real("gate"))),
        W_(draw_weights(draw, mistake, sizeof(T) == 4)) {
    if (mistake == squared_gates) gate *= gate;
    single_ = W_.cast<T>();
  }

  Matrix<T> phi(const Matrix<T>& X) const {
    T scale = 1;
    if (mistake == float_other_exponent && sizeof(T) == 4) scale = T(1.5);
    return (scale * X * single_.transpose()).array().exp();
  }

  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    const Index nk = mistake == reads_padding || mask.keys < 0 ? head.K.rows() : std::min(mask.keys, head.K.rows());
    Matrix<T> K = head.K, V = head.V;
    if (mistake == ignores_strides) V = In<T>(head.V.data(), head.V.rows(), head.V.cols(), head.V.cols());
    if (mistake == keeps_state) {
      if (kept_.size() == 0) kept_ = K.row(0);
      K.row(0) = kept_;
    }
    const Matrix<T> q = phi(head.Q), k = phi(K);
    if (mistake == undeclared_matrix) {
      Matrix<T> large = Matrix<T>::Constant(head.Q.rows(), head.K.rows(), T(1));
      if (large(0, 0) == T(2)) return;
    }
    const Index F = k.cols(), dv = V.cols();
    Matrix<T> S = Matrix<T>::Zero(F, dv), z = Matrix<T>::Zero(F, 1), all = Matrix<T>::Zero(F, 1);
    for (Index j = 0; j < nk; ++j) all += k.row(j).transpose();
    Index absorbed = 0;
    for (Index i = 0; i < head.Q.rows(); ++i) {
      Index visible = std::clamp<Index>(i + (mistake == wrong_offset ? 0 : mask.offset) + 1, 0, nk);
      if (mistake == first_row_of_chunk && i % 64 == 0 && i > 0) visible = std::min(visible + 1, nk);
      for (; absorbed < visible; ++absorbed) {
        S = gate * S + k.row(absorbed).transpose() * V.row(absorbed);
        z = gate * z + k.row(absorbed).transpose();
      }
      const T sum = (q.row(i) * (mistake == future_normaliser ? all : z))(0, 0);
      if (visible == 0 && mistake != nan_in_empty_rows)
        out.row(i).setZero();
      else
        out.row(i) = q.row(i) * S / sum;
    }
    if (mistake == float_zeros && sizeof(T) == 4) out.setZero();
    if (mistake == float_five_percent && sizeof(T) == 4) out *= T(1.05);
    if (mistake == row_sums) out *= T(1) + T(1e-6);
    if (mistake == not_linear) out = out.cwiseMin(T(1));
    if (mistake == depends_on_threads && context.threads() > 1) out *= T(1) + T(1e-7);
    if (mistake == writes_inputs) const_cast<T*>(head.V.data())[0] += 1;
    if (mistake == negative_entries && out.rows() > 40) out.row(40) -= T(0.5) * head.V.row(0) - T(0.5) * head.V.row(1);
    const auto tokens = static_cast<double>(head.Q.rows() + head.K.rows());
    const auto f = static_cast<double>(F), width = static_cast<double>(dv);
    context.work.flops += tokens * f * (2 * static_cast<double>(head.Q.cols()) + 2 * width + 2);
    if (mistake != uncounted_exponentials) context.work.exps += tokens * f;
  }

  Tensors state() const override { return {{"W", mistake == doubled_state ? Matrix<double>(2 * W_) : W_}}; }
  const Rows<T>* rows() const override { return this; }
  void attention_rows(const Head<T>& head, Mask mask, Index first, Context&, Out<T> A) const override {
    const Matrix<T> q = phi(head.Q.middleRows(first, A.rows())), k = phi(head.K);
    for (Index i = 0; i < A.rows(); ++i) {
      const Index visible = mask.visible(first + i, head.K.rows());
      A.row(i).setZero();
      for (Index j = 0; j < visible; ++j)
        A(i, j) = q.row(i).dot(k.row(j)) *
                  (mistake == rows_without_gates ? T(1) : std::pow(gate, static_cast<T>(visible - 1 - j)));
      if (visible > 0) A.row(i) /= A.row(i).sum();
    }
  }
  std::unique_ptr<Decoder<T>> decoder(const Shape& shape) const override {
    return std::make_unique<GatedDecoder<T>>(*this, shape.d, shape.dv);
  }

  Index mistake;
  T gate;
  mutable Matrix<T> shared_S, shared_z;  // of decoders_share

 private:
  Matrix<double> W_;
  Matrix<T> single_;
  mutable Matrix<T> kept_;
};

// The definition, as sums over single numbers.
Matrix<double> transcription(const Draw& draw, const Approximation<double>& drawn, const Head<double>& head,
                             Mask mask) {
  const Matrix<double> W = drawn.state().at("W");
  const double gate = draw.params.real("gate");
  const bool other = draw.params.integer("mistake") == transcription_of_another;
  Matrix<double> out = Matrix<double>::Zero(head.Q.rows(), head.V.cols());
  for (Index i = 0; i < head.Q.rows(); ++i) {
    const Index visible = mask.visible(i, head.K.rows());
    double sum = 0;
    for (Index j = 0; j < visible; ++j) {
      double weight = 0;
      for (Index f = 0; f < W.rows(); ++f)
        weight += std::exp(W.row(f).dot(head.Q.row(i))) * std::exp(W.row(f).dot(head.K.row(j)));
      weight *= std::pow(gate, static_cast<double>(other ? j : visible - 1 - j));
      sum += weight;
      out.row(i) += weight * head.V.row(j);
    }
    if (visible > 0) out.row(i) /= sum;
  }
  return out;
}

const bool registered = add(method<Gated>({
    .text = {.name = "gated",
             .summary = "linear attention with a constant gate",
             .formula = "out_i = sum_j g^(i-j) phi(q_i).phi(k_j) v_j over its sum, phi(x) = exp(W x)",
             .reference = "Sun et al. 2023, arXiv:2307.08621",
             .cost = "O(n d dv) time",
             .family = "recurrent"},
    .parameters = {Parameter::real("gate", 0.97, "what a step leaves of the state", 0, 1),
                   Parameter::integer("mistake", 0, "one of this file's mistakes", 0, 100).as_published()},
    .claims =
        [](const Params& params, const Shape& shape) {
          Claims claims{.row_stochastic = true, .non_negative = true, .causal_exact = true};
          claims.no_extremes = "its features are plain exponentials";
          if (!shape.mask.causal) claims.no_form = "it is a recurrence over earlier tokens";
          if (params.integer("mistake") == claims_permutation) claims.permutation_equivariant = true;
          if (params.integer("mistake") == claims_rank) claims.rank_at_most = shape.d;
          return claims;
        },
    .memory =
        [](const Params& params, const Shape& shape) {
          const auto tokens = static_cast<double>(shape.nq + shape.nk);
          const double bytes = bytes_of(shape.precision);
          const double said =
              bytes * (tokens * static_cast<double>(shape.d) + static_cast<double>(shape.nk * (shape.d + shape.dv)));
          return params.integer("mistake") == millionfold_memory ? 1e6 * said : said;
        },
    .cost =
        [](const Params& params, const Shape& shape) {
          const auto tokens = static_cast<double>(shape.nq + shape.nk), d = static_cast<double>(shape.d);
          Work work{.flops = tokens * d * (2 * d + 2 * static_cast<double>(shape.dv) + 2), .exps = tokens * d};
          if (params.integer("mistake") == hundredfold_cost) work.flops *= 100;
          if (params.integer("mistake") == negative_cost) work.flops = -1;
          return work;
        },
    .transcription = transcription,
}));

}  // namespace
}  // namespace attnbench
