#include "harness/claims/precision.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "harness/claims/structural.hpp"
#include "harness/core/torch_place.hpp"

namespace attnbench {

namespace {

// Attention in PyTorch that is right is off by at most 0.7 of these units in either type (softmax, linear, local,
// random features with and without a normaliser), and by 1.8 or more with an output that is 1.1 times as large.
constexpr double coarse_rounding = 1.5;
constexpr double float_eps = std::numeric_limits<float>::epsilon();

double largest_norm(const Matrix<double>& X) { return X.rowwise().norm().maxCoeff(); }

// How far each row of attend moves, at most, over some random changes of all inputs by that part of themselves.
std::vector<double> movement(const Approximation<double>& exact, const Probe& one, const Matrix<double>& out,
                             double change, int changes = 16) {
  Generator generator = Streams(1).stream("check", "jumps");
  const auto changed = [&](Matrix<double> X) {
    for (Index i = 0; i < X.size(); ++i) X.data()[i] *= 1 + (generator() % 2 == 0 ? change : -change);
    return X;
  };
  std::vector<double> most(static_cast<size_t>(out.rows()), 0);
  for (int repetition = 0; repetition < changes; ++repetition) {
    HeadData<double> other{changed(one.head.Q), changed(one.head.K), one.head.V, one.head.extra};
    for (auto& [name, extra] : other.extra)
      if (extra.numbers != extra.numbers.array().round().matrix())
        extra.numbers = changed(extra.numbers);  // no positions
    const Matrix<double> moved = attended(exact, other, one.shape.mask) - out;
    for (size_t i = 0; i < most.size(); ++i)
      most[i] = std::max(most[i], moved.row(static_cast<Index>(i)).cwiseAbs().maxCoeff());
  }
  return most;
}

}  // namespace

double float_rounding(const Probe& one, const Tensors& state) {
  const double q = largest_norm(one.head.Q), k = largest_norm(one.head.K);
  double L = q * k;
  Index terms = 64;
  for (const auto& [name, tensor] : state) {
    if (tensor.size() == 0) continue;
    terms = std::max(terms, tensor.rows());
    if (tensor.cols() == one.shape.d) L = std::max(L, largest_norm(tensor) * (q + k) + (q * q + k * k) / 2);
    // Keys that are sums over the sequence: |E k| is at most the norm of E times that of all of K.
    if (tensor.cols() == one.shape.nk) L = std::max(L, q * largest_norm(tensor) * one.head.K.norm());
  }
  return 2 * (static_cast<double>(one.shape.d) * L + static_cast<double>(terms + one.shape.nk)) * float_eps;
}

std::vector<double> rounding_conditions(const Approximation<double>& exact, const Probe& one, const Tensors& state) {
  constexpr Index few = 130;  // keys
  Index terms = 64;
  for (const auto& [name, tensor] : state) terms = std::max(terms, tensor.rows());
  terms += std::min(one.shape.nk, few);
  const auto further = static_cast<double>(std::max<Index>(0, one.shape.nk - few));

  const double size = size_of(one.head.V);
  std::vector<double> conditions = movement(exact, one, attended(exact, one.head, one.shape.mask), float_eps, 4);
  // Adding n equal numbers one after another in float is off by sqrt(n) / 6 of these units; four times that is
  // allowed.
  const double sums = std::sqrt(static_cast<double>(terms)) + std::sqrt(further) / 8;
  const std::vector<double> ratios = cancellations(exact, one);
  for (size_t i = 0; i < conditions.size(); ++i) conditions[i] = conditions[i] / (float_eps * size) + ratios[i] * sums;
  return conditions;
}

Result compare_with_double(const std::string& claim, const std::string& tested, const Matrix<double>& got,
                           const Approximation<double>& exact, const Probe& one, const std::vector<double>& condition,
                           double rounding) {
  const Matrix<double> want = attended(exact, one.head, one.shape.mask);
  const double size = size_of(one.head.V);
  double worst = 0;
  Index cancel = 0, jump = 0;
  // A smooth row moves 32 to 48 times as far under a change 32 times as large. Features round inside, which no change
  // of the inputs shows: rows of a kernel may err as far as they move.
  constexpr double larger = 32, most_if_smooth = 4 * larger;
  std::vector<double> moved, moved_less;
  for (Index i = 0; i < want.rows(); ++i) {
    const double c = condition[static_cast<size_t>(i)];
    if (!(c * rounding <= 0.1)) {
      ++cancel;
      continue;
    }
    const double difference = (got.row(i) - want.row(i)).cwiseAbs().maxCoeff();
    const double error = difference / (std::max(size, want.row(i).cwiseAbs().maxCoeff()) * c);
    if (!(error <= rounding)) {
      if (moved.empty()) {
        moved = movement(exact, one, want, larger * float_eps);
        moved_less = movement(exact, one, want, float_eps);
      }
      const double far = moved[static_cast<size_t>(i)], near = moved_less[static_cast<size_t>(i)];
      const bool jumps = exact.kernel() || far > most_if_smooth * near;
      if (near >= difference / 2 || (far >= difference / 2 && jumps)) {
        ++jump;
        continue;
      }
    }
    worst = worse(worst, error);
  }
  if (cancel + jump == want.rows())
    return skipped(claim, tested + ": in every row the normaliser cancels or the output jumps");
  std::string text = tested;
  if (cancel > 0) text += fmt::format(", {} rows that cancel left out", cancel);
  if (jump > 0) text += fmt::format(", {} rows at a jump left out", jump);
  return compared(claim, text, worst, rounding);
}

Result compare_coarse_with_double(const std::string& claim, const std::string& tested, const Matrix<double>& got,
                                  const Approximation<double>& exact, const Probe& one, double spacing,
                                  double allowed) {
  const Matrix<double> want = attended(exact, one.head, one.shape.mask);
  const std::vector<double> moved = movement(exact, one, want, spacing);
  const double size = size_of(one.head.V);
  double worst = 0;
  for (Index i = 0; i < want.rows(); ++i)
    worst = worse(worst,
                  (got.row(i) - want.row(i)).cwiseAbs().maxCoeff() / (moved[static_cast<size_t>(i)] + spacing * size));
  return compared(claim, tested + ", of what a change of the inputs by one spacing does", worst, allowed);
}

ClaimResults test_precision(const Subject& subject, const Probes& probes, std::uint64_t seed) {
  ClaimResults results;
  for (const Probe& one : probes) {
    const Drawing drawing(subject, subject.params, one.shape, seed);
    const auto single = drawing.draw<float>(0);
    const Tensors state = single->state();  // as float holds it
    const auto exact = drawing.draw<double>(0, state.empty() ? nullptr : &state);
    const Matrix<double> got = attended(*single, one.head.cast<float>(), one.shape.mask).cast<double>();
    if (const double spacing = spacing_of(subject.params); spacing > float_eps) {
      const std::string tested = fmt::format("{} against double, {}", subject.params.text("dtype"), one.name());
      results.push_back(compare_coarse_with_double("precision", tested, got, *exact, one, spacing, coarse_rounding));
      continue;
    }
    results.push_back(
        compare_with_double("precision", "float against double, " + one.name(), got, *exact, one,
                            row_conditions(*exact, one, subject.claims(subject.params, one.shape).non_negative, seed),
                            float_rounding(one, state)));
  }
  return results;
}

}  // namespace attnbench
