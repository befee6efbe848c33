#include "harness/theory/sampling_law.hpp"

#include <cassert>

#include "harness/linalg/products.hpp"
#include "harness/linalg/rows.hpp"

namespace attnbench {

namespace {

using Row = Eigen::RowVectorXd;

// sum_j weight_j |f_j / p_j - mean|^2 / weight, mean = sum_j weight_j f_j / p_j / weight, over the keys that `part`
// calls its argument with.
template <class Part>
double spread(const SamplingLaw& law, const In<double>& f, const Part& part) {
  Row mean = Row::Zero(f.cols());
  double total = 0, sum = 0;
  part([&](Index j, double weight) {
    mean += weight / law.p[static_cast<size_t>(j)] * f.row(j);
    total += weight;
  });
  if (total <= 0) return 0;
  mean /= total;
  part(
      [&](Index j, double weight) { sum += weight * (f.row(j) / law.p[static_cast<size_t>(j)] - mean).squaredNorm(); });
  return sum / total;
}

double variance_of_distinct(const SamplingLaw& law, const In<double>& f) {
  Row sum = Row::Zero(f.cols());
  double squares = 0, all = 0;
  const auto for_keys = [&](const auto& body) {
    for (Index j = 0; j < f.rows(); ++j)
      if (law.p[static_cast<size_t>(j)] > 0) body(f.row(j));
  };
  for_keys([&](const auto& f_j) {
    sum += f_j;
    ++all;
  });
  const auto drawn = static_cast<double>(law.samples);
  if (drawn >= all) return 0;
  for_keys([&](const auto& f_j) { squares += (f_j - sum / all).squaredNorm(); });
  return all * all * (1 / drawn - 1 / all) * squares / (all - 1);
}

double variance_of_strata(const SamplingLaw& law, const In<double>& f) {
  const Index n = f.rows();
  const auto s = static_cast<double>(law.samples);
  double sum = 0, begin = 0;  // the probability of the keys before `first`
  Index first = 0;
  for (Index t = 0; t < law.samples; ++t) {
    const double low = static_cast<double>(t) / s, high = static_cast<double>(t + 1) / s;
    sum += spread(law, f, [&](const auto& body) {
      double at = begin;
      for (Index j = first; j < n && at < high; ++j) {
        const double p = law.p[static_cast<size_t>(j)];
        const double inside = std::min(high, at + p) - std::max(low, at);
        if (inside > 0) body(j, inside);
        at += p;
      }
    });
    for (; first < n && begin + law.p[static_cast<size_t>(first)] <= high; ++first)
      begin += law.p[static_cast<size_t>(first)];
  }
  return sum / (s * s);
}

double variance_of_poisson_numbers(const SamplingLaw& law, const In<double>& f) {
  double sum = 0;
  for (Index j = 0; j < f.rows(); ++j)
    if (const double p = law.p[static_cast<size_t>(j)]; p > 0)
      sum += f.row(j).squaredNorm() / (static_cast<double>(law.samples) * p);
  return sum;
}

}  // namespace

double variance_of_estimate(const SamplingLaw& law, const In<double>& of_keys) {
  assert(std::ssize(law.p) == of_keys.rows() && law.samples > 0);
  Matrix<double> f = of_keys;
  for (Index j = 0; j < f.rows(); ++j)
    if (law.adds_exactly(j)) f.row(j).setZero();
  switch (law.draws) {
    case SamplingLaw::Draws::distinct:
      return variance_of_distinct(law, f);
    case SamplingLaw::Draws::stratified:
      return variance_of_strata(law, f);
    case SamplingLaw::Draws::dependent:
      return variance_of_poisson_numbers(law, f);
    case SamplingLaw::Draws::independent:
      break;
  }
  return spread(law, f,
                [&](const auto& body) {
                  for (Index j = 0; j < f.rows(); ++j)
                    if (const double p = law.p[static_cast<size_t>(j)]; p > 0) body(j, p);
                }) /
         static_cast<double>(law.samples);
}

SampledRow sampled_row(Context& context, const SamplingLaw& law, const In<double>& q, const In<double>& K,
                       const In<double>& V) {
  const Index n = K.rows(), dv = V.cols();
  const std::vector<double> zeros(static_cast<size_t>(dv), 0);
  SampledRow moments{.numerator_mean = zeros, .output = zeros, .row = zeros};
  if (n == 0) return moments;
  Matrix<double> a(1, n), exact(1, dv);
  multiply_transposed<double>(context, q, K, a);
  softmax_within<double>(context, a, 0, 0, n);
  multiply<double>(context, a, V, exact);
  Matrix<double> weights = a.transpose();  // without the keys that are never drawn
  for (Index j = 0; j < n; ++j)
    if (law.p[static_cast<size_t>(j)] == 0 && !law.adds_exactly(j)) weights(j, 0) = 0;
  const Matrix<double> terms = weights.col(0).asDiagonal() * Matrix<double>(V);
  const double reached = weights.sum();
  const Row numerator = terms.colwise().sum(), limit = numerator / reached;
  Row::Map(moments.numerator_mean.data(), dv) = numerator;
  Row::Map(moments.output.data(), dv) = exact.row(0);
  Row::Map(moments.row.data(), dv) = limit;
  moments.denominator_mean = reached;
  moments.variances_known = law.draws != SamplingLaw::Draws::dependent || !law.draws_keys();
  moments.denominator_variance = variance_of_estimate(law, weights);
  moments.numerator_variance = variance_of_estimate(law, terms);
  if (!moments.variances_known) return moments;
  // To first order o^ - limit is the estimate of sum_j a_j (v_j - limit) = 0, over E D^.
  const Matrix<double> deviations = terms - weights.col(0) * limit;
  moments.row_squared_error =
      variance_of_estimate(law, deviations) / (reached * reached) + (limit - exact.row(0)).squaredNorm();
  constexpr double rounding = 1e-24;  // squared; the terms of a constant denominator differ by less than 1e-12
  moments.row_exact = moments.denominator_variance <= rounding * reached * reached;
  return moments;
}

}  // namespace attnbench
