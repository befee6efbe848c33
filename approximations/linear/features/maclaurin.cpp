// Random Maclaurin features of exp(q.k). Kar and Karnick 2012, arXiv:1201.6530, Algorithm 1.
//   phi(x)_i = (m N_i! P(N_i))^-1/2 prod_(t <= N_i) r_it.x,   r with E r r^T = I     E[phi(q).phi(k)] = exp(q.k)
//   N geometric, P(N) = 2^-(N+1):  MSE = (2 I_0(2 (2 G)^1/2) - exp(2 q.k)) / m
//   N Poisson(rate):               MSE = (exp(rate + G/rate) - exp(2 q.k)) / m, least at rate = G^1/2
//   G = E (r.q)^2 (r.k)^2 = |q|^2|k|^2 + 2 (q.k)^2 - 2 sum_l q_l^2 k_l^2, without the last term for normal r
// methods.md A8. m features of any sign, O(n d sum N_i) time: sum N_i is m on average for a geometric N, m rate for a
// Poisson one. A token of norm s > 1 has s^(largest N) in its log scale, so that no product overflows.
#include <bit>
#include <boost/random/poisson_distribution.hpp>
#include <cassert>
#include <cmath>
#include <vector>

#include "approximations/linear/features/random_features.hpp"
#include "harness/linalg/products.hpp"

namespace attnbench::maclaurin_map {
namespace {

bool geometric(const Params& params) { return params.text("degrees") == "geometric"; }

// log(N! P(N)).
double log_weight(const Params& params, double N) {
  if (geometric(params)) return std::lgamma(N + 1) - (N + 1) * std::log(2.0);
  return N * std::log(params.real("rate")) - params.real("rate");
}

struct Drawn {
  Matrix<double> degrees;  // m x 1
  Matrix<double> vectors;  // sum of degrees x d, feature by feature
};

Drawn given(const Draw& draw, const Matrix<double>& degrees) {
  for (Index i = 0; i < degrees.rows(); ++i)
    if (degrees(i, 0) < 0 || degrees(i, 0) != std::floor(degrees(i, 0)))
      throw Misuse(draw.params.spec() + ": degree " + std::to_string(degrees(i, 0)) +
                   " of the injected state; expected whole numbers from 0 up");
  const auto* vectors = draw.injected("vectors", static_cast<Index>(degrees.sum()), draw.shape.d);
  if (!vectors) throw Misuse(draw.params.spec() + ": 'degrees' is injected without 'vectors'; give both");
  return {degrees, *vectors};
}

Drawn drawn(const Draw& draw) {
  const Index m = draw.params.integer("m"), d = draw.shape.d;
  if (const auto* degrees = draw.injected("degrees", m, 1)) return given(draw, *degrees);
  auto degree_stream = draw.streams.stream("maclaurin", "degrees", draw.head, draw.replicate);
  auto vector_stream = draw.streams.stream("maclaurin", "vectors", d, draw.head, draw.replicate);
  boost::random::poisson_distribution<int, double> poisson(draw.params.real("rate"));
  Matrix<double> degrees(m, 1);
  for (Index i = 0; i < m; ++i)  // random bits begin with exactly N zeros with probability 2^-(N+1)
    degrees(i, 0) = geometric(draw.params) ? std::countr_zero(degree_stream()) : poisson(degree_stream);
  Matrix<double> vectors = standard_normal(vector_stream, static_cast<Index>(degrees.sum()), d);
  if (draw.params.text("vectors") == "rademacher")
    vectors = (vectors.array() < 0).select(-Matrix<double>::Ones(vectors.rows(), d), 1);
  return {degrees, vectors};
}

template <class T>
class MaclaurinFeatures final : public FeatureMap<T> {
 public:
  explicit MaclaurinFeatures(const Draw& draw) : MaclaurinFeatures(draw.params, drawn(draw)) {}

  Index features() const override { return degrees_.rows(); }
  Form form() const override { return Form::values; }
  void map(Context& context, const In<T>& X, Side, Index, Out<T> block, std::span<T> log_scale) const override {
    Matrix<T> projections(X.rows(), vectors_.rows());
    multiply_transposed<T>(context, X, vectors_, projections);
    std::vector<T> powers;
    for (Index i = 0; i < X.rows(); ++i) {
      const T norm = std::max(T(1), X.row(i).norm());
      const T* factor = projections.row(i).data();
      set_powers(norm, powers);
      for (Index f = 0; f < features(); ++f) {
        T product = coefficients_(f, 0) * powers[static_cast<size_t>(degrees_(f, 0))];
        for (T t = 0; t < degrees_(f, 0); ++t) product *= *factor++ / norm;
        block(i, f) = product;
      }
      log_scale[static_cast<size_t>(i)] = largest_degree_ * std::log(norm);
    }
  }
  bool differentiable() const override { return true; }
  // Pullback of c s^-L prod_t p_t, with p = R x, L the largest degree, s = max(1, |x|); the log scale also contains s.
  void pullback(Context& context, const In<T>& X, Side, Index, const In<T>& block, const In<T>& d_block,
                std::span<const T> d_log_scale, Out<T> dX) const override {
    Matrix<T> projections(X.rows(), vectors_.rows()), d_projections(X.rows(), vectors_.rows());
    multiply_transposed<T>(context, X, vectors_, projections);
    std::vector<T> powers;
    for (Index i = 0; i < X.rows(); ++i) {
      const T norm = std::max(T(1), X.row(i).norm());
      const T* factor = projections.row(i).data();
      T* d_factor = d_projections.row(i).data();
      set_powers(norm, powers);
      for (Index f = 0; f < features(); ++f) {
        const auto N = static_cast<Index>(degrees_(f, 0));
        // Multiplies the factors before each one, then those after it: dividing the product fails if a factor is 0.
        T before = d_block(i, f) * coefficients_(f, 0) * powers[static_cast<size_t>(N)] / norm;
        for (Index t = 0; t < N; ++t) {
          d_factor[t] = before;
          before *= factor[t] / norm;
        }
        T after = 1;
        for (Index t = N; t-- > 0;) {
          d_factor[t] *= after;
          after *= factor[t] / norm;
        }
        factor += N;
        d_factor += N;
      }
    }
    multiply<T>(context, d_projections, vectors_, dX);
    for (Index i = 0; i < X.rows(); ++i) {
      const T norm2 = X.row(i).squaredNorm();
      if (norm2 <= 1) continue;
      const T d_log_norm = d_log_scale[static_cast<size_t>(i)] - (d_block.row(i).array() * block.row(i).array()).sum();
      dX.row(i) += largest_degree_ * d_log_norm / norm2 * X.row(i);
    }
  }
  Tensors state() const override {
    return {{"degrees", degrees_.template cast<double>()}, {"vectors", vectors_.template cast<double>()}};
  }

 private:
  MaclaurinFeatures(const Params& params, const Drawn& drawn)
      : degrees_(drawn.degrees.cast<T>()),
        vectors_(drawn.vectors.cast<T>()),
        coefficients_(drawn.degrees.rows(), 1),
        largest_degree_(degrees_.maxCoeff()) {
    const double log_m = std::log(static_cast<double>(drawn.degrees.rows()));
    for (Index f = 0; f < coefficients_.rows(); ++f)
      coefficients_(f, 0) = static_cast<T>(std::exp(-0.5 * (log_m + log_weight(params, drawn.degrees(f, 0)))));
  }

  // powers[N] = norm^(N - L), L the largest degree. (std::pow for each feature took three fifths of the time.)
  void set_powers(T norm, std::vector<T>& powers) const {
    powers.resize(static_cast<size_t>(largest_degree_) + 1);
    powers.back() = 1;
    for (size_t N = powers.size() - 1; N-- > 0;) powers[N] = powers[N + 1] / norm;
  }

  Matrix<T> degrees_;       // m x 1
  Matrix<T> vectors_;       // sum of degrees x d
  Matrix<T> coefficients_;  // m x 1
  T largest_degree_;
};

// E (r.q)^2 (r.k)^2.
double second_moment(const Pair& p, bool rademacher) {
  double G = p.q2 * p.k2 + 2 * p.qk * p.qk;
  if (rademacher) {
    assert(std::ssize(p.q) == p.d && std::ssize(p.k) == p.d);
    for (size_t l = 0; l < p.q.size(); ++l) G -= 2 * p.q[l] * p.q[l] * p.k[l] * p.k[l];
  }
  return std::max(0.0, G);  // the mean of a square, below 0 by rounding only
}

std::optional<KernelTheory> theory(const Params& params, Index, const EnsembleLaw&, const Head<double>*) {
  const bool rademacher = params.text("vectors") == "rademacher", geometric_degrees = geometric(params);
  const double rate = params.real("rate"), m = static_cast<double>(params.integer("m"));
  return KernelTheory{.target = "exp(q.k)",
                      .mean = [](const Pair& p) { return p.softmax(); },
                      .variance =
                          [=](const Pair& p) {
                            const double G = second_moment(p, rademacher), mean = p.softmax();
                            const double second = geometric_degrees ? 2 * std::cyl_bessel_i(0.0, 2 * std::sqrt(2 * G))
                                                                    : std::exp(rate + G / rate);
                            return (second - mean * mean) / m;
                          }};
}

const bool registered = add(feature_map<MaclaurinFeatures>({
    .text = {.name = "maclaurin",
             .printed = "Maclaurin",
             .summary = "random Maclaurin features, unbiased for exp(q.k), any sign",
             .formula = "phi(x)_i = (m N_i! P(N_i))^-1/2 prod_(t <= N_i) r_it.x",
             .reference = "Kar and Karnick 2012, arXiv:1201.6530, Algorithm 1",
             .cost = "O(n m d) time for a mean degree of 1, m features",
             .family = "sketch"},
    .parameters = {Parameter::integer("m", 256, "number of features", 1, 1 << 20).as_budget(),
                   Parameter::choice("degrees", "geometric", "law of a feature's degree N: 2^-(N+1), or Poisson",
                                     {"geometric", "poisson"}),
                   Parameter::real("rate", 1, "mean of the Poisson law", 1e-3, 50),
                   Parameter::choice("vectors", "rademacher", "law of the entries of r: signs, or standard normal",
                                     {"rademacher", "gaussian"}),
                   share_parameter()},
    .features = [](const Params& params, Index) { return params.integer("m"); },
    .token_work =
        [](const Params& params, Index d) {
          const double degree = geometric(params) ? 1 : params.real("rate");
          return Work{.flops = 2 * static_cast<double>(params.integer("m") * d) * degree};
        },
    .may_vanish = true,  // r.x can be 0 for a vector r of signs
    .theory = theory,
}));

}  // namespace
}  // namespace attnbench::maclaurin_map
