#include "harness/measures/randomised_spectrum.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <limits>

#include "harness/linalg/factorisations.hpp"
#include "harness/linalg/products.hpp"

namespace attnbench {

namespace {

// The functions of x = y^2 whose traces we estimate, in terms of y = sigma / sigma_1.
enum Function : size_t { root, root_log, square_log, fourth };
constexpr size_t functions = 4;

double value(size_t function, double y) {
  switch (function) {
    case root:
      return y;
    case root_log:
      return y > 0 ? y * std::log(y) : 0;
    case square_log:
      return y > 0 ? 2 * y * y * std::log(y) : 0;
    default:
      return y * y * y * y;
  }
}

using Brackets = std::array<Interval, functions>;  // of z^T f(A^T A / sigma_1^2) z, for each f

// Brackets between two quadratures of the same measure.
Brackets between(const Quadrature& gauss, const Quadrature& radau, double scale, double mass) {
  Brackets brackets;
  for (size_t f = 0; f < functions; ++f) {
    const auto sum = [&](const Quadrature& rule) {
      double total = 0;
      for (size_t i = 0; i < rule.nodes.size(); ++i) total += rule.weights[i] * value(f, rule.nodes[i] / scale);
      return mass * total;
    };
    const auto [low, high] = std::minmax({sum(gauss), sum(radau)});
    brackets[f] = {low, high};
  }
  return brackets;
}

// Golub-Kahan bidiagonalisation from every column of Z at once: A^T A gives one Lanczos recurrence per column. Vectors
// are not reorthogonalised; the copies of nodes that this causes share one weight.
class Recurrences {
 public:
  Recurrences(const LinearMap& A, Matrix<double> Z, Context& context)
      : A_(A), context_(context), v_(std::move(Z)), u_(Matrix<double>::Zero(A.rows, v_.cols())) {
    masses_ = normalise(v_).square();
    beta_ = Numbers::Zero(v_.cols());
  }

  void step() {
    Matrix<double> next(A_.rows, v_.cols());
    A_.times(context_, v_, next);
    next.array() -= u_.array().rowwise() * beta_;
    const Numbers alpha = normalise(next);
    u_.swap(next);
    Matrix<double> right(A_.columns, v_.cols());
    A_.transposed_times(context_, u_, right);
    right.array() -= v_.array().rowwise() * alpha;
    beta_ = normalise(right);
    v_.swap(right);
    alphas_.push_back(alpha);
    betas_.push_back(beta_);
  }

  Index steps() const { return static_cast<Index>(alphas_.size()); }

  Brackets brackets(Index column, double scale) const {
    std::vector<double> diagonal, above;
    for (size_t j = 0; j < alphas_.size(); ++j) {
      diagonal.push_back(alphas_[j](column));
      above.push_back(betas_[j](column));
    }
    // With the last beta and a zero below it the matrix is singular and has a node at 0; otherwise the nodes are the
    // recurrence's own.
    auto extended = diagonal;
    extended.push_back(0);
    const auto radau = bidiagonal_quadrature(std::move(extended), above);
    above.pop_back();
    return between(bidiagonal_quadrature(std::move(diagonal), std::move(above)), radau, scale, masses_(column));
  }

 private:
  using Numbers = Eigen::Array<double, 1, Eigen::Dynamic>;

  // Scales columns to unit vectors and returns their norms. A column of zeros stays zero: its recurrence has ended.
  static Numbers normalise(Matrix<double>& X) {
    const Numbers norms = X.colwise().norm();
    for (Index c = 0; c < X.cols(); ++c)
      if (norms(c) > 0) X.col(c) /= norms(c);
    return norms;
  }

  const LinearMap& A_;
  Context& context_;
  Matrix<double> v_, u_;
  Numbers masses_, beta_;
  std::vector<Numbers> alphas_, betas_;
};

// The traces over the span of V, where we know one step of each recurrence: |A v| = sigma and |A^T A v|^2.
Brackets traces_along(const TopSingularValues& top, double scale) {
  Brackets sum{};
  for (size_t i = 0; i < top.sigma.size(); ++i) {
    const double sigma = top.sigma[i], square = sigma * sigma;
    if (sigma == 0) continue;
    const double far = std::max(1.0, top.curvatures[i] / (square * square));  // 1 where v is exact
    const Brackets own = between({{sigma}, {1}}, {{sigma * std::sqrt(far), 0}, {1 / far, 1 - 1 / far}}, scale, 1);
    for (size_t f = 0; f < functions; ++f) {
      sum[f].low += own[f].low;
      sum[f].high += own[f].high;
    }
  }
  return sum;
}

// Samples of z^T f z plus the part along V, and their means over probes.
struct Traces {
  std::vector<Brackets> samples;
  std::array<Moments, functions> low = {}, high = {};

  double middle(size_t f) const { return (low[f].mean + high[f].mean) / 2; }
  Interval interval(size_t f, double error_rate) const {
    return {mean_interval(low[f], error_rate).low, mean_interval(high[f], error_rate).high};
  }
};

Traces traces_of(const Recurrences& recurrences, Index probes, const Brackets& along, double scale) {
  Traces traces;
  for (Index c = 0; c < probes; ++c) {
    Brackets sample = recurrences.brackets(c, scale);
    for (size_t f = 0; f < functions; ++f) {
      sample[f].low += along[f].low;
      sample[f].high += along[f].high;
      traces.low[f].add(sample[f].low);
      traces.high[f].add(sample[f].high);
    }
    traces.samples.push_back(sample);
  }
  return traces;
}

// Whether further steps would narrow nothing that matters: the brackets are narrow compared with the standard errors,
// or negligible.
bool settled(const Traces& traces, const Brackets& along) {
  constexpr double narrow = 0.5, negligible = 1e-6;
  for (size_t f = 0; f < functions; ++f) {
    const double width = traces.high[f].mean - traces.low[f].mean - (along[f].high - along[f].low);
    if (width > narrow * traces.low[f].standard_error() && width > negligible * std::abs(traces.middle(f)))
      return false;
  }
  return true;
}

// H(sigma) = log s - t / s for s = sum y and t = sum y log y, which the same probes estimate. The spread is that of the
// linear part of H; the width spans the corners of the two brackets.
Interval entropy_interval(const Traces& traces, double error_rate) {
  const double s = traces.middle(root), t = traces.middle(root_log);
  Moments linear;
  for (const Brackets& sample : traces.samples) {
    const double of_root = (sample[root].low + sample[root].high) / 2 - s,
                 of_root_log = (sample[root_log].low + sample[root_log].high) / 2 - t;
    linear.add(of_root * (1 + t / s) / s - of_root_log / s);
  }
  Interval widest{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
  for (const double x : {traces.low[root].mean, traces.high[root].mean})
    for (const double y : {traces.low[root_log].mean, traces.high[root_log].mean}) {
      widest.low = std::min(widest.low, std::log(x) - y / x);
      widest.high = std::max(widest.high, std::log(x) - y / x);
    }
  const Interval spread = mean_interval(linear, error_rate);
  return {widest.low + spread.low - linear.mean, widest.high + spread.high - linear.mean};
}

}  // namespace

SpectrumEstimate estimate_spectrum(const LinearMap& A, const TopSingularValues& top, const Matrix<double>& probes,
                                   double error_rate, Context& context) {
  assert(probes.rows() == A.columns && probes.cols() >= 2 && !top.sigma.empty());
  SpectrumEstimate estimate;
  if (A.frobenius_squared == 0) return estimate;
  constexpr Index first_steps = 8, most_steps = 64;
  const double scale = top.sigma.front() + top.bounds.front();

  Matrix<double> Z = probes, along_V = Matrix<double>::Zero(top.V.cols(), Z.cols());
  transposed_multiply_add<double>(context, top.V, Z, along_V);
  along_V *= -1;
  multiply_add<double>(context, top.V, along_V, Z);
  const Brackets along = traces_along(top, scale);
  Recurrences recurrences(A, std::move(Z), context);
  Traces traces;
  for (Index steps = first_steps; recurrences.steps() < most_steps; steps = std::min(most_steps, steps * 3 / 2)) {
    while (recurrences.steps() < steps) recurrences.step();
    traces = traces_of(recurrences, probes.cols(), along, scale);
    if (settled(traces, along)) break;
  }
  estimate.steps = recurrences.steps();

  const auto least = static_cast<double>(std::min(A.rows, A.columns));
  const double frobenius = std::sqrt(A.frobenius_squared), squares = A.frobenius_squared / (scale * scale);
  const auto bracketed = [](double low_end, double value, Interval interval, double high_end) {
    const auto cut = [&](double x) { return std::clamp(x, low_end, high_end); };
    return Bracketed{cut(value), {cut(interval.low), cut(interval.high)}};
  };
  const Interval roots = traces.interval(root, error_rate);
  estimate.trace_norm = bracketed(frobenius, scale * traces.middle(root), {scale * roots.low, scale * roots.high},
                                  std::sqrt(least) * frobenius);

  const Interval fourths = traces.interval(fourth, error_rate);
  const auto participation = [&](double sum) { return squares * squares / std::max(sum, squares * squares / least); };
  estimate.participation_ratio = bracketed(1, participation(traces.middle(fourth)),
                                           {participation(fourths.high), participation(fourths.low)}, least);

  // H(sigma^2) = log s - sum y^2 log y^2 / s for s = sum y^2, which is known exactly.
  const Interval logs = traces.interval(square_log, error_rate);
  const auto exp_squared = [&](double sum) { return squares * std::exp(-sum / squares); };
  estimate.effective_rank_squared =
      bracketed(1, exp_squared(traces.middle(square_log)), {exp_squared(logs.high), exp_squared(logs.low)}, least);

  const double s = traces.middle(root), t = traces.middle(root_log);
  const Interval entropy = entropy_interval(traces, error_rate);
  estimate.effective_rank = bracketed(1, s * std::exp(-t / s), {std::exp(entropy.low), std::exp(entropy.high)}, least);
  return estimate;
}

Matrix<double> random_signs(Generator& generator, Index n, Index count) {
  Matrix<double> signs(n, count);
  for (Index i = 0; i < signs.size(); ++i) signs.data()[i] = (generator() >> 63) != 0 ? 1 : -1;
  return signs;
}

}  // namespace attnbench
