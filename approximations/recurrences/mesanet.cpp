// MesaNet: each row is the ridge regression of the values on the keys so far, at its query. von Oswald et al.,
// arXiv:2506.05233, eq. 5 and 6.
//   G_t = gamma_t G_t-1 + beta_t k_t k_t^T,  H_t = gamma_t H_t-1 + beta_t k_t v_t^T
//   out_t = H_t^T (G_t + ridge I)^-1 q_t, |k_t| = |q_t| = 1                                          methods.md V
// (G + ridge I)^-1 H is the W that minimises sum_s beta_s prod_(r > s) gamma_r |W^T k_s - v_s|^2 + ridge |W|^2. Gates
// as in gated-deltanet, which takes one step of gradient descent where this solves. Exact by Cholesky, in double for
// both scalar types; the paper takes a few steps of conjugate gradients. O(n (d^3 / 3 + d dv)) time, O(d^2 + d dv)
// memory.
#include "approximations/recurrences/reading_rows.hpp"
#include "approximations/recurrences/recurrence.hpp"
#include "harness/linalg/factorisations.hpp"

namespace attnbench::mesanet_method {
namespace {

class Regression {
 public:
  Regression(Index d, Index dv, double ridge)
      : ridge_(ridge), G_(Matrix<double>::Zero(d, d)), H_(Matrix<double>::Zero(d, dv)) {}

  template <class T>
  void add(const In<T>& k, const In<T>& v, double keep, double write, Context& context) {
    const Matrix<double> key = unit(k), value = write * v.template cast<double>();
    G_ *= keep;
    H_ *= keep;
    transposed_multiply_add<double>(context, key, Matrix<double>(write * key), G_);
    transposed_multiply_add<double>(context, key, value, H_);
  }

  template <class T>
  void read(const In<T>& q, Context& context, Out<T> out) {
    system_ = G_;
    system_.diagonal().array() += ridge_;
    Matrix<double> x = unit(q), row(1, H_.cols());
    solve_positive_definite(system_, {x.data(), static_cast<size_t>(x.size())});
    const double d = static_cast<double>(x.cols());
    context.work.flops += d * d * d / 3 + 2 * d * d;
    multiply<double>(context, x, H_, row);
    out = row.cast<T>();
  }

  size_t bytes() const { return sizeof(double) * static_cast<size_t>(G_.size() + H_.size()); }

 private:
  template <class T>
  static Matrix<double> unit(const In<T>& x) {
    Matrix<double> y = x.template cast<double>();
    if (const double length = y.stableNorm(); length > 0) y /= length;
    return y;
  }

  double ridge_;
  Matrix<double> G_, H_, system_;
};

template <class T>
class MesaNet final : public Approximation<T> {
 public:
  explicit MesaNet(const Draw& draw) : ridge_(draw.params.real("ridge")) {
    if (!are_given(draw.params)) law_.emplace(draw, 2);
  }
  Tensors state() const override { return law_ ? law_->state() : Tensors(); }

  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    const ReadingRows rows(head.Q.rows(), head.K.rows(), mask);
    const Gates<T> given = gates(head, context);
    // Emulated half precision is that of products of the head, not of a regression.
    Context unrounded(context.threads());
    Regression regression(head.K.cols(), head.V.cols(), ridge_);
    out.topRows(rows.begin).setZero();
    const auto read = [&](Index first, Index end) {
      for (Index i = first; i < end; ++i) regression.read(row_block(head.Q, i, 1), unrounded, row_block(out, i, 1));
    };
    for (Index t = 0; t < rows.tokens; ++t) {
      add(head, t, given, regression, unrounded);
      read(rows.of(t), rows.of(t + 1));
    }
    read(rows.end, head.Q.rows());
    context.work += unrounded.work;
  }
  std::unique_ptr<Decoder<T>> decoder(const Shape& shape) const override {
    return std::make_unique<Decoding>(*this, shape);
  }

 private:
  class Decoding final : public Decoder<T> {
   public:
    Decoding(const MesaNet& method, const Shape& shape)
        : method_(method), regression_(shape.d, shape.dv, method.ridge_) {}
    void prefill(const Head<T>& tokens, Context& context) override {
      const Gates<T> given = method_.gates(tokens, context);
      for (Index t = 0; t < tokens.K.rows(); ++t) add(tokens, t, given, regression_, context);
    }
    void step(const Head<T>& token, Context& context, Out<T> out) override {
      prefill(token, context);
      regression_.read(token.Q, context, out);
    }
    size_t bytes() const override { return regression_.bytes(); }

   private:
    const MesaNet& method_;
    Regression regression_;
  };

  Gates<T> gates(const Head<T>& head, Context& context) const {
    if (!law_) return {given_gates(head, "keep", 1), given_gates(head, "write", 1e6)};
    context.work.exps += 2 * static_cast<double>(head.K.rows());
    return forget_and_write(law_->of(head.K, context));
  }
  static void add(const Head<T>& head, Index t, const Gates<T>& gates, Regression& regression, Context& context) {
    regression.add(row_block(head.K, t, 1), row_block(head.V, t, 1), static_cast<double>(gates.keep(t, 0)),
                   static_cast<double>(gates.write(t, 0)), context);
  }

  double ridge_;
  std::optional<GateLogits<T>> law_;
};

const bool registered = add(method<MesaNet>({
    .text = {.name = "mesanet",
             .printed = "MesaNet",
             .summary = "each row is the ridge regression of values on keys so far, at its query",
             .formula = "out_t = H_t^T (G_t + ridge I)^-1 q_t, G_t = sum of k k^T, H_t = sum of k v^T, with gates",
             .reference = "von Oswald et al. 2025, arXiv:2506.05233, eq. 5",
             .cost = "O(n (d^3 + d dv)) time, O(d^2 + d dv) memory",
             .family = "recurrences",
             .departure =
                 "solved exactly, where the paper takes steps of conjugate gradients; gates by drawn weights of "
                 "the key; one ridge for all channels",
             .aliases = {"mesa"}},
    .parameters = {gates_parameter("gamma = exp(-softplus(w_1.k - 3)), beta = sigmoid(w_2.k)"),
                   Parameter::real("ridge", 1, "added to the diagonal of G", 1e-6, 1e6)},
    .claims = [](const Params&, const Shape& shape) { return recurrence_claims(shape); },
    .memory =
        [](const Params&, const Shape& shape) {
          const double d = static_cast<double>(shape.d), dv = static_cast<double>(shape.dv);
          return 8 * d * (2 * d + dv) + 4 * static_cast<double>(shape.nk) * bytes_of(shape.precision);
        },
    .cost =
        [](const Params& params, const Shape& shape) {
          const double n = static_cast<double>(shape.nk), d = static_cast<double>(shape.d);
          const double dv = static_cast<double>(shape.dv), rows = static_cast<double>(shape.nq);
          return Work{.flops = 2 * n * d * (d + dv) + rows * (d * d * d / 3 + 2 * d * (d + dv)),
                      .exps = are_given(params) ? 0 : 2 * n};
        },
    .needs = {keep_need(), write_need()},
}));

}  // namespace
}  // namespace attnbench::mesanet_method
