#include "harness/measures/randomised_spectrum.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

#include "harness/linalg/factorisations.hpp"
#include "harness/linalg/products.hpp"

namespace attnbench {

namespace {

// The functions of x = y^2 whose traces are wanted, in terms of y = sigma / sigma_1.
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

// Between two quadratures of the same measure.
Brackets between(const Quadrature& gauss, const Quadrature& radau, double scale, double mass) {
  Brackets brackets;
  for (size_t f = 0; f < functions; ++f) {
    const auto sum = [&](const Quadrature& rule) {
      double total = 0;
      for (size_t i = 0; i < rule.nodes.size(); ++i) total += rule.weights[i] * value(f, rule.nodes[i] / scale);
      return mass * total;
    };
    const auto [low, high] = std::minmax(sum(gauss), sum(radau));
    brackets[f] = {low, high};
  }
  return brackets;
}

// Golub-Kahan bidiagonalisation from every column of Z at once, A^T A being one Lanczos recurrence for each. Vectors
// are not made orthogonal again: copies of nodes that come of it share one's weight.
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
    // With the last beta and a zero below it the matrix is singular: a node at 0, and the recurrence's own otherwise.
    auto extended = diagonal;
    extended.push_back(0);
    const auto radau = bidiagonal_quadrature(std::move(extended), above);
    above.pop_back();
    return between(bidiagonal_quadrature(std::move(diagonal), std::move(above)), radau, scale, masses_(column));
  }

 private:
  using Numbers = Eigen::Array<double, 1, Eigen::Dynamic>;

  // Columns become unit vectors; their norms. A column of zeros stays one: that recurrence has ended.
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

// The traces over the span of V, where one step of each recurrence is known: |A v| = sigma and |A^T A v|^2.
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

struct Trace {
  Moments low, high;  // over probes, what lies along V included
  double middle() const { return (low.mean + high.mean) / 2; }
  double width() const { return high.mean - low.mean; }
  double standard_error() const { return std::max(low.standard_error(), high.standard_error()); }
};

Interval cut(Interval interval, double least, double most) {
  return {std::clamp(interval.low, least, most), std::clamp(interval.high, least, most)};
}

}  // namespace

SpectrumEstimate estimate_spectrum(const LinearMap& A, const TopSingularValues& top, const Matrix<double>& probes,
                                   double confidence, Context& context) {
  assert(probes.rows() == A.columns && probes.cols() >= 2 && !top.sigma.empty());
  SpectrumEstimate estimate;
  const double scale = top.sigma.front() + top.bounds.front();
  if (A.frobenius_squared == 0 || scale == 0) return estimate;
  constexpr Index first_steps = 8, most_steps = 96;
  constexpr double narrow = 0.2;  // a bracket beside the standard error of the probes

  Matrix<double> Z = probes, along = Matrix<double>::Zero(top.V.cols(), Z.cols());
  transposed_multiply_add<double>(context, top.V, Z, along);
  along *= -1;
  multiply_add<double>(context, top.V, along, Z);
  Recurrences recurrences(A, std::move(Z), context);
  const Brackets fixed = traces_along(top, scale);
  std::array<Trace, functions> traces;
  std::vector<Brackets> samples(static_cast<size_t>(probes.cols()));
  const auto least = static_cast<double>(std::min(A.rows, A.columns));
  bool done = false;
  for (Index steps = first_steps; !done; steps = std::min(most_steps, steps * 3 / 2)) {
    while (recurrences.steps() < steps) recurrences.step();
    traces = {};
    for (Index c = 0; c < probes.cols(); ++c) {
      Brackets& sample = samples[static_cast<size_t>(c)] = recurrences.brackets(c, scale);
      for (size_t f = 0; f < functions; ++f) {
        sample[f].low += fixed[f].low;
        sample[f].high += fixed[f].high;
        traces[f].low.add(sample[f].low);
        traces[f].high.add(sample[f].high);
      }
    }
    done = steps == most_steps || std::all_of(traces.begin(), traces.end(), [&](const Trace& t) {
             return t.width() <= narrow * t.standard_error() || t.width() <= 1e-6 * std::abs(t.middle());
           });
  }
  estimate.steps = recurrences.steps();

  const double squares = A.frobenius_squared / (scale * scale), frobenius = std::sqrt(A.frobenius_squared);
  const auto interval_of = [&](const Trace& trace) {
    return Interval{mean_interval(trace.low, confidence).low, mean_interval(trace.high, confidence).high};
  };
  const auto exp_of = [&](double entropy, Interval interval) {
    return Bracketed{std::clamp(std::exp(entropy), 1.0, least),
                     cut({std::exp(interval.low), std::exp(interval.high)}, 1, least)};
  };

  const Interval roots = interval_of(traces[root]);
  estimate.trace_norm = {std::clamp(scale * traces[root].middle(), frobenius, std::sqrt(least) * frobenius),
                         cut({scale * roots.low, scale * roots.high}, frobenius, std::sqrt(least) * frobenius)};

  const Interval fourths = interval_of(traces[fourth]);
  const auto participation = [&](double of_fourth) {
    return of_fourth > 0 ? std::clamp(squares * squares / of_fourth, 1.0, least) : least;
  };
  estimate.participation_ratio = {participation(traces[fourth].middle()),
                                  {participation(fourths.high), participation(fourths.low)}};

  // H(sigma^2) = log s - sum y^2 log y^2 / s, s = sum y^2, which is known.
  const Interval logs = interval_of(traces[square_log]);
  const auto squared_entropy = [&](double of_logs) { return std::log(squares) - of_logs / squares; };
  estimate.effective_rank_squared =
      exp_of(squared_entropy(traces[square_log].middle()), {squared_entropy(logs.high), squared_entropy(logs.low)});

  // H(sigma) = log s - t / s for s = sum y and t = sum y log y, which the same probes estimate: the spread is that of
  // its linear part, the width that of the corners of the two brackets.
  const double s = traces[root].middle(), t = traces[root_log].middle();
  const auto entropy = [](double of_root, double of_root_log) { return std::log(of_root) - of_root_log / of_root; };
  Moments linear;
  for (const Brackets& sample : samples) {
    const double of_root = (sample[root].low + sample[root].high) / 2 - s,
                 of_root_log = (sample[root_log].low + sample[root_log].high) / 2 - t;
    linear.add(of_root * (1 + t / s) / s - of_root_log / s);
  }
  const Interval spread = mean_interval(linear, confidence);
  const double half = (spread.high - spread.low) / 2;
  const auto corners = std::minmax({entropy(traces[root].low.mean, traces[root_log].low.mean),
                                    entropy(traces[root].low.mean, traces[root_log].high.mean),
                                    entropy(traces[root].high.mean, traces[root_log].low.mean),
                                    entropy(traces[root].high.mean, traces[root_log].high.mean)});
  estimate.effective_rank = exp_of(entropy(s, t), {corners.first - half, corners.second + half});
  return estimate;
}

Matrix<double> random_signs(Generator& generator, Index n, Index count) {
  Matrix<double> signs(n, count);
  for (Index i = 0; i < signs.size(); ++i) signs.data()[i] = (generator() >> 63) != 0 ? 1 : -1;
  return signs;
}

}  // namespace attnbench
