// WildCat: softmax over a weighted coreset of the keys, which randomly pivoted Cholesky chooses. Schroeder and Mackey,
// arXiv:2602.10056.
//   k_j less the mean of the keys;  tau^2 = 3.94582 max|k| / max|q|;  h(k, k') = exp(k.k' / tau^2)
//   S: r keys, each drawn in proportion to the residual diagonal of h after the earlier ones (pivoted_cholesky.hpp)
//   W = h(K_S, K_S)^-1 h(K_S, K), r x n
//   out = exp(q K_S^T) (W V) / exp(q K_S^T) (W 1),  clipped to [min V, max V] column by column           methods.md E
// q.k / tau^2 = (tau q).k / tau^2 and h(tau^2 q, k) = exp(q.k), so W is Nystroem's least-squares fit of exp(q.k_j) by
// the functions exp(q.k_s), and
//   |exp(q.k_j) - sum_s exp(q.k_s) W_sj| <= exp(tau^2 |q|^2 / 2) residual_j^1/2.
// The residuals are known without an n x n matrix: their sum is a certificate (experiment coreset-certificate). Exact
// if the keys take at most r values, and if there are at most r keys. k + c changes nothing.
// bins=b: the sequence in b even parts [a n/b, (a+1) n/b), each with r/b keys of its own and its own tau; the mean is
// that of all keys.
// Weights may be negative, and so may a denominator: its row then follows the formula, and attention-error records the
// share of such rows (fraction_nonpositive_normalisers, with clip=false). Where rounding alone decides whether there is
// a denominator, |sum_s e_s w_s| <= eps sum_s |e_s w_s| for the scalar type's eps, the row is the mean of the values.
// A residual of at most 1e-12 ends the choice, so that equal keys never make a singular matrix. Padded keys, and
// queries at padded positions unless all are, enter neither tau nor the choice. No causal form: S is chosen among all
// keys. The choice is made in double for both scalar types. O(n r^2 + n r (d + dv)) time, O(n (r + d + dv)) memory.
#include <algorithm>
#include <boost/random/uniform_01.hpp>
#include <cmath>
#include <limits>

#include "approximations/low-rank/unpadded_queries.hpp"
#include "harness/core/approximation.hpp"
#include "harness/linalg/exponentials.hpp"
#include "harness/linalg/per_row.hpp"
#include "harness/linalg/pivoted_cholesky.hpp"

namespace attnbench::wildcat_method {
namespace {

constexpr double tau_scale = 3.94582;  // rho^2 of the paper's temperature
constexpr Index query_block = 256;

double largest_norm(const Matrix<double>& X) { return X.rowwise().norm().maxCoeff(); }

// Keys that stand for all: out_i = sum_s e_is columns_s / sum_s e_is weight_s with e_is = exp(q_i.k_s + log_scale_s).
template <class T>
struct Coreset {
  Matrix<T> keys;       // m x d, less the mean of all keys
  Matrix<T> columns;    // m x (c + 2): W X for the targets X (n x c), W 1 and |W 1|
  PerRow<T> log_scale;  // m
  Eigen::RowVectorXd mean;
};

// Part a of `total`, divided evenly into `parts`.
struct Part {
  Part(Index total, Index parts, Index a) : begin(a * total / parts), count((a + 1) * total / parts - begin) {}
  Index begin, count;
};

template <class T>
class WildCat final : public Approximation<T>, public Kernel<T>, public Factored<T> {
 public:
  explicit WildCat(const Draw& draw)
      : bins_(draw.params.integer("bins")),
        r_(draw.params.integer("r")),
        clip_(draw.params.flag("clip")),
        padded_(draw.shape.mask.keys >= 0) {
    const Index count = std::min(r_, draw.shape.nk);  // there are no more pivots than keys
    if (const auto* given = draw.injected("uniforms", count, 1)) {
      uniforms_ = *given;
      return;
    }
    auto generator = draw.streams.stream("coreset", "wildcat", draw.head, draw.replicate);
    boost::random::uniform_01<double> uniform;
    uniforms_.resize(count, 1);
    for (Index t = 0; t < count; ++t) uniforms_(t, 0) = uniform(generator);
  }

  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    const Index keys = mask.visible(0, head.K.rows());
    if (keys == 0) return void(out.setZero());
    const In<T> V = row_block(head.V, 0, keys);
    const auto coreset = compress(head, mask, V.template cast<double>(), context);
    const Eigen::Array<T, 1, Eigen::Dynamic> mean = V.colwise().mean().array(), least = V.colwise().minCoeff().array(),
                                             most = V.colwise().maxCoeff().array();
    const Index dv = V.cols();
    context.for_blocks(out.rows(), query_block, [&](Context& single, Index begin, Index count) {
      Matrix<T> weights(count, coreset.keys.rows()), sums(count, dv + 2);
      PerRow<T> log_rows(count);
      exponentials(row_block(head.Q, begin, count), coreset, single, weights, log_rows);
      multiply<T>(single, weights, coreset.columns, sums);
      for (Index i = 0; i < count; ++i) {
        auto row = out.row(begin + i).array();
        if (usable(sums(i, dv), sums(i, dv + 1)))
          row = sums.row(i).head(dv).array() / sums(i, dv);
        else
          row = mean;
        if (clip_) row = row.max(least).min(most);
      }
    });
  }

  Tensors state() const override { return {{"uniforms", uniforms_}}; }
  // Clipping is no matrix. The interface gives a kernel no mask, and padded keys would be in the coreset.
  const Kernel<T>* kernel() const override { return clip_ || padded_ ? nullptr : this; }
  const Factored<T>* factored() const override { return clip_ ? nullptr : this; }

  void kernel(const Head<T>& head, Context& context, Out<T> block, std::span<T> log_rows,
              std::span<T> log_columns) const override {
    const auto coreset = of_every_key(head, context);
    Matrix<T> weights(head.Q.rows(), coreset.keys.rows());
    exponentials(head.Q, coreset, context, weights, log_rows);
    multiply<T>(context, weights, own_columns(coreset), block);
    add_means(head, coreset, log_rows);
    std::fill(log_columns.begin(), log_columns.end(), T(0));
  }

  void diagonal(const Head<T>& head, Context& context, std::span<T> values, std::span<T> log_scale) const override {
    const auto coreset = of_every_key(head, context);
    Matrix<T> weights(head.Q.rows(), coreset.keys.rows());
    exponentials(head.Q, coreset, context, weights, log_scale);
    for (Index i = 0; i < weights.rows(); ++i)
      values[static_cast<size_t>(i)] = weights.row(i).dot(coreset.columns.col(i));
    add_means(head, coreset, log_scale);
  }

  void normalisers(const Head<T>& head, Mask mask, Context& context, std::span<T> values,
                   std::span<T> log_scale) const override {
    const Index keys = mask.visible(0, head.K.rows());
    if (keys == 0) {
      std::fill(values.begin(), values.end(), T(0));
      return std::fill(log_scale.begin(), log_scale.end(), -std::numeric_limits<T>::infinity());
    }
    const auto coreset = compress(head, mask, Matrix<double>(keys, 0), context);
    Matrix<T> weights(head.Q.rows(), coreset.keys.rows()), sums(head.Q.rows(), 2);
    exponentials(head.Q, coreset, context, weights, log_scale);
    multiply<T>(context, weights, coreset.columns, sums);
    for (Index i = 0; i < sums.rows(); ++i) values[static_cast<size_t>(i)] = sums(i, 0);
    add_means(head, coreset, log_scale);
  }

  // L = exp(q K_S^T) over its row's denominator, R = W^T. The last column of both is the mean of the values, for rows
  // without a usable denominator.
  void factors(const Head<T>& head, Mask mask, Context& context, Matrix<T>& L, Matrix<T>& R) const override {
    const Index keys = mask.visible(0, head.K.rows());
    L = Matrix<T>::Zero(head.Q.rows(), 1);
    R = Matrix<T>::Zero(head.K.rows(), 1);
    if (keys == 0) return;
    const auto coreset = compress(head, mask, Matrix<double>::Identity(keys, keys), context);
    const Index m = coreset.keys.rows();
    Matrix<T> weights(head.Q.rows(), m), sums(head.Q.rows(), 2);
    PerRow<T> log_rows(head.Q.rows());
    exponentials(head.Q, coreset, context, weights, log_rows);
    multiply<T>(context, weights, coreset.columns.rightCols(2).eval(), sums);
    L = Matrix<T>::Zero(head.Q.rows(), m + 1);
    for (Index i = 0; i < L.rows(); ++i)
      if (usable(sums(i, 0), sums(i, 1)))
        L.row(i).head(m) = weights.row(i) / sums(i, 0);
      else
        L(i, m) = 1;
    R = Matrix<T>::Zero(head.K.rows(), m + 1);
    R.topLeftCorner(keys, m) = coreset.columns.leftCols(keys).transpose();
    R.col(m).head(keys).setConstant(1 / static_cast<T>(keys));
  }

 private:
  // Whether more than rounding is left of a sum whose absolute terms have that sum.
  static bool usable(T sum, T absolute) { return std::abs(sum) > std::numeric_limits<T>::epsilon() * absolute; }

  Coreset<T> of_every_key(const Head<T>& head, Context& context) const {
    const Index keys = head.K.rows();
    return compress(head, {}, Matrix<double>::Identity(keys, keys), context);
  }
  static Matrix<T> own_columns(const Coreset<T>& coreset) {
    return coreset.columns.leftCols(coreset.columns.cols() - 2);
  }

  // exp(q.k_s + log_scale_s - log_row), log_row the largest of the row's exponents.
  static void exponentials(const In<T>& Q, const Coreset<T>& coreset, Context& context, Matrix<T>& weights,
                           std::span<T> log_rows) {
    multiply_transposed<T>(context, Q, coreset.keys, weights);
    row_maxima<T>(weights, std::span<const T>(coreset.log_scale), log_rows);
    PerRow<T> shift(weights.rows());
    for (Index i = 0; i < weights.rows(); ++i) shift[i] = -log_rows[static_cast<size_t>(i)];
    exponentiate<T>(context, weights, shift, coreset.log_scale);
  }

  // exp(q.k) is exp(q.(k - mean)) times exp(q.mean).
  static void add_means(const Head<T>& head, const Coreset<T>& coreset, std::span<T> log_rows) {
    for (Index i = 0; i < head.Q.rows(); ++i)
      log_rows[static_cast<size_t>(i)] += static_cast<T>(head.Q.row(i).template cast<double>().dot(coreset.mean));
  }

  // targets: keys x c.
  Coreset<T> compress(const Head<T>& head, Mask mask, Matrix<double> targets, Context& context) const {
    const Index keys = targets.rows(), c = targets.cols();
    const Index bins = keys <= r_ ? 1 : bins_;  // uneven parts could have more keys than their share of r
    const Index queries = unpadded_queries(head.Q.rows(), mask);
    Matrix<double> K = row_block(head.K, 0, keys).template cast<double>();
    const Eigen::RowVectorXd mean = K.colwise().mean();
    K.rowwise() -= mean;
    const double longest_query = largest_norm(row_block(head.Q, 0, queries).template cast<double>());
    targets.conservativeResize(keys, c + 1);
    targets.col(c).setOnes();

    std::vector<Index> chosen;
    std::vector<double> log_scale;
    Matrix<double> columns(std::min(r_, keys), c + 1);
    // Halves of emulated half precision would be no choice of pivots: those of accelerators are in float at least.
    Context unrounded(context.threads());
    for (Index a = 0; a < bins; ++a) {
      const Part bin(keys, bins, a), share(r_, bins, a);
      const Index place = std::ssize(chosen);
      if (bin.count <= share.count) {
        columns.middleRows(place, bin.count) = targets.middleRows(bin.begin, bin.count);
        for (Index j = 0; j < bin.count; ++j) chosen.push_back(bin.begin + j);
        log_scale.resize(chosen.size(), 0);
        continue;
      }
      const double radius = largest_norm(K.middleRows(bin.begin, bin.count));
      const double over_tau = radius > 0 ? std::sqrt(longest_query / tau_scale) / std::sqrt(radius) : 0;
      const auto found = pivoted_cholesky(unrounded, over_tau * K.middleRows(bin.begin, bin.count),
                                          {&uniforms_(share.begin, 0), static_cast<size_t>(share.count)});
      const double largest = *std::max_element(found.squares.begin(), found.squares.end());
      Matrix<double> scaled = targets.middleRows(bin.begin, bin.count);
      for (Index j = 0; j < bin.count; ++j)
        scaled.row(j) *= std::exp((found.squares[static_cast<size_t>(j)] - largest) / 2);
      const Index count = std::ssize(found.pivots);
      Out<double> sums = row_block(columns, place, count);
      multiply<double>(unrounded, found.factor, scaled, sums);
      solve(found, sums, unrounded);
      for (const Index pivot : found.pivots) {
        chosen.push_back(bin.begin + pivot);
        log_scale.push_back((largest - found.squares[static_cast<size_t>(pivot)]) / 2);
      }
    }
    context.work += unrounded.work;
    Coreset<T> coreset = in_scalar_type(K, chosen, log_scale, columns);
    coreset.mean = mean;
    return coreset;
  }

  // X = F_.S^-1 X, F_.S upper triangular.
  static void solve(const PivotedCholesky& of, Out<double> X, Context& context) {
    for (Index s = X.rows() - 1; s >= 0; --s) {
      for (Index t = s + 1; t < X.rows(); ++t) X.row(s) -= of.factor(s, of.pivots[static_cast<size_t>(t)]) * X.row(t);
      X.row(s) /= of.factor(s, of.pivots[static_cast<size_t>(s)]);
    }
    context.work.flops += static_cast<double>(X.rows() * X.rows() * X.cols());
  }

  // Each row of the columns is divided by its largest number, which goes to its scale, so that float holds it. A row of
  // zeros is left out.
  static Coreset<T> in_scalar_type(const Matrix<double>& K, const std::vector<Index>& chosen,
                                   const std::vector<double>& log_scale, const Matrix<double>& columns) {
    std::vector<Index> kept;
    for (Index s = 0; s < std::ssize(chosen); ++s)
      if (!columns.row(s).isZero(0)) kept.push_back(s);
    const Index m = std::ssize(kept), c = columns.cols();
    Coreset<T> coreset{Matrix<T>(m, K.cols()), Matrix<T>(m, c + 1), PerRow<T>(m), {}};
    for (Index s = 0; s < m; ++s) {
      const Index from = kept[static_cast<size_t>(s)];
      const double size = columns.row(from).cwiseAbs().maxCoeff();
      coreset.keys.row(s) = K.row(chosen[static_cast<size_t>(from)]).template cast<T>();
      coreset.columns.row(s).head(c) = (columns.row(from) / size).template cast<T>();
      coreset.columns(s, c) = std::abs(coreset.columns(s, c - 1));
      coreset.log_scale[s] = static_cast<T>(log_scale[static_cast<size_t>(from)] + std::log(size));
    }
    return coreset;
  }

  Index bins_, r_;
  bool clip_, padded_;
  Matrix<double> uniforms_;  // min(r, nk) x 1
};

// Calls body(keys of the bin, keys chosen from it) for each bin that has more keys than it may choose.
template <class Body>
void for_compressed_bins(const Params& params, Index keys, const Body& body) {
  const Index bins = params.integer("bins"), r = params.integer("r");
  for (Index a = 0; keys > r && a < bins; ++a) {
    const Part bin(keys, bins, a), share(r, bins, a);
    if (bin.count > share.count) body(static_cast<double>(bin.count), static_cast<double>(share.count));
  }
}

double coreset_size(const Params& params, const Shape& shape) {
  return static_cast<double>(std::min(params.integer("r"), shape.nk));
}

Work cost(const Params& params, const Shape& shape) {
  const double nq = static_cast<double>(shape.nq), d = static_cast<double>(shape.d), dv = static_cast<double>(shape.dv);
  const double m = coreset_size(params, shape);
  Work work{.flops = 2 * nq * m * (d + dv + 2), .exps = nq * m};
  for_compressed_bins(params, shape.nk, [&](double n, double r) {
    work.flops += n * r * r + 2 * n * r * (d + dv + 1) + r * r * (dv + 1);
    work.exps += 2 * n * r;
  });
  return work;
}

double memory(const Params& params, const Shape& shape) {
  const double n = static_cast<double>(shape.nk), d = static_cast<double>(shape.d), dv = static_cast<double>(shape.dv);
  const double m = coreset_size(params, shape);
  double largest_bin = 0;
  for_compressed_bins(params, shape.nk, [&](double of_bin, double r) {
    largest_bin = std::max(largest_bin, of_bin * (2 * r + 2 * d + dv + 1));
  });
  return 8 * (n * (d + dv + 1) + largest_bin + m * (dv + 1)) + m * (d + dv + 2) * bytes_of(shape.precision);
}

const bool registered = add(method<WildCat>({
    .text = {.name = "wildcat",
             .printed = "WildCat",
             .summary = "softmax over a weighted coreset of the keys, chosen by randomly pivoted Cholesky",
             .formula = "out = exp(q K_S^T) (W V) / exp(q K_S^T) (W 1), W = h(K_S, K_S)^-1 h(K_S, K), "
                        "h(k, k') = exp(k.k' / tau^2)",
             .reference = "Schroeder and Mackey 2026, arXiv:2602.10056",
             .cost = "O(n r^2 + n r (d + dv)) time, O(n (r + d + dv)) memory beyond input and output",
             .family = "coresets",
             .departure = "a row whose denominator rounding alone decides is the mean of the values; tau is of the "
                          "queries of the call, where the authors' module takes the keys' norm for theirs"},
    .parameters =
        {Parameter::integer("r", 64, "keys in the coreset, at most", 1).as_budget(),
         Parameter::integer("bins", 1, "even parts of the sequence, each with a coreset of r / bins keys", 1, 1 << 20),
         Parameter::flag("clip", true,
                         "keep each column of the output between the least and the greatest value; false: the weighted "
                         "mean as it is, which has an attention matrix")},
    .claims =
        [](const Params& params, const Shape& shape) {
          Claims claims{.row_stochastic = true,
                        .no_form = shape.mask.causal ? "the coreset is chosen among all keys, later ones included" : "",
                        .exact_when = "r=1000000000"};
          if (params.flag("clip")) {
            claims.linear_in_V = false;
            claims.scales_with_V = true;
            claims.no_attention_matrix = "its output is clipped to the range of the values; clip=false has one";
          } else {
            claims.rank_at_most = params.integer("r") + 1;  // of rows without a usable denominator, the mean
          }
          return claims;
        },
    .memory = memory,
    .cost = cost,
    .check =
        [](const Params& params) {
          if (params.integer("bins") > params.integer("r"))
            throw Misuse(params.spec() + ": " + std::to_string(params.integer("bins")) + " bins share " +
                         std::to_string(params.integer("r")) +
                         " keys; expected at least one key for each bin, as in wildcat:r=64,bins=8");
        },
}));

}  // namespace
}  // namespace attnbench::wildcat_method
