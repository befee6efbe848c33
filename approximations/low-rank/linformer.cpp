// Linformer: keys and values projected along the sequence. Wang et al., arXiv:2006.04768, eq. 7.
//   out = softmax(q (E k)^T) (F V),  E, F r x n;  the implied matrix softmax(q (E k)^T) F has rank <= r  (methods.md E)
// projection=gaussian:    E_ij, F_ij ~ N(0, 1/r), independent: E x.E y is unbiased for x.y (Johnson-Lindenstrauss), the
//                         softmax of it is not; rows of A do not sum to one.
// projection=mean-pool:   row a of E = F averages the keys [a n / r, (a+1) n / r): rows sum to one; exact if K and V
//                         are constant on the segments.
// projection=convolution: compressed attention (Liu et al. 2018, arXiv:1801.10198), a convolution whose kernel length
//                         equals its stride s = ceil(n / r), shared by all channels. Row a of E holds w at
//                         [a s, (a+1) s); the last segment is shorter if s does not divide n; ceil(n / s) <= r rows.
//                         w_t ~ N(0, 1/s), drawn separately for keys and values; s = 1 and w = 1 is softmax.
// share: E = F. The paper projects from a fixed n; here the columns of padded keys are omitted.
#include <cassert>
#include <cmath>

#include "approximations/low-rank/segments.hpp"
#include "approximations/softmax/tiled_softmax.hpp"
#include "harness/linalg/rows.hpp"

namespace attnbench::linformer_method {
namespace {

constexpr Index projected_block = 64;  // rows of E in one thread's block

bool pooled(const Params& params) { return params.text("projection") != "gaussian"; }

Segments segments_of(const Params& params, Index keys) {
  const Index r = params.integer("r");
  if (params.text("projection") == "convolution")
    return Segments::strided(keys, std::max<Index>(1, (keys + r - 1) / r));
  if (r > keys)
    throw Skip("linformer: projection=mean-pool with r=" + std::to_string(r) + " segments of " + std::to_string(keys) +
               " keys; r must not exceed the number of keys");
  return Segments::even(keys, r);
}

// rows x columns entries from N(0, 1/rows), or the injected matrix. Drawn column by column, so that a longer sequence
// has the columns of a shorter one and further ones.
Matrix<double> projection(const Draw& draw, const char* name, Index rows, Index columns) {
  if (const auto* given = draw.injected(name, rows, columns)) return *given;
  auto generator = draw.streams.stream("projection", "linformer", name, rows, draw.head, draw.replicate);
  return standard_normal(generator, columns, rows).transpose() / std::sqrt(static_cast<double>(rows));
}

template <class T>
class Linformer final : public Approximation<T>, public Factored<T> {
 public:
  explicit Linformer(const Draw& draw)
      : keys_(draw.shape.mask.visible(0, draw.shape.nk)), share_(draw.params.flag("share")) {
    const Index r = draw.params.integer("r");
    if (!pooled(draw.params)) {
      names_ = {"E", "F"};
      E_ = projection(draw, "E", r, draw.shape.nk).template cast<T>();
      if (!share_) F_ = projection(draw, "F", r, draw.shape.nk).template cast<T>();
      return;
    }
    segments_ = segments_of(draw.params, keys_);
    if (draw.params.text("projection") == "mean-pool") return;
    names_ = {"w", "w_values"};
    E_ = projection(draw, "w", segments_->stride, 1).template cast<T>();
    if (!share_) F_ = projection(draw, "w_values", segments_->stride, 1).template cast<T>();
  }

  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    const Index keys = mask.visible(0, head.K.rows());
    if (keys == 0) return void(out.setZero());
    Matrix<T> projected_keys(length(), head.K.cols()), projected_values(length(), head.V.cols());
    project(context, E_, row_block(head.K, 0, keys), projected_keys);
    project(context, share_ ? E_ : F_, row_block(head.V, 0, keys), projected_values);
    tiled_softmax<T>({head.Q, projected_keys, projected_values}, {}, {}, context, out);
  }

  Tensors state() const override {
    Tensors all;
    if (E_.size() > 0) all[names_[0]] = E_.template cast<double>();
    if (F_.size() > 0) all[names_[1]] = F_.template cast<double>();
    return all;
  }

  const Factored<T>* factored() const override { return this; }

  // L = softmax(q (E k)^T), R = F^T.
  void factors(const Head<T>& head, Mask mask, Context& context, Matrix<T>& L, Matrix<T>& R) const override {
    const Index keys = mask.visible(0, head.K.rows());
    L = Matrix<T>::Zero(head.Q.rows(), length());
    R = Matrix<T>::Zero(head.K.rows(), length());
    if (keys == 0) return;
    Matrix<T> projected_keys(length(), head.K.cols());
    project(context, E_, row_block(head.K, 0, keys), projected_keys);
    multiply_transposed<T>(context, head.Q, projected_keys, L);
    for (Index i = 0; i < L.rows(); ++i) softmax_within<T>(context, L, i, 0, L.cols());
    const Matrix<T>& F = share_ ? E_ : F_;
    if (!segments_) {
      R.topRows(keys) = F.leftCols(keys).transpose();
      return;
    }
    for (Index a = 0; a < length(); ++a) {
      const Index begin = segments_->begin(a), rows = segments_->end(a) - begin;
      for (Index t = 0; t < std::min(rows, keys - begin); ++t)
        R(begin + t, a) = F.size() > 0 ? F(t, 0) : 1 / static_cast<T>(rows);
    }
  }

 private:
  Index length() const { return segments_ ? segments_->count : E_.rows(); }

  // by: r x nk, or the weights of a segment's rows (s x 1), or nothing for means.
  void project(Context& context, const Matrix<T>& by, const In<T>& X, Out<T> projected) const {
    assert(X.rows() <= (segments_ ? keys_ : by.cols()));  // the number of keys that it was drawn for
    if (segments_) return pool<T>(context, X, *segments_, {by.data(), static_cast<size_t>(by.size())}, projected);
    context.for_blocks(by.rows(), projected_block, [&](Context& single, Index first, Index count) {
      const In<T> block(by.data() + first * by.cols(), count, X.rows(), by.cols());
      multiply<T>(single, block, X, row_block(projected, first, count));
    });
  }

  Index keys_;
  bool share_;
  std::optional<Segments> segments_;
  std::vector<std::string> names_;
  Matrix<T> E_, F_;  // r x nk (gaussian), s x 1 (convolution) or empty (mean-pool); F is empty if shared with E
};

const bool registered = add(method<Linformer>({
    .text = {.name = "linformer",
             .summary = "keys and values projected along the sequence to length r",
             .formula = "A = softmax(q (E k)^T) F, E and F r x n",
             .reference = "Wang et al. 2020, arXiv:2006.04768, eq. 7",
             .cost = "O(n r (d + dv)) time, O(n r) memory for E and F (gaussian)",
             .family = "low-rank"},
    .parameters = {Parameter::integer("r", 256, "length after projection", 1, 1 << 20).as_budget(),
                   Parameter::choice("projection", "gaussian",
                                     "how E and F are made: at random, as means of segments, or as a strided "
                                     "convolution (then r is the most, and the stride is n/r rounded up)",
                                     {"gaussian", "mean-pool", "convolution"}),
                   Parameter::flag("share", false, "E = F, one projection for keys and values")},
    .claims =
        [](const Params& params, const Shape& shape) {
          const bool means = params.text("projection") == "mean-pool";
          return Claims{.row_stochastic = means,
                        .non_negative = means,
                        .no_form = shape.mask.causal ? "every projected key mixes all tokens, later ones included" : "",
                        .rank_at_most = params.integer("r")};
        },
    .memory =
        [](const Params& params, const Shape& shape) {
          return static_cast<double>(params.integer("r") * (shape.d + shape.dv)) * bytes_of(shape.precision);
        },
    .cost =
        [](const Params& params, const Shape& shape) {
          const double nq = static_cast<double>(shape.nq), nk = static_cast<double>(shape.nk);
          const double channels = static_cast<double>(shape.d + shape.dv);
          double r = static_cast<double>(params.integer("r")), multiplications = r * nk;
          if (params.text("projection") == "convolution") r = static_cast<double>(segments_of(params, shape.nk).count);
          if (pooled(params)) multiplications = nk;
          return Work{.flops = 2 * (r * nq + multiplications) * channels, .exps = r * nq};
        },
}));

}  // namespace
}  // namespace attnbench::linformer_method
