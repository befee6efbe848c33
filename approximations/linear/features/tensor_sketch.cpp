// TensorSketch features of (q.k)^p, and of exp(q.k) by its Taylor series. Pham and Pagh 2013; Charikar, Chen and
// Farach-Colton 2002 for CountSketch, which is p = 1.
//   C_t(x)_b = sum_(l: h_t(l) = b) s_t(l) x_l,   TS_p = C_1 * ... * C_p in circular convolution
//   power:  phi = TS_degree,   taylor:  phi = [1; TS_1; ...; TS_degree / degree!^1/2]     E TS_p(q).TS_p(k) = (q.k)^p
// with independent hashes h_t and signs s_t for each factor of each term.                                methods.md A9
//   p = 1: MSE = (u + w) / m      p = 2: MSE = (2 (q.k)^2 (u + w) + u^2 + w^2) / m + 2 g u w / m^2
// for m buckets, S = sum_l q_l^2 k_l^2, u = |q|^2|k|^2 - S, w = (q.k)^2 - S, and g = 1 for odd m, 2 for even m.
//
// A convolution with C_t adds d shifted copies: d m steps at every m, without a Fourier transform. A token of norm
// s > 1 has s^degree in its log scale, so that no power overflows.
#include <cassert>
#include <cmath>

#include "approximations/linear/features/random_features.hpp"

namespace attnbench::tensor_sketch_map {
namespace {

bool taylor(const Params& params) { return params.text("series") == "taylor"; }

// The degrees of the terms that are sketched.
std::vector<Index> degrees(const Params& params) {
  const Index degree = params.integer("degree");
  if (!taylor(params)) return {degree};
  std::vector<Index> all;
  for (Index p = 1; p <= degree; ++p) all.push_back(p);
  return all;
}

Index factors(const Params& params) {
  Index count = 0;
  for (const Index p : degrees(params)) count += p;
  return count;
}

Index features(const Params& params) {
  const Index sketched = std::ssize(degrees(params)) * params.integer("m");
  return taylor(params) ? 1 + sketched : sketched;
}

// One row per factor; the factors of each term are consecutive.
struct Hashes {
  Matrix<double> buckets, signs;
};

Hashes drawn(const Draw& draw) {
  const Index d = draw.shape.d, m = draw.params.integer("m"), rows = factors(draw.params);
  const auto *buckets = draw.injected("buckets", rows, d), *signs = draw.injected("signs", rows, d);
  if ((buckets == nullptr) != (signs == nullptr))
    throw Misuse(draw.params.spec() + ": of the injected tensors 'buckets' and 'signs' one is missing; give both");
  if (buckets) {
    const auto h = buckets->array();
    if (!(h >= 0 && h < static_cast<double>(m) && h == h.floor()).all())
      throw Misuse(draw.params.spec() + ": an injected value is not a bucket; expected whole numbers from 0 to " +
                   std::to_string(m - 1));
    return {*buckets, *signs};
  }
  auto generator = draw.streams.stream("tensor-sketch", m, d, draw.head, draw.replicate);
  Hashes hashes{Matrix<double>(rows, d), Matrix<double>(rows, d)};
  for (Index i = 0; i < rows * d; ++i) {
    hashes.buckets.data()[i] = static_cast<double>(generator() % static_cast<std::uint64_t>(m));  // uniform to 2^-44
    hashes.signs.data()[i] = generator() % 2 == 0 ? 1 : -1;
  }
  return hashes;
}

template <class T>
class TensorSketchFeatures final : public FeatureMap<T> {
 public:
  explicit TensorSketchFeatures(const Draw& draw)
      : m_(draw.params.integer("m")),
        degrees_(degrees(draw.params)),
        taylor_(taylor(draw.params)),
        hashes_(drawn(draw)),
        buckets_(hashes_.buckets.cast<Index>()),
        signs_(hashes_.signs.cast<T>()) {}

  Index features() const override { return std::ssize(degrees_) * m_ + (taylor_ ? 1 : 0); }
  Form form() const override { return Form::values; }
  void map(Context& context, const In<T>& X, Side, Index, Out<T> block, std::span<T> log_scale) const override {
    const T highest = static_cast<T>(degrees_.back());
    Matrix<T> scratch(1, m_);
    for (Index i = 0; i < X.rows(); ++i) {
      const T norm = std::max(T(1), X.row(i).norm());
      const Matrix<T> x = X.row(i) / norm;
      Index factor = 0, first = 0;
      if (taylor_) block(i, first++) = std::pow(norm, -highest);
      for (const Index p : degrees_) {
        auto sketch = block.row(i).segment(first, m_);
        sketch.setZero();
        sketch[0] = coefficient(p, norm);
        for (Index t = 0; t < p; ++t, ++factor) {
          scratch = sketch;
          convolve(factor, x, scratch.row(0), sketch);
        }
        first += m_;
      }
      log_scale[static_cast<size_t>(i)] = highest * std::log(norm);
    }
    context.work.flops += 2.0 * static_cast<double>(X.rows() * hashes_.buckets.size() * m_);
  }
  bool differentiable() const override { return true; }
  // Backpropagates through the convolutions. s = max(1, |x|) enters every feature as s^-degree, and the log scale.
  void pullback(Context& context, const In<T>& X, Side, Index, const In<T>& block, const In<T>& d_block,
                std::span<const T> d_log_scale, Out<T> dX) const override {
    const T highest = static_cast<T>(degrees_.back());
    Matrix<T> partial(degrees_.back() + 1, m_), d_sketch(1, m_), d_before(1, m_);
    for (Index i = 0; i < X.rows(); ++i) {
      const T norm = std::max(T(1), X.row(i).norm());
      const Matrix<T> x = X.row(i) / norm;
      Index factor = 0, first = taylor_ ? 1 : 0;
      auto dx = dX.row(i);
      dx.setZero();
      for (const Index p : degrees_) {
        partial.row(0).setZero();
        partial(0, 0) = coefficient(p, norm);
        for (Index t = 0; t < p; ++t) convolve(factor + t, x, partial.row(t), partial.row(t + 1));
        d_sketch = d_block.row(i).segment(first, m_);
        for (Index t = p; t-- > 0;) {
          d_before.setZero();
          for (Index l = 0; l < x.cols(); ++l) {
            const Index shift = buckets_(factor + t, l), rest = m_ - shift;
            const T sign = signs_(factor + t, l);
            dx[l] += sign * ((d_sketch.rightCols(rest).array() * partial.row(t).head(rest).array()).sum() +
                             (d_sketch.leftCols(shift).array() * partial.row(t).tail(shift).array()).sum());
            d_before.leftCols(rest) += sign * x(0, l) * d_sketch.rightCols(rest);
            d_before.rightCols(shift) += sign * x(0, l) * d_sketch.leftCols(shift);
          }
          d_sketch.swap(d_before);
        }
        factor += p;
        first += m_;
      }
      dx /= norm;
      if (norm <= 1) continue;
      const T d_log_norm = d_log_scale[static_cast<size_t>(i)] - (d_block.row(i).array() * block.row(i).array()).sum();
      dx += highest * d_log_norm / (norm * norm) * X.row(i);
    }
    context.work.flops += 6.0 * static_cast<double>(X.rows() * hashes_.buckets.size() * m_);
  }
  Tensors state() const override { return {{"buckets", hashes_.buckets}, {"signs", hashes_.signs}}; }

 private:
  // The coefficient of the term of degree p, divided by s^degree.
  T coefficient(Index p, T norm) const {
    if (!taylor_) return 1;
    const T degree = static_cast<T>(p), highest = static_cast<T>(degrees_.back());
    return std::pow(norm, degree - highest) / std::sqrt(std::tgamma(degree + 1));
  }
  // after = before * C_factor(x), both 1 x m.
  template <class Before, class After>
  void convolve(Index factor, const Matrix<T>& x, const Before& before, After&& after) const {
    after.setZero();
    for (Index l = 0; l < x.cols(); ++l) {
      const Index shift = buckets_(factor, l);
      const T entry = signs_(factor, l) * x(0, l);
      after.tail(m_ - shift) += entry * before.head(m_ - shift);
      after.head(shift) += entry * before.tail(shift);
    }
  }

  Index m_;
  std::vector<Index> degrees_;
  bool taylor_;
  Hashes hashes_;
  Matrix<Index> buckets_;  // factors x d
  Matrix<T> signs_;
};

// The variance of TS_p(q).TS_p(k), for p <= 2.
double sketch_variance(Index degree, const Pair& p, Index buckets) {
  assert(degree <= 2 && std::ssize(p.q) == p.d && std::ssize(p.k) == p.d);
  double S = 0;
  for (size_t l = 0; l < p.q.size(); ++l) S += p.q[l] * p.q[l] * p.k[l] * p.k[l];
  const double u = p.q2 * p.k2 - S, w = p.qk * p.qk - S, m = static_cast<double>(buckets);
  if (degree == 1) return (u + w) / m;
  const double g = buckets % 2 == 0 ? 2 : 1;
  return (2 * p.qk * p.qk * (u + w) + u * u + w * w) / m + 2 * g * u * w / (m * m);
}

std::optional<KernelTheory> theory(const Params& params, Index, const EnsembleLaw&, const Head<double>*) {
  const Index degree = params.integer("degree"), m = params.integer("m");
  const bool series = taylor(params);
  const auto terms = degrees(params);
  // The coefficient of (q.k)^p.
  const auto weight = [=](Index p) { return series ? 1 / std::tgamma(static_cast<double>(p) + 1) : 1.0; };
  KernelTheory theory{
      .target = series ? "sum_(p <= " + std::to_string(degree) + ") (q.k)^p / p!" : "(q.k)^" + std::to_string(degree),
      .mean = [=](const Pair& p) {
        double sum = series ? 1 : 0;
        for (const Index power : terms) sum += weight(power) * std::pow(p.qk, power);
        return sum;
      }};
  if (degree > 2) return theory;
  theory.variance = [=](const Pair& p) {
    double sum = 0;
    for (const Index power : terms) sum += weight(power) * weight(power) * sketch_variance(power, p, m);
    return std::max(0.0, sum);  // at d = 1 the variance is 0, and rounding may make the sum negative
  };
  return theory;
}

const bool registered = add(feature_map<TensorSketchFeatures>({
    .text = {.name = "tensor-sketch",
             .printed = "TensorSketch",
             .summary = "TensorSketch of the Taylor series of exp(q.k), or of one power of q.k, any sign",
             .formula = "phi(x) = [1; TS_1(x); ...; TS_p(x) / p!^1/2], TS_p = p CountSketches convolved",
             .reference = "Pham and Pagh 2013, Fast and scalable polynomial kernels via explicit feature maps",
             .cost = "O(n degree^2 m d) time, 1 + degree m features (power: O(n degree m d), m)",
             .family = "sketch"},
    .parameters = {Parameter::integer("m", 256, "buckets of a sketch", 1, 1 << 20).as_budget(),
                   Parameter::integer("degree", 4, "the highest power of q.k", 1, 16),
                   Parameter::choice("series", "taylor", "all powers of the exponential's series, or the highest alone",
                                     {"taylor", "power"}),
                   share_parameter()},
    .features = [](const Params& params, Index) { return features(params); },
    .token_work =
        [](const Params& params, Index d) {
          return Work{.flops = 2 * static_cast<double>(factors(params) * d * params.integer("m"))};
        },
    .may_vanish = true,  // power: entries of x that share a bucket may cancel
    .theory = theory,
}));

}  // namespace
}  // namespace attnbench::tensor_sketch_map
