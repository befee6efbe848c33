// Skyformer: Nystroem's approximation of the Gaussian kernel between queries and keys, from landmarks among both. Chen,
// Zeng, Ji and Yang, arXiv:2111.00035, section 4.
//   C(x, y) = exp(-|x - y|^2 / 2), a positive definite 2n x 2n matrix on the rows X = [Q; K], so that Nystroem applies
//   S: m rows of X, uniform and without replacement;  C~ = C(., S) C(S, S)^+ C(S, .)
//   exp(q.k) = exp(|q|^2/2) C(q, k) exp(|k|^2/2), whose first factor cancels in the row normaliser:
//   out_i = sum_j C~_ij exp(|k_j|^2/2) v_j / sum_j C~_ij exp(|k_j|^2/2)                                 methods.md E
// C - C~ is positive semidefinite and its diagonal does not grow with m: the landmarks of m are the first of more.
// C(s, k_j) exp(|k_j|^2/2) = exp(s.k_j - |s|^2/2): the sums over keys are softmax attention of the landmarks, times
//   their normalisers. A landmark whose residual after the earlier ones is at most 1e-12 adds nothing and is left out
//   (pivoted_cholesky.hpp in the order of the draw), which makes C(S, S)^+ the inverse for the rest.
// normalise=false: out = C~ V, the paper's operator, without row normaliser and exp(|k|^2/2). It is another function
//   than softmax attention; the paper trains models with it.
// As in the authors' module: ridge=0.1, C(S, S) + 0.1 I in place of C(S, S), all landmarks kept; fixed_scale=true, q
// and k times (d/32)^(1/4), because the module divides by 32^(1/4) for any d.
//
// At least nq + nk landmarks are all rows: C~ = C, computed as exact attention (with normalise=false, as C V).
//
// Weights may be negative, and so may a
// denominator: its row then follows the formula, and attention-error records the share of such rows. Where rounding
// alone decides whether there is a denominator, |sum_s e_s u_s| <= eps sum_s |e_s u_s| for the scalar type's eps, the
// row is the mean of the values. Padded keys, and queries at padded positions unless all are, are no landmarks. No
// causal form: landmarks are drawn among all tokens. All is computed in double for both scalar types, because an
// inverse of landmarks that are near each other has large numbers, which cancel in a row. O(n m (d + dv) + m^3) time,
// O((n + m) (d + dv) + m^2) memory.
#include <Eigen/Cholesky>
#include <algorithm>
#include <boost/random/uniform_01.hpp>
#include <cmath>
#include <limits>
#include <numeric>

#include "approximations/low-rank/unpadded_queries.hpp"
#include "approximations/softmax/tiled_softmax.hpp"
#include "harness/linalg/exponentials.hpp"
#include "harness/linalg/per_row.hpp"
#include "harness/linalg/pivoted_cholesky.hpp"
#include "harness/linalg/rows.hpp"

namespace attnbench::skyformer_method {
namespace {

constexpr Index query_block = 256;

// Landmarks in place of the keys: out_i = sum_s e_is columns_s, e_is = exp(q_i.x_s + log_scale_s), over the sum of the
// last column but one if rows are normalised.
struct Landmarks {
  Matrix<double> X;          // r x d
  Matrix<double> columns;    // r x (c + 2): C(S, S)^-1 C(S, K) times the targets (n x c), times 1, and |the latter|
  PerRow<double> log_scale;  // r
};

template <class T>
class Skyformer final : public Approximation<T>, public Kernel<T>, public Factored<T> {
 public:
  explicit Skyformer(const Draw& draw)
      : m_(draw.params.integer("landmarks")),
        normalise_(draw.params.flag("normalise")),
        ridge_(draw.params.real("ridge")),
        scale_(draw.params.flag("fixed_scale") ? std::pow(static_cast<double>(draw.shape.d) / 32, 0.25) : 1),
        padded_(draw.shape.mask.keys >= 0) {
    const Index count = std::min(m_, draw.shape.nq + draw.shape.nk);
    if (const auto* given = draw.injected("uniforms", count, 1)) {
      uniforms_ = *given;
      return;
    }
    auto generator = draw.streams.stream("landmarks", "skyformer", draw.head, draw.replicate);
    boost::random::uniform_01<double> uniform;
    uniforms_.resize(count, 1);
    for (Index t = 0; t < count; ++t) uniforms_(t, 0) = uniform(generator);
  }

  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    const Index keys = mask.visible(0, head.K.rows());
    if (keys == 0) return void(out.setZero());
    const In<T> V = row_block(head.V, 0, keys);
    const auto landmarks = compress(head, mask, V, context);
    const Eigen::Matrix<T, 1, Eigen::Dynamic> mean = V.colwise().mean();
    const Index dv = V.cols();
    context.for_blocks(out.rows(), query_block, [&](Context& single, Index begin, Index count) {
      Matrix<double> weights(count, landmarks.X.rows()), sums(count, dv + 2);
      PerRow<double> log_rows(count);
      exponentials(row_block(head.Q, begin, count), landmarks, single, weights, log_rows);
      multiply<double>(single, weights, landmarks.columns, sums);
      for (Index i = 0; i < count; ++i) {
        auto row = out.row(begin + i);
        if (!normalise_)
          row = (sums.row(i).head(dv) * std::exp(log_rows[i])).template cast<T>();
        else if (usable(sums(i, dv), sums(i, dv + 1)))
          row = (sums.row(i).head(dv) / sums(i, dv)).template cast<T>();
        else
          row = mean;
      }
    });
  }

  Tensors state() const override { return {{"uniforms", uniforms_}}; }
  // The interface gives a kernel no mask, and padded keys would be landmarks.
  const Kernel<T>* kernel() const override { return padded_ ? nullptr : this; }
  const Factored<T>* factored() const override { return this; }

  // C~_ij exp(|q_i|^2/2 + |k_j|^2/2), or C~ itself.
  void kernel(const Head<T>& head, Context& context, Out<T> block, std::span<T> log_rows,
              std::span<T> log_columns) const override {
    const Index nk = head.K.rows();
    const auto landmarks = compress(head, {}, Matrix<T>::Identity(nk, nk).eval(), context);
    Matrix<double> weights(head.Q.rows(), landmarks.X.rows()), sums(head.Q.rows(), nk);
    PerRow<double> log(head.Q.rows());
    exponentials(head.Q, landmarks, context, weights, log);
    multiply<double>(context, weights, landmarks.columns.leftCols(nk).eval(), sums);
    block = sums.template cast<T>();
    std::transform(log.begin(), log.end(), log_rows.begin(), [](double x) { return static_cast<T>(x); });
    std::fill(log_columns.begin(), log_columns.end(), T(0));
  }

  void diagonal(const Head<T>& head, Context& context, std::span<T> values, std::span<T> log_scale) const override {
    const Index nk = head.K.rows();
    const auto landmarks = compress(head, {}, Matrix<T>::Identity(nk, nk).eval(), context);
    Matrix<double> weights(head.Q.rows(), landmarks.X.rows());
    PerRow<double> log(head.Q.rows());
    exponentials(head.Q, landmarks, context, weights, log);
    for (Index i = 0; i < weights.rows(); ++i) {
      values[static_cast<size_t>(i)] = static_cast<T>(weights.row(i).dot(landmarks.columns.col(i)));
      log_scale[static_cast<size_t>(i)] = static_cast<T>(log[i]);
    }
  }

  void normalisers(const Head<T>& head, Mask mask, Context& context, std::span<T> values,
                   std::span<T> log_scale) const override {
    const Index keys = mask.visible(0, head.K.rows());
    if (keys == 0) {
      std::fill(values.begin(), values.end(), T(0));
      return std::fill(log_scale.begin(), log_scale.end(), -std::numeric_limits<T>::infinity());
    }
    const auto landmarks = compress(head, mask, Matrix<T>::Ones(keys, 1).eval(), context);
    Matrix<double> weights(head.Q.rows(), landmarks.X.rows()), sums(head.Q.rows(), 3);
    PerRow<double> log(head.Q.rows());
    exponentials(head.Q, landmarks, context, weights, log);
    multiply<double>(context, weights, landmarks.columns, sums);
    for (Index i = 0; i < sums.rows(); ++i) {
      values[static_cast<size_t>(i)] = static_cast<T>(sums(i, 1));
      log_scale[static_cast<size_t>(i)] = static_cast<T>(log[i]);
    }
  }

  // L = e over its row's denominator, R = (C(S, S)^-1 C(S, K))^T. The last column of both is the mean of the values,
  // for rows without a usable denominator.
  void factors(const Head<T>& head, Mask mask, Context& context, Matrix<T>& L, Matrix<T>& R) const override {
    const Index keys = mask.visible(0, head.K.rows());
    L = Matrix<T>::Zero(head.Q.rows(), 1);
    R = Matrix<T>::Zero(head.K.rows(), 1);
    if (keys == 0) return;
    const auto landmarks = compress(head, mask, Matrix<T>::Identity(keys, keys).eval(), context);
    const Index r = landmarks.X.rows();
    Matrix<double> weights(head.Q.rows(), r), sums(head.Q.rows(), 2);
    PerRow<double> log_rows(head.Q.rows());
    exponentials(head.Q, landmarks, context, weights, log_rows);
    multiply<double>(context, weights, landmarks.columns.rightCols(2).eval(), sums);
    L = Matrix<T>::Zero(head.Q.rows(), r + 1);
    for (Index i = 0; i < L.rows(); ++i)
      if (!normalise_)
        L.row(i).head(r) = (weights.row(i) * std::exp(log_rows[i])).template cast<T>();
      else if (usable(sums(i, 0), sums(i, 1)))
        L.row(i).head(r) = (weights.row(i) / sums(i, 0)).template cast<T>();
      else
        L(i, r) = 1;
    R = Matrix<T>::Zero(head.K.rows(), r + 1);
    R.topLeftCorner(keys, r) = landmarks.columns.leftCols(keys).transpose().template cast<T>();
    R.col(r).head(keys).setConstant(1 / static_cast<T>(keys));
  }

 private:
  // Whether more than rounding is left of a sum whose absolute terms have that sum.
  static bool usable(double sum, double absolute) {
    return std::abs(sum) > std::numeric_limits<T>::epsilon() * absolute;
  }

  // exp(q.x_s + log_scale_s - log_row), log_row the largest of the row's exponents; with normalise=false log_row then
  // becomes less by |q|^2/2.
  void exponentials(const In<T>& Q, const Landmarks& of, Context& context, Matrix<double>& weights,
                    std::span<double> log_rows) const {
    const Matrix<double> queries = scale_ * Q.template cast<double>();
    multiply_transposed<double>(context, queries, of.X, weights);
    row_maxima<double>(weights, std::span<const double>(of.log_scale), log_rows);
    PerRow<double> shift(weights.rows());
    for (Index i = 0; i < weights.rows(); ++i) shift[i] = -log_rows[static_cast<size_t>(i)];
    exponentiate<double>(context, weights, std::span<const double>(shift), std::span<const double>(of.log_scale));
    if (normalise_) return;
    for (Index i = 0; i < weights.rows(); ++i) log_rows[static_cast<size_t>(i)] -= queries.row(i).squaredNorm() / 2;
  }

  // The landmarks, in the order of the draw (Fisher and Yates): r x d.
  Matrix<double> drawn_rows(const Head<T>& head, Index queries, Index keys) const {
    const Index rows = queries + keys, m = std::min(m_, rows);
    std::vector<Index> order(static_cast<size_t>(rows));
    std::iota(order.begin(), order.end(), Index(0));
    Matrix<double> X(m, head.K.cols());
    for (Index t = 0; t < m; ++t) {
      const Index other = t + static_cast<Index>(uniforms_(t, 0) * static_cast<double>(rows - t));
      std::swap(order[static_cast<size_t>(t)], order[static_cast<size_t>(std::min(other, rows - 1))]);
      const Index row = order[static_cast<size_t>(t)];
      if (row < queries)
        X.row(t) = head.Q.row(row).template cast<double>();
      else
        X.row(t) = head.K.row(row - queries).template cast<double>();
    }
    return X;
  }

  // targets: keys x c.
  Landmarks compress(const Head<T>& head, Mask mask, const In<T>& targets, Context& context) const {
    const Index keys = targets.rows(), queries = unpadded_queries(head.Q.rows(), mask), c = targets.cols();
    const In<T> K = row_block(head.K, 0, keys);
    const Matrix<double> K_in_double = scale_ * K.template cast<double>(), of_keys = targets.template cast<double>();
    PerRow<double> negative_half(keys);
    half_squared_norms<double>(K_in_double, negative_half);
    for (double& half : negative_half) half = -half;
    if (ridge_ == 0 && m_ >= head.Q.rows() + head.K.rows()) return all_keys(K_in_double, targets, negative_half);

    // Halves of emulated half precision would be no inverse: accelerators compute one in float at least.
    Context unrounded(context.threads());
    const auto [X, F] = factorised(scale_ * drawn_rows(head, queries, keys), unrounded);
    const Index r = X.rows();
    Matrix<double> columns(r, c + 1);

    // C(S, K) exp(|k|^2/2) targets, row s over the exponential of a number that all rows share.
    Matrix<double> means(r, c);
    PerRow<double> log_sum(r);
    tiled_softmax<double>({X, K_in_double, of_keys}, {},
                          normalise_ ? std::span<const double>() : std::span<const double>(negative_half), context,
                          means, log_sum);
    for (Index s = 0; s < r; ++s) log_sum[s] -= X.row(s).squaredNorm() / 2;
    const double largest = *std::max_element(log_sum.begin(), log_sum.end());
    for (Index s = 0; s < r; ++s) {
      const double sum = std::exp(log_sum[s] - largest);
      columns.row(s).head(c) = sum * means.row(s);
      columns(s, c) = sum;
    }
    solve(F, columns, unrounded);
    context.work += unrounded.work;
    return scaled(X, largest, columns);
  }

  struct Factorised {
    Matrix<double> X, F;  // r x d, r x r: C(X, X) + ridge I = F^T F, F upper triangular
  };
  Factorised factorised(const Matrix<double>& drawn, Context& context) const {
    const Index m = drawn.rows();
    if (ridge_ > 0) {
      Matrix<double> gram(m, m);
      for (Index s = 0; s < m; ++s)
        for (Index t = 0; t < m; ++t) gram(s, t) = std::exp(-(drawn.row(s) - drawn.row(t)).squaredNorm() / 2);
      gram.diagonal().array() += ridge_;
      const double size = static_cast<double>(m);
      context.work += {.flops = size * size * (2 * static_cast<double>(drawn.cols()) + size / 3), .exps = size * size};
      return {drawn, Eigen::LLT<Matrix<double>>(gram).matrixU()};
    }
    const auto found = pivoted_cholesky(context, drawn, std::vector<double>(static_cast<size_t>(m), 0));
    const Index r = std::ssize(found.pivots);
    Factorised kept{Matrix<double>(r, drawn.cols()), Matrix<double>(r, r)};
    for (Index s = 0; s < r; ++s) {
      const Index pivot = found.pivots[static_cast<size_t>(s)];
      kept.X.row(s) = drawn.row(pivot);
      kept.F.col(s) = found.factor.col(pivot);
    }
    return kept;
  }

  // S holds every key, so that C(S, S)^-1 C(S, K) is the identity on them.
  Landmarks all_keys(const Matrix<double>& K, const In<T>& targets, const PerRow<double>& negative_half) const {
    const Index keys = K.rows(), c = targets.cols();
    Landmarks all{K, Matrix<double>::Ones(keys, c + 2), PerRow<double>(keys, 0)};
    all.columns.leftCols(c) = targets.template cast<double>();
    if (!normalise_) std::copy(negative_half.begin(), negative_half.end(), all.log_scale.begin());
    return all;
  }

  // X = (F^T F)^-1 X, F upper triangular.
  static void solve(const Matrix<double>& F, Matrix<double>& X, Context& context) {
    F.transpose().template triangularView<Eigen::Lower>().solveInPlace(X);
    F.template triangularView<Eigen::Upper>().solveInPlace(X);
    context.work.flops += 2 * static_cast<double>(X.rows() * X.rows() * X.cols());
  }

  // Each row of the columns is divided by its largest number, which goes to its scale. A row of zeros is left out.
  static Landmarks scaled(const Matrix<double>& X, double log, const Matrix<double>& columns) {
    std::vector<Index> kept;
    for (Index s = 0; s < X.rows(); ++s)
      if (!columns.row(s).isZero(0)) kept.push_back(s);
    const Index r = std::ssize(kept), c = columns.cols();
    Landmarks landmarks{Matrix<double>(r, X.cols()), Matrix<double>(r, c + 1), PerRow<double>(r)};
    for (Index s = 0; s < r; ++s) {
      const Index from = kept[static_cast<size_t>(s)];
      const double size = columns.row(from).cwiseAbs().maxCoeff();
      landmarks.X.row(s) = X.row(from);
      landmarks.columns.row(s).head(c) = columns.row(from) / size;
      landmarks.columns(s, c) = std::abs(landmarks.columns(s, c - 1));
      landmarks.log_scale[s] = log + std::log(size) - X.row(from).squaredNorm() / 2;
    }
    return landmarks;
  }

  Index m_;
  bool normalise_;
  double ridge_, scale_;
  bool padded_;
  Matrix<double> uniforms_;  // min(m, nq + nk) x 1
};

bool is_exact(const Params& params, const Shape& shape) {
  return params.real("ridge") == 0 && params.integer("landmarks") >= shape.nq + shape.nk;
}

double landmarks_of(const Params& params, const Shape& shape) {
  return static_cast<double>(is_exact(params, shape) ? shape.nk
                                                     : std::min(params.integer("landmarks"), shape.nq + shape.nk));
}

Work cost(const Params& params, const Shape& shape) {
  const double nq = static_cast<double>(shape.nq), nk = static_cast<double>(shape.nk);
  const double d = static_cast<double>(shape.d), dv = static_cast<double>(shape.dv), m = landmarks_of(params, shape);
  Work work{.flops = 2 * nq * m * (d + dv + 2), .exps = nq * m};
  if (is_exact(params, shape)) return work;
  return work += {.flops = 2 * nk * m * (d + dv) + m * m * m + 2 * m * m * (d + dv + 1), .exps = nk * m + 2 * m * m};
}

double memory(const Params& params, const Shape& shape) {
  const double d = static_cast<double>(shape.d), dv = static_cast<double>(shape.dv), m = landmarks_of(params, shape);
  const double block = static_cast<double>(std::min(query_block, shape.nq));
  const double landmarks = m * (2 * d + dv + 2) + block * (m + d + dv);
  const double keys = static_cast<double>(shape.nk) * (d + dv + 1);
  if (is_exact(params, shape)) return 8 * (landmarks + keys);
  return 8 * (landmarks + keys + m * (2 * m + 3 * d + 2 * dv) + static_cast<double>(shape.nq + shape.nk));
}

const bool registered = add(method<Skyformer>({
    .text = {.name = "skyformer",
             .printed = "Skyformer",
             .summary = "Nystroem's approximation of the Gaussian kernel, from landmarks among queries and keys",
             .formula = "A_ij ~ C~_ij exp(|k_j|^2 / 2), C~ = C(Q, S) C(S, S)^+ C(S, K), C(x, y) = exp(-|x - y|^2 / 2)",
             .reference = "Chen et al. 2021, arXiv:2111.00035",
             .cost = "O(n m (d + dv) + m^3) time, O((n + m) (d + dv) + m^2) memory beyond input and output",
             .family = "low-rank",
             .departure = "rows are normalised by default, which makes it an approximation of softmax; the inverse is "
                          "C(S, S)^+, where the paper's algorithm adds gamma I"},
    .parameters =
        {Parameter::integer("landmarks", 64, "rows of queries and keys, at most as many as there are", 1).as_budget(),
         Parameter::flag("normalise", true,
                         "divide rows by their sums; false: the paper's operator C~ V, another one than "
                         "softmax"),
         Parameter::real("ridge", 0, "added to the diagonal of C(S, S); 0.1 in the authors' module", 0, 1)
             .as_published(),
         Parameter::flag("fixed_scale", false, "true: queries and keys are divided by 32^(1/4) for any d")
             .as_published()},
    .claims =
        [](const Params& params, const Shape& shape) {
          Claims claims{.row_stochastic = params.flag("normalise"),
                        .no_form = shape.mask.causal ? "landmarks are drawn among all tokens, later ones included" : "",
                        .rank_at_most = params.integer("landmarks") + 1};  // rows without a denominator: the mean
          if (params.flag("normalise"))
            claims.exact_when = "landmarks=1000000000";
          else
            claims.normaliser = Normaliser::none;
          return claims;
        },
    .memory = memory,
    .cost = cost,
}));

}  // namespace
}  // namespace attnbench::skyformer_method
