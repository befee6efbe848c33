// Claims on the attention matrix: its row sums, signs, symmetry under reordering, rank, and where it is exact.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "harness/claims/structural.hpp"
#include "harness/claims/variations.hpp"
#include "harness/linalg/lapack.hpp"
#include "harness/measures/attention_matrix.hpp"

namespace attnbench {

namespace {

Drawing drawing_of(const Subject& subject, const Probe& one, std::uint64_t seed) {
  return {subject, subject.params, one.shape, seed};
}

// The first rows shuffled by its own algorithm, so that the order is the same with every standard library.
std::vector<Index> other_order(Index rows, Index first_rows, std::uint64_t seed) {
  Generator generator = Streams(seed).stream("check", "order");
  std::vector<Index> order(static_cast<size_t>(rows));
  std::iota(order.begin(), order.end(), Index(0));
  for (auto j = static_cast<size_t>(first_rows) - 1; j > 0; --j) std::swap(order[j], order[generator() % (j + 1)]);
  return order;
}

Matrix<double> reordered(const Matrix<double>& X, Index first_rows, std::uint64_t seed) {
  const auto order = other_order(X.rows(), first_rows, seed);
  Matrix<double> Y(X.rows(), X.cols());
  for (Index j = 0; j < X.rows(); ++j) Y.row(j) = X.row(order[static_cast<size_t>(j)]);
  return Y;
}

// The required row sums: one, or 0 if the mask, the method's pattern or its kernel gives the row no key with weight.
Matrix<double> row_sums_wanted(const Approximation<double>& method, const Probe& one) {
  const Mask mask = one.shape.mask;
  Matrix<double> want = Matrix<double>::Ones(one.shape.nq, one.shape.dv);
  std::vector<std::vector<Index>> keys(static_cast<size_t>(one.shape.nq));
  Context context;
  if (method.pattern()) method.pattern()->keys_of_rows(one.head.view(), mask, 0, context, keys);
  std::optional<ScaledKernel> kernel;
  if (method.kernel()) kernel.emplace(*method.kernel(), one);
  for (Index i = 0; i < one.shape.nq; ++i)
    if (mask.visible(i, one.shape.nk) == 0 || (method.pattern() && keys[static_cast<size_t>(i)].empty()) ||
        (kernel && kernel->row(i, mask).isZero(0)))
      want.row(i).setZero();
  return want;
}

// By how much the smallest entry is below 0.
template <class T>
double below_zero(const Subject& subject, const Probe& one, std::uint64_t seed) {
  Context context;
  const HeadData<T> head = one.head.cast<T>();
  const auto method = drawing_of(subject, one, seed).draw<T>(0);
  return std::max(0.0, -attention_matrix(*method, head.view(), one.shape.mask, context).minCoeff());
}

// Says why a claim on the attention matrix is not tested.
Result not_claimed(const char* claim, const Claims& claims, const char* reason = "not claimed") {
  return skipped(claim,
                 claims.no_attention_matrix.empty() ? reason : "no attention matrix: " + claims.no_attention_matrix);
}

// Windows of a few hundred keys make these claims false, and show in a longer head only.
Probes with_longer(const Subject& subject, Probes probes, std::uint64_t seed) {
  Shape shape{.nq = 600, .nk = 600, .d = 8, .dv = 5};
  shape.mask.causal = !subject.claims(subject.params, shape).no_form.empty();
  if (subject.claims(subject.params, shape).no_form.empty())
    probes.push_back(gaussian_probe(subject.params, shape, seed));
  return probes;
}

}  // namespace

ClaimResults test_linear(const Subject& subject, const Probes& probes, std::uint64_t seed) {
  ClaimResults results;
  for (const Probe& one : probes) {
    const Claims claims = subject.claims(subject.params, one.shape);
    if (!claims.linear_in_V && !claims.scales_with_V) return {skipped("linear", "not claimed")};
    auto method = drawing_of(subject, one, seed).draw<double>(0);
    if (!claims.linear_in_V)  // a short head may be exact, unless few keys are drawn
      method = Drawing(subject, tested_params(subject.params, *method), one.shape, seed).draw<double>(0);
    const auto out_of = [&](const Matrix<double>& V) {
      return attended(*method, {one.head.Q, one.head.K, V, one.head.extra}, one.shape.mask);
    };
    const Matrix<double>& V = one.head.V;
    if (!claims.linear_in_V) {
      results.push_back(compare_rows("linear", "4 V, " + one.name(), out_of(4 * V), 4 * out_of(V),
                                     row_conditions(*method, one, claims.non_negative, seed), 4 * size_of(V),
                                     double_tolerance));
      continue;
    }
    const Matrix<double> W = reordered(V, V.rows(), seed), sum = 2 * V - 0.5 * W;
    results.push_back(compare_rows("linear", "2 V - W / 2, " + one.name(), out_of(sum), 2 * out_of(V) - 0.5 * out_of(W),
                                   row_conditions(*method, one, claims.non_negative, seed), size_of(sum),
                                   double_tolerance));
  }
  return results;
}

ClaimResults test_row_sums(const Subject& subject, const Probes& probes, std::uint64_t seed) {
  ClaimResults results;
  for (const Probe& one : probes) {
    const Claims claims = subject.claims(subject.params, one.shape);
    if (!claims.row_stochastic) return {not_claimed("row-sums", claims)};
    const auto method = drawing_of(subject, one, seed).draw<double>(0);
    const auto condition = row_conditions(*method, one, claims.non_negative, seed);
    HeadData<double> constant = one.head;
    constant.V.setOnes();
    results.push_back(compare_rows("row-sums", "row sums less 1, " + one.name(),
                                   attended(*method, constant, one.shape.mask), row_sums_wanted(*method, one),
                                   condition, 1, double_tolerance));
  }
  return results;
}

ClaimResults test_non_negative(const Subject& subject, const Probes& probes, std::uint64_t seed) {
  ClaimResults results;
  for (const Probe& one : probes) {
    const Claims claims = subject.claims(subject.params, one.shape);
    if (!claims.non_negative) return {not_claimed("non-negative", claims)};
    const std::string what = "below 0, " + one.name();
    results.push_back(compared("non-negative", what + ", f64", below_zero<double>(subject, one, seed), 0));
    results.push_back(compared("non-negative", what + ", f32", below_zero<float>(subject, one, seed), 0));
  }
  return results;
}

ClaimResults test_permutation(const Subject& subject, const Probes& probes, std::uint64_t seed) {
  ClaimResults results;
  for (const Probe& one : with_longer(subject, probes, seed)) {
    const Claims claims = subject.claims(subject.params, one.shape);
    if (!claims.permutation_equivariant) return {skipped("permutation", "not claimed")};
    const Mask mask = one.shape.mask;
    const Index visible = mask.visible(one.shape.nq - 1, one.shape.nk);
    if (visible < 2) continue;
    const auto method = drawing_of(subject, one, seed).draw<double>(0);
    const HeadData<double> other{
        one.head.Q, reordered(one.head.K, visible, seed), reordered(one.head.V, visible, seed),
        part_of(one.head.extra, other_order(one.shape.nq, 1, seed), other_order(one.shape.nk, visible, seed))};
    const Matrix<double> got = attended(*method, other, mask), want = attended(*method, one.head, mask);
    const auto condition = row_conditions(*method, one, claims.non_negative, seed);
    // Under a causal mask only the last row sees all keys that change places.
    const Index compared_rows = mask.causal ? 1 : one.shape.nq;
    results.push_back(compare_rows("permutation",
                                   fmt::format("keys reordered, {}{}", one.name(), mask.causal ? ", last row" : ""),
                                   got.bottomRows(compared_rows), want.bottomRows(compared_rows),
                                   {condition.end() - static_cast<std::ptrdiff_t>(compared_rows), condition.end()},
                                   size_of(one.head.V), double_tolerance));
  }
  return results;
}

ClaimResults test_equal_keys(const Subject& subject, const Probes& probes, std::uint64_t seed) {
  ClaimResults results;
  for (const Probe& one : with_longer(subject, probes, seed)) {
    const Claims claims = subject.claims(subject.params, one.shape);
    if (!claims.equal_keys) return {skipped("equal-keys", "not claimed")};
    HeadData<double> equal = one.head;
    if (one.shape.nk > 0) equal.K.rowwise() = Eigen::RowVectorXd(equal.K.row(0));
    Matrix<double> means = Matrix<double>::Zero(one.shape.nq, one.shape.dv);
    for (Index i = 0; i < one.shape.nq; ++i)
      if (const Index seen = one.shape.mask.visible(i, one.shape.nk); seen > 0)
        means.row(i) = one.head.V.topRows(seen).colwise().mean();
    const auto method = drawing_of(subject, one, seed).draw<double>(0);
    results.push_back(compare_rows(
        "equal-keys", "all keys equal to the first, " + one.name(), attended(*method, equal, one.shape.mask), means,
        row_conditions(*method, one, claims.non_negative, seed), size_of(one.head.V), double_tolerance));
  }
  return results;
}

ClaimResults test_rank(const Subject& subject, const Probes&, std::uint64_t seed) {
  constexpr Index largest = 600;  // singular values take a second on a slow core
  const auto claims_at = [&](Index n) { return subject.claims(subject.params, {.nq = n, .nk = n, .d = 8, .dv = 5}); };
  const auto claimed = claims_at(largest).rank_at_most;
  if (!claimed) return {not_claimed("rank", claims_at(largest), "no bound is claimed")};
  if (const std::string reason = subject.claims(subject.params, {.nq = 64, .nk = 64, .d = 8, .dv = 5}).no_form;
      !reason.empty())
    return {{.claim = "rank",
             .tested = "",
             .outcome = Outcome::fail,
             .reason = "the claim is about the matrix without a causal mask, and there is no such form: " + reason}};
  const Index n = *claimed + std::max<Index>(16, *claimed / 8);
  const auto bound = n <= largest ? claims_at(n).rank_at_most : std::nullopt;
  if (!bound || *bound >= n)
    return {skipped("rank", fmt::format("a bound of {} is seen in a larger matrix than {} x {} only",
                                        bound.value_or(*claimed), std::min(n, largest), std::min(n, largest)))};
  const Probe one = gaussian_probe(subject.params, {.nq = n, .nk = n, .d = 8, .dv = 5}, seed);
  const auto method = drawing_of(subject, one, seed).draw<double>(0);
  Context context;
  Matrix<double> A = attention_matrix(*method, one.head.view(), one.shape.mask, context);
  // Scale rows to equal rounding: an ill-conditioned row would raise the zero singular values of the others.
  const auto condition = row_conditions(*method, one, subject.claims(subject.params, one.shape).non_negative, seed);
  for (Index i = 0; i < n; ++i) A.row(i) /= condition[static_cast<size_t>(i)];
  const double norm = A.norm();
  const auto sigma = singular_values(std::move(A));
  // Perturbing every entry by 64 eps of the largest in its row moves no singular value by more than this.
  return {compared("rank", fmt::format("singular value {} over the norm, n = {}", *bound + 1, n),
                   norm == 0 ? 0 : sigma[static_cast<size_t>(*bound)] / norm,
                   64 * std::numeric_limits<double>::epsilon())};
}

namespace {

// One of the cases: "landmarks=96 is nystrom", or an assignment that makes it softmax. Nothing where it refuses the
// shape.
void compare_case(const Subject& subject, const Probe& one, const std::string& when, std::uint64_t seed,
                  ClaimResults& results) {
  const size_t is = when.find(" is ");
  const std::string assignments = when == exact_always ? "" : when.substr(0, is);
  const std::string target = is == std::string::npos ? "softmax" : when.substr(is + 4);
  Params params = subject.params;
  if (!assignments.empty())
    for (const auto& [key, value] : parse_spec("assignments:" + assignments).arguments)
      params = params.with(key, value);
  const Subject exact_subject = subject_of(Params("methods", target));
  const auto method = drawn_if_possible(subject, params, one.shape, seed);
  if (!method) return;
  const auto exact = drawing_of(exact_subject, one, seed).draw<double>(0);
  const bool non_negative = exact_subject.claims(exact_subject.params, one.shape).non_negative;
  results.push_back(compare_rows(
      "exact-when", fmt::format("{} against {}, {}", assignments.empty() ? "attend" : assignments, target, one.name()),
      attended(*method, one.head, one.shape.mask), attended(*exact, one.head, one.shape.mask),
      row_conditions(*exact, one, non_negative, seed), size_of(one.head.V), double_tolerance));
}

}  // namespace

ClaimResults test_exact_when(const Subject& subject, const Probes& probes, std::uint64_t seed) {
  ClaimResults results;
  for (const Probe& one : probes) {
    const Claims claims = subject.claims(subject.params, one.shape);
    if (claims.exact_when.empty()) return {not_claimed("exact-when", claims)};
    for (const std::string& when : cases_of(claims.exact_when)) compare_case(subject, one, when, seed, results);
  }
  if (subject.built_in || probes.empty()) return results;
  // A budget that ends at a thousand keys does not show on short heads.
  const Probe longer = gaussian_probe(subject.params, {.nq = 1, .nk = 5000, .d = 8, .dv = 5}, seed);
  for (const std::string& when : cases_of(subject.claims(subject.params, longer.shape).exact_when))
    if (when.find(" is ") == std::string::npos) compare_case(subject, longer, when, seed, results);
  return results.empty() ? ClaimResults{skipped("exact-when", "it refuses these heads with those parameters")}
                         : results;
}

}  // namespace attnbench
