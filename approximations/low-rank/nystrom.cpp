// Nystroemformer: attention through landmarks. Xiong et al., arXiv:2102.03902, eq. 13 and algorithm 1.
//   out = softmax(q k~^T) Z (softmax(q~ k^T) V) [+ w * V],   Z the inverse of Am = softmax(q~ k~^T), m x m
// k~, q~: means of m even segments of the keys and of the queries, [a n/m, (a+1) n/m). rank <= m, methods.md E.
// inverse=newton-schulz: the paper's iteration (pseudo_inverse.hpp). Six steps reach 1e-6 only for condition numbers
//   below about 10; otherwise they give a regularised inverse, which works better: with N(0, 1) entries at n = 256,
//   d = 64 and m = 32 the error is 0.74 with six steps, 3 to 50 with the true inverse.
// inverse=exact: the pseudo-inverse; singular values below `tolerance` times the largest count as 0. At 1e-4 those of
//   a float have two correct digits. Rows sum to one if no value is dropped; either inverse can give entries < 0.
// Exact if Q and K are constant on the segments, and for m = n; k + c changes nothing.
// There are no more landmarks than queries or keys. Landmarks exclude padded keys, and queries at padded positions
// unless all queries are. Both softmax factors are tiled: memory O(m (d + dv + m)), time O(n m (d + dv) + m^3).
// convolution=33 adds a depthwise convolution over the values, w_t ~ N(0, 1/33) or the state "convolution"; row i is at
// position i + offset.
#include <cmath>

#include "approximations/low-rank/pseudo_inverse.hpp"
#include "approximations/low-rank/segments.hpp"
#include "approximations/softmax/tiled_softmax.hpp"
#include "harness/linalg/per_row.hpp"
#include "harness/linalg/rows.hpp"

namespace attnbench::nystrom_method {
namespace {

constexpr Index query_block = 256;
constexpr Index least_part = 1024, most_parts = 8;  // parts of the keys: least size, largest number

// The number of queries that the landmarks average.
Index queries_in_landmarks(Index nq, const Mask& mask) {
  if (mask.keys < 0) return nq;
  const Index unpadded = std::clamp<Index>(mask.keys - mask.offset, 0, nq);
  return unpadded > 0 ? unpadded : nq;
}

template <class T>
Matrix<T> landmarks_of(Context& context, const In<T>& X, Index rows, Index count) {
  Matrix<T> landmarks(count, X.cols());
  pool<T>(context, row_block(X, 0, rows), Segments::even(rows, count), {}, landmarks);
  return landmarks;
}

template <class T>
class Nystrom final : public Approximation<T>, public Factored<T>, public Rows<T> {
 public:
  explicit Nystrom(const Draw& draw)
      : landmarks_(draw.params.integer("landmarks")),
        iterations_(draw.params.text("inverse") == "exact" ? 0 : draw.params.integer("iterations")),
        tolerance_(draw.params.real("tolerance")) {
    const Index width = std::stol(draw.params.text("convolution"));
    if (width == 0) return;
    if (const auto* given = draw.injected("convolution", 1, width)) {
      convolution_ = given->cast<T>();
      return;
    }
    auto generator = draw.streams.stream("convolution", "nystrom", width, draw.head, draw.replicate);
    convolution_ = (standard_normal(generator, 1, width) / std::sqrt(static_cast<double>(width))).template cast<T>();
  }

  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    const Index keys = mask.visible(0, head.K.rows());
    if (keys == 0) return void(out.setZero());
    const Landmarks landmarks = between(head, mask, keys, context);
    Matrix<T> pooled(landmarks.Q.rows(), head.V.cols()), values(landmarks.K.rows(), head.V.cols());
    attend_in_parts({landmarks.Q, row_block(head.K, 0, keys), row_block(head.V, 0, keys)}, context, pooled);
    multiply<T>(context, landmarks.Z, pooled, values);
    tiled_softmax<T>({head.Q, landmarks.K, values}, {}, {}, context, out);
    convolve(head.V, mask, keys, context, out);
  }

  Tensors state() const override {
    if (convolution_.size() == 0) return {};
    return {{"convolution", convolution_.template cast<double>()}};
  }
  // With the convolution, A is not a product of thin matrices.
  const Factored<T>* factored() const override { return convolution_.size() == 0 ? this : nullptr; }
  const Rows<T>* rows() const override { return this; }

  // L = softmax(q k~^T) Z, R = softmax(q~ k^T)^T.
  void factors(const Head<T>& head, Mask mask, Context& context, Matrix<T>& L, Matrix<T>& R) const override {
    if (mask.causal) throw Skip("nystrom: factors only without a causal mask");
    const Index keys = mask.visible(0, head.K.rows());
    const Index m = std::min({landmarks_, queries_in_landmarks(head.Q.rows(), mask), std::max<Index>(keys, 1)});
    L = Matrix<T>::Zero(head.Q.rows(), m);
    R = Matrix<T>::Zero(head.K.rows(), m);
    if (keys == 0) return;
    const Landmarks landmarks = between(head, mask, keys, context);
    multiply<T>(context, softmax(head.Q, landmarks.K, context), landmarks.Z, L);
    R.topRows(keys) = softmax(landmarks.Q, row_block(head.K, 0, keys), context).transpose();
  }

  void attention_rows(const Head<T>& head, Mask mask, Index first, Context& context, Out<T> A) const override {
    A.setZero();
    const Index keys = mask.visible(0, head.K.rows());
    if (keys == 0) return;
    const Landmarks landmarks = between(head, mask, keys, context);
    const Matrix<T> to_landmarks = softmax(row_block(head.Q, first, A.rows()), landmarks.K, context);
    Matrix<T> L(A.rows(), landmarks.Q.rows());
    multiply<T>(context, to_landmarks, landmarks.Z, L);
    multiply<T>(context, L, softmax(landmarks.Q, row_block(head.K, 0, keys), context),
                Out<T>(A.data(), A.rows(), keys, A.outerStride()));
    for (Index i = 0; i < A.rows(); ++i)
      for (Index t = 0; t < convolution_.cols(); ++t)
        if (const Index j = tap(first + i, t, mask); j >= 0 && j < keys) A(i, j) += convolution_(0, t);
  }

 private:
  struct Landmarks {
    Matrix<T> Q, K;  // m x d
    Matrix<T> Z;     // m x m
  };

  Landmarks between(const Head<T>& head, Mask mask, Index keys, Context& context) const {
    const Index queries = queries_in_landmarks(head.Q.rows(), mask), m = std::min({landmarks_, queries, keys});
    Landmarks landmarks{landmarks_of<T>(context, head.Q, queries, m), landmarks_of<T>(context, head.K, keys, m), {}};
    const Matrix<T> Am = softmax(landmarks.Q, landmarks.K, context);
    if (iterations_ > 0)
      landmarks.Z = newton_schulz_inverse<T>(context, Am, iterations_);
    else
      landmarks.Z = pseudo_inverse(context, Am.template cast<double>(), tolerance_).template cast<T>();
    return landmarks;
  }

  // For few queries and many keys: softmax attention to each part of the keys in parallel. Each row then averages the
  // parts with weights exp(log normaliser of the part). The number of parts depends on the number of keys alone.
  static void attend_in_parts(const Head<T>& head, Context& context, Out<T> out) {
    const Index m = out.rows(), keys = head.K.rows(), block = std::max(least_part, (keys - 1) / most_parts + 1);
    const Index parts = (keys - 1) / block + 1;
    Matrix<T> outs(parts * m, out.cols());
    PerRow<T> logs(parts * m);
    context.for_blocks(keys, block, [&](Context& single, Index begin, Index count) {
      const Index first = begin / block * m;
      tiled_softmax<T>({head.Q, row_block(head.K, begin, count), row_block(head.V, begin, count)}, {}, {}, single,
                       row_block(outs, first, m), {logs.data() + first, static_cast<size_t>(m)});
    });
    for (Index i = 0; i < m; ++i) {
      const auto log = [&](Index part) { return logs[part * m + i]; };
      T largest = log(0), sum = 0;
      for (Index part = 1; part < parts; ++part) largest = std::max(largest, log(part));
      out.row(i).setZero();
      for (Index part = 0; part < parts; ++part) {
        const T share = std::exp(log(part) - largest);
        sum += share;
        out.row(i) += share * outs.row(part * m + i);
      }
      out.row(i) /= sum;
    }
    context.work.exps += static_cast<double>(parts * m);
  }

  static Matrix<T> softmax(const In<T>& Q, const In<T>& K, Context& context) {
    Matrix<T> A(Q.rows(), K.rows());
    multiply_transposed<T>(context, Q, K, A);
    for (Index i = 0; i < A.rows(); ++i) softmax_within<T>(context, A, i, 0, A.cols());
    return A;
  }

  // The key that weight t of row i's convolution multiplies.
  Index tap(Index i, Index t, const Mask& mask) const { return i + mask.offset + t - convolution_.cols() / 2; }

  void convolve(const In<T>& V, const Mask& mask, Index keys, Context& context, Out<T> out) const {
    if (convolution_.size() == 0) return;
    context.for_blocks(out.rows(), query_block, [&](Context& single, Index begin, Index count) {
      for (Index i = begin; i < begin + count; ++i)
        for (Index t = 0; t < convolution_.cols(); ++t)
          if (const Index j = tap(i, t, mask); j >= 0 && j < keys) out.row(i) += convolution_(0, t) * V.row(j);
      single.work.flops += 2 * static_cast<double>(convolution_.cols() * count * V.cols());
    });
  }

  Index landmarks_, iterations_;  // 0: the pseudo-inverse
  double tolerance_;
  Matrix<T> convolution_;  // 1 x 33, or empty
};

bool convolved(const Params& params) { return params.text("convolution") != "0"; }

Work cost(const Params& params, const Shape& shape) {
  const double nq = static_cast<double>(shape.nq), nk = static_cast<double>(shape.nk);
  const Index count = std::min({params.integer("landmarks"), shape.nq, shape.nk});
  const double m = static_cast<double>(count), d = static_cast<double>(shape.d), dv = static_cast<double>(shape.dv);
  Work work{.flops = 2 * m * (nq + nk) * (d + dv) + 2 * m * m * (d + dv), .exps = m * (nq + nk + m)};
  work.flops += params.text("inverse") == "exact" ? pseudo_inverse_flops(count)
                                                  : 8 * m * m * m * static_cast<double>(params.integer("iterations"));
  if (convolved(params)) work.flops += 2 * 33 * nq * dv;
  return work;
}

const bool registered = add(method<Nystrom>({
    .text = {.name = "nystrom",
             .printed = "Nyströmformer",
             .summary = "attention through landmarks, the means of segments (Nystroemformer)",
             .formula = "A = softmax(q k~^T) Z softmax(q~ k^T), Z the inverse of softmax(q~ k~^T)",
             .reference = "Xiong et al. 2021, arXiv:2102.03902",
             .cost = "O(n m (d + dv) + m^3) time, O(m (d + dv + m)) memory beyond input and output",
             .family = "low-rank",
             .aliases = {"nystromformer", "nystroemformer"}},
    .parameters =
        {Parameter::integer("landmarks", 64, "segments of queries and keys; at most as many as there are", 1, 1 << 20)
             .as_budget(),
         Parameter::choice("inverse", "newton-schulz",
                           "the paper's iteration, a regularised inverse after six, or the pseudo-inverse",
                           {"newton-schulz", "exact"}),
         Parameter::integer("iterations", 6, "of Newton-Schulz", 1, 1000),
         Parameter::real("tolerance", 1e-4,
                         "of the pseudo-inverse: singular values below this share of the largest count as 0", 0, 1),
         Parameter::choice("convolution", "0", "width of the depthwise convolution over values; 0: none", {"0", "33"})},
    .claims =
        [](const Params& params, const Shape& shape) {
          Claims claims{.no_form = shape.mask.causal ? "every landmark averages tokens, later ones included" : ""};
          if (!convolved(params)) claims.rank_at_most = params.integer("landmarks");
          return claims;
        },
    .memory =
        [](const Params& params, const Shape& shape) {
          const Index m = std::min({params.integer("landmarks"), shape.nq, shape.nk});
          return static_cast<double>(m * (2 * shape.d + (2 + most_parts) * shape.dv + 6 * m)) *
                 bytes_of(shape.precision);
        },
    .cost = cost,
}));

}  // namespace
}  // namespace attnbench::nystrom_method
