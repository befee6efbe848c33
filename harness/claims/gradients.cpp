// A hand-written backward pass against central differences of attend, and float's against double's.
#include <fmt/format.h>

#include <cmath>

#include "harness/claims/precision.hpp"
#include "harness/claims/structural.hpp"
#include "harness/core/torch_place.hpp"

namespace attnbench {

namespace {

constexpr const char* claim = "gradients";

Matrix<double> normal(std::uint64_t seed, const char* what, Index rows, Index columns) {
  Generator generator = Streams(seed).stream("check", "gradients", what, rows, columns);
  return standard_normal(generator, rows, columns).cast<float>().cast<double>();
}

template <class T>
HeadData<T> backward(const Approximation<T>& method, const HeadData<T>& head, Mask mask, const Matrix<T>& G) {
  const auto& pass = *method.differentiable();
  Context context;
  Matrix<T> out(head.Q.rows(), head.V.cols());
  std::vector<T> saved;
  pass.forward(head.view(), mask, context, out, saved);
  const auto empty = [](const Matrix<T>& X) {
    return Matrix<T>::Constant(X.rows(), X.cols(), std::numeric_limits<T>::quiet_NaN());
  };
  HeadData<T> gradients{empty(head.Q), empty(head.K), empty(head.V)};
  pass.backward(head.view(), mask, out, saved, G, context, {gradients.Q, gradients.K, gradients.V});
  return gradients;
}

// Differences err by h^2 and by rounding over h: 1e-10 and 1e-11, times derivatives of a few units.
constexpr double step = 1e-5, difference_tolerance = 1e-7;
// The central difference of <G, out> along a direction.
double difference_along(const Approximation<double>& method, const Probe& one, const Matrix<double>& G,
                        Matrix<double> HeadData<double>::*part, const Matrix<double>& direction, double h) {
  HeadData<double> up = one.head, down = one.head;
  up.*part += h * direction;
  down.*part -= h * direction;
  const Matrix<double> moved = attended(method, up, one.shape.mask) - attended(method, down, one.shape.mask);
  return (G.array() * moved.array()).sum() / (2 * h);
}

// Along a direction in all tokens at once or, where attend has a kink or a jump on the way, in each eighth of them.
ClaimResults compare_differences(const Approximation<double>& method, const Probe& one, const Matrix<double>& G,
                                 const HeadData<double>& got, std::uint64_t seed) {
  constexpr Index parts = 8;
  ClaimResults results;
  const auto compare = [&](const char* name, Matrix<double> HeadData<double>::*part) {
    const Matrix<double>& gradient = got.*part;
    const Matrix<double> whole = normal(seed, name, gradient.rows(), gradient.cols());
    Index left_out = 0;
    double worst = 0;
    // Compares along a direction, unless there is a kink: half the step then gives another difference.
    const auto smooth = [&](const Matrix<double>& direction) {
      const double want = difference_along(method, one, G, part, direction, step);
      const double closer = difference_along(method, one, G, part, direction, step / 2);
      const double size = gradient.norm() * direction.norm() + G.norm();
      if (size == 0) return true;
      if (std::abs(want - closer) > difference_tolerance / 2 * size) return false;
      worst = worse(worst, std::abs((gradient.array() * direction.array()).sum() - want) / size);
      return true;
    };
    if (!smooth(whole))
      for (Index p = 0; p < parts; ++p) {
        Matrix<double> direction = Matrix<double>::Zero(whole.rows(), whole.cols());
        for (Index i = p; i < whole.rows(); i += parts) direction.row(i) = whole.row(i);
        left_out += !smooth(direction);
      }
    std::string tested = fmt::format("along a direction of {}, {}", name, one.name());
    if (left_out > 0) tested += fmt::format(", {} of {} parts with a kink left out", left_out, parts);
    results.push_back(left_out == parts ? skipped(claim, tested)
                                        : compared(claim, std::move(tested), worst, difference_tolerance));
  };
  compare("Q", &HeadData<double>::Q);
  compare("K", &HeadData<double>::K);
  compare("V", &HeadData<double>::V);
  return results;
}

}  // namespace

ClaimResults test_gradients(const Subject& subject, const Probes& probes, std::uint64_t seed) {
  ClaimResults results;
  for (const Probe& one : probes) {
    if (one.shape.nk > 600) continue;
    const Drawing drawing(subject, subject.params, one.shape, seed);
    const auto method = drawing.draw<double>(0);
    if (!method->differentiable()) return {skipped(claim, "it offers no backward pass")};
    const bool non_negative = subject.claims(subject.params, one.shape).non_negative;
    const auto condition = row_conditions(*method, one, non_negative, seed);
    // The loss leaves out rows whose normaliser cancels: their derivatives grow with the square of the condition.
    Matrix<double> G = normal(seed, "G", one.shape.nq, one.shape.dv);
    for (Index i = 0; i < G.rows(); ++i)
      if (condition[static_cast<size_t>(i)] > 10) G.row(i).setZero();
    const HeadData<double> got = backward(*method, one.head, one.shape.mask, G);
    const ClaimResults differences = compare_differences(*method, one, G, got, seed);
    results.insert(results.end(), differences.begin(), differences.end());
    // Where a sign may cancel or a feature has a kink, rounding in float may cross it.
    if (!non_negative) continue;
    const auto single = drawing.draw<float>(0);
    const Tensors state = single->state();
    const auto exact = drawing.draw<double>(0, state.empty() ? nullptr : &state);
    const HeadData<double> want = backward(*exact, one.head, one.shape.mask, G);
    const HeadData<float> in_float =
        backward(*single, one.head.cast<float>(), one.shape.mask, Matrix<float>(G.cast<float>()));
    double worst = 0;
    const auto compare = [&](const Matrix<float>& a, const Matrix<double>& b) {
      worst = worse(worst, (a.cast<double>() - b).cwiseAbs().maxCoeff() / std::max(1.0, b.cwiseAbs().maxCoeff()));
    };
    compare(in_float.Q, want.Q);
    compare(in_float.K, want.K);
    compare(in_float.V, want.V);
    // Rounding in float may cross a kink, and derivatives of small features are large: a thousandth of the largest.
    results.push_back(
        compared(claim, "float against double, " + one.name(), worst, limit_at_dtype(subject.params, 1e-3)));
  }
  return results;
}

}  // namespace attnbench
