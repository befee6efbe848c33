// Non-negative sketches of (q.k)^degree. Kacham, Mirrokni and Zhong, arXiv:2310.01655, Algorithm 1; Ahle et al.,
// arXiv:1909.01410.
//   phi(x) = M(x) (x) M(x),   M = M_(degree/2),   M_1(x) = x,
//   M_2e(x) = r^-1/2 (G M_e(x)) o (G' M'_e(x)),   G, G' r rows of normal variates, M'_e a second sketch like M_e
// M(q).M(k) is unbiased for (q.k)^(degree/2), and phi(q).phi(k) = (M(q).M(k))^2 >= 0 adds its variance (methods.md
// A16):
//   E phi(q).phi(k) = A_(degree/2):   A_1 = (q.k)^2,  B_1 = |q|^2 |k|^2,
//   A_2e = (B_e + 2 A_e)^2 / r + (1 - 1/r) A_e^2,   B_2e = (B_e + 2 A_e)^2 / r + (1 - 1/r) B_e^2
// A product of two entries of M is kept once: r (r + 1) / 2 features of any sign, half of the paper's r^2. Weights are
// sums of signed products, so that one near 0 may round below 0. degree = 2 is the method `polynomial`, without a
// sketch. A token of norm s > 1 has s^degree in its log scale, so that no power overflows.
#include <cmath>

#include "approximations/linear/features/random_features.hpp"
#include "approximations/linear/symmetric_products.hpp"
#include "harness/linalg/products.hpp"

namespace attnbench::polysketch_map {
namespace {

// Sketches of one token are the nodes of a binary tree with degree/2 leaves. Row block c of `leaves` maps x to the c-th
// factor of the sketches of degree 2; `inner` has the square blocks of the levels above, level by level.
struct Sizes {
  explicit Sizes(const Params& params) : degree(params.integer("degree")), r(params.integer("r")) {}
  Index leaf_rows() const { return degree / 2 * r; }
  Index inner_rows() const { return (degree / 2 - 2) * r; }
  Index degree, r;
};

struct Drawn {
  Matrix<double> leaves;  // degree/2 r x d
  Matrix<double> inner;   // (degree/2 - 2) r x r
};

Drawn drawn(const Draw& draw) {
  const Sizes sizes(draw.params);
  const Index d = draw.shape.d;
  const auto* leaves = draw.injected("leaves", sizes.leaf_rows(), d);
  const auto* inner = sizes.inner_rows() > 0 ? draw.injected("inner", sizes.inner_rows(), sizes.r) : nullptr;
  if (sizes.inner_rows() > 0 && (leaves == nullptr) != (inner == nullptr))
    throw Misuse(draw.params.spec() + ": of the injected tensors 'leaves' and 'inner' one is missing; give both");
  if (leaves) return {*leaves, inner ? *inner : Matrix<double>(0, sizes.r)};
  auto generator = draw.streams.stream("polysketch", sizes.r, d, draw.head, draw.replicate);
  Drawn all{standard_normal(generator, sizes.leaf_rows(), d), Matrix<double>(0, sizes.r)};
  if (sizes.inner_rows() > 0) all.inner = standard_normal(generator, sizes.inner_rows(), sizes.r);
  return all;
}

template <class T>
class PolySketchFeatures final : public FeatureMap<T> {
 public:
  explicit PolySketchFeatures(const Draw& draw) : PolySketchFeatures(Sizes(draw.params), drawn(draw)) {}

  Index features() const override { return symmetric_product_count(r_); }
  Form form() const override { return Form::values; }
  void map(Context& context, const In<T>& X, Side, Index, Out<T> block, std::span<T> log_scale) const override {
    if (X.rows() == 0) return;  // a matrix without rows has no memory, and its blocks no address
    const Matrix<T> unit = shortened(X, log_scale);
    const std::vector<Level> levels = sketch(context, unit);
    symmetric_products<T>(levels.back().sketches, 1, block);
    for (T& scale : log_scale) scale = degree_ * std::log(scale);
  }
  bool differentiable() const override { return true; }
  // Backpropagates through the tree. s = max(1, |x|) enters every feature as s^-degree, and the log scale.
  void pullback(Context& context, const In<T>& X, Side, Index, const In<T>& block, const In<T>& d_block,
                std::span<const T> d_log_scale, Out<T> dX) const override {
    if (X.rows() == 0) return;
    std::vector<T> norms(static_cast<size_t>(X.rows()));
    const Matrix<T> unit = shortened(X, norms);
    const std::vector<Level> levels = sketch(context, unit);
    Matrix<T> d_sketches = Matrix<T>::Zero(X.rows(), r_);
    pull_back_symmetric_products<T>(levels.back().sketches, 1, d_block, d_sketches);
    for (size_t l = levels.size(); l-- > 0;) {
      const Matrix<T>& factors = levels[l].factors;
      Matrix<T> d_factors(X.rows(), factors.cols());
      for (Index c = 0; c < factors.cols() / r_; ++c) {
        const auto d_node = d_sketches.middleCols(c / 2 * r_, r_).array();
        d_factors.middleCols(c * r_, r_) = scale_ * d_node * factors.middleCols((c ^ 1) * r_, r_).array();
      }
      if (l == 0) {
        multiply<T>(context, d_factors, leaves_, dX);
        break;
      }
      d_sketches.resize(X.rows(), factors.cols());
      for (Index c = 0; c < factors.cols() / r_; ++c)
        multiply<T>(context, columns(d_factors, c), inner(factors.cols(), c), columns(d_sketches, c));
    }
    for (Index i = 0; i < X.rows(); ++i) {
      const T norm = norms[static_cast<size_t>(i)];
      dX.row(i) /= norm;
      if (norm <= 1) continue;
      const T d_log_norm = d_log_scale[static_cast<size_t>(i)] - (d_block.row(i).array() * block.row(i).array()).sum();
      dX.row(i) += degree_ * d_log_norm / (norm * norm) * X.row(i);
    }
  }
  Tensors state() const override {
    Tensors all{{"leaves", leaves_.template cast<double>()}};
    if (inner_.rows() > 0) all.emplace("inner", inner_.template cast<double>());
    return all;
  }

 private:
  PolySketchFeatures(const Sizes& sizes, const Drawn& all)
      : r_(sizes.r),
        degree_(static_cast<T>(sizes.degree)),
        scale_(1 / std::sqrt(static_cast<T>(sizes.r))),
        leaves_(all.leaves.cast<T>()),
        inner_(all.inner.cast<T>()) {}

  // One level of the tree: pairs of factors (b x 2 c r) and their products (b x c r).
  struct Level {
    Matrix<T> factors, sketches;
  };

  // X with rows of norm at most 1; norms: what they were divided by.
  static Matrix<T> shortened(const In<T>& X, std::span<T> norms) {
    Matrix<T> unit = X;
    for (Index i = 0; i < X.rows(); ++i) unit.row(i) /= norms[static_cast<size_t>(i)] = std::max(T(1), X.row(i).norm());
    return unit;
  }
  std::vector<Level> sketch(Context& context, const Matrix<T>& X) const {
    std::vector<Level> levels;
    for (Index count = leaves_.rows() / r_; count > 1; count /= 2) {
      Level level{Matrix<T>(X.rows(), count * r_), Matrix<T>(X.rows(), count / 2 * r_)};
      if (levels.empty())
        multiply_transposed<T>(context, X, leaves_, level.factors);
      else
        for (Index c = 0; c < count; ++c)
          multiply_transposed<T>(context, columns(levels.back().sketches, c), inner(count * r_, c),
                                 columns(level.factors, c));
      for (Index c = 0; c < count; c += 2)
        level.sketches.middleCols(c / 2 * r_, r_) =
            scale_ * level.factors.middleCols(c * r_, r_).array() * level.factors.middleCols((c + 1) * r_, r_).array();
      levels.push_back(std::move(level));
    }
    return levels;
  }
  // The c-th block of r columns.
  Out<T> columns(Matrix<T>& M, Index c) const { return {M.data() + c * r_, M.rows(), r_, M.cols()}; }
  // The c-th block of a level above the leaves that has that many columns of factors: levels of `leaves`/2, /4, ...
  // rows lie one after the other.
  In<T> inner(Index factor_columns, Index c) const {
    return row_block<T>(inner_, leaves_.rows() - 2 * factor_columns + c * r_, r_);
  }

  Index r_;
  T degree_, scale_;
  Matrix<T> leaves_, inner_;
};

// E X^1 to E X^4 of X = (g.q)(g.k) for a normal g.
std::array<double, 4> moments_of_product(const Pair& p) {
  const double ab = p.q2 * p.k2, c = p.qk, c2 = c * c;
  return {c, ab + 2 * c2, 9 * ab * c + 6 * c * c2, 9 * ab * ab + 72 * ab * c2 + 24 * c2 * c2};
}

// E of the fourth power of the mean of r independent summands with the moments m_1 to m_4.
double fourth_moment_of_mean(double r, const std::array<double, 4>& m) {
  const double sum = r * m[3] + 4 * r * (r - 1) * m[2] * m[0] + 3 * r * (r - 1) * m[1] * m[1] +
                     6 * r * (r - 1) * (r - 2) * m[1] * m[0] * m[0] +
                     r * (r - 1) * (r - 2) * (r - 3) * m[0] * m[0] * m[0] * m[0];
  return sum / (r * r * r * r);
}

// A_(degree/2) above.
double mean_of_square(Index degree, double r, const Pair& p) {
  double A = p.qk * p.qk, B = p.q2 * p.k2;
  for (Index e = 1; e < degree / 2; e *= 2) {
    const double same = (B + 2 * A) * (B + 2 * A) / r;
    A = same + (1 - 1 / r) * A * A;
    B = same + (1 - 1 / r) * B * B;
  }
  return A;
}

std::optional<KernelTheory> theory(const Params& params, Index, const EnsembleLaw&, const Head<double>*) {
  const Sizes sizes(params);
  const double r = static_cast<double>(sizes.r);
  KernelTheory theory{.target = "(q.k)^" + std::to_string(sizes.degree) + " plus the variance of the sketch's (q.k)^" +
                                std::to_string(sizes.degree / 2),
                      .mean = [=](const Pair& p) { return mean_of_square(sizes.degree, r, p); }};
  if (sizes.degree > 4) return theory;
  theory.variance = [=](const Pair& p) {
    std::array<double, 4> m = moments_of_product(p);
    for (double& moment : m) moment *= moment;  // a summand has two independent factors
    const double mean = mean_of_square(4, r, p);
    return std::max(0.0, fourth_moment_of_mean(r, m) - mean * mean);
  };
  return theory;
}

const bool registered = add(feature_map<PolySketchFeatures>({
    .text = {.name = "polysketch",
             .printed = "PolySketch",
             .summary = "the square of a sketch of (q.k)^(degree/2): weights near (q.k)^degree that are not negative",
             .formula = "phi(x) = M(x) (x) M(x), M_2e(x) = r^-1/2 (G M_e(x)) o (G' M'_e(x)), M_1(x) = x",
             .reference = "Kacham, Mirrokni and Zhong 2023, arXiv:2310.01655, Algorithm 1",
             .cost = "O(n degree r (d + r)) time, r (r + 1) / 2 features",
             .family = "sketch",
             .departure = "a product of two entries of the sketch is kept once, with the factor sqrt(2): the same "
                          "weights from half of the paper's r^2 features"},
    .parameters = {Parameter::integer("r", 32, "entries of the sketch that is squared", 1, 1 << 10).as_budget(),
                   Parameter::choice("degree", "4", "the power of q.k; its half is sketched", {"4", "8"}),
                   share_parameter()},
    .features = [](const Params& params, Index) { return symmetric_product_count(params.integer("r")); },
    .token_work =
        [](const Params& params, Index d) {
          const Sizes sizes(params);
          return Work{.flops = 2 * static_cast<double>(sizes.leaf_rows() * d + sizes.inner_rows() * sizes.r)};
        },
    .may_vanish = true,  // a token of zeros has no features
    .theory = theory,
}));

}  // namespace
}  // namespace attnbench::polysketch_map
