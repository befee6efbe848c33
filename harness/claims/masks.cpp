// Memory around a head and keys that no row sees: neither may have an effect.
#include <fmt/format.h>

#include <cmath>

#include "harness/claims/structural.hpp"

namespace attnbench {

namespace {

// Columns of one head in a [n, heads, d] tensor: three columns before, two behind.
constexpr Index before = 3, behind = 2;
constexpr double around = 1e300;

Matrix<double> widened(const Matrix<double>& X) {
  Matrix<double> wide = Matrix<double>::Constant(X.rows(), before + X.cols() + behind, around);
  wide.middleCols(before, X.cols()) = X;
  return wide;
}

In<double> inside(const Matrix<double>& wide) {
  return {wide.data() + before, wide.rows(), wide.cols() - before - behind, wide.cols()};
}

template <class T>
Result compare_padding(const Drawing& drawing, const Probe& one) {
  const auto method = drawing.draw<T>(0);
  HeadData<T> head = one.head.cast<T>();
  const Matrix<T> kept = attended(*method, head, one.shape.mask);
  const Index padding = one.shape.nk - one.shape.mask.keys;
  head.K.bottomRows(padding) *= T(1e6);
  head.V.bottomRows(padding).setConstant(T(-1e30));
  move_extras(head.extra, drawing.params(), one.shape.mask.keys, one.shape.nk, one.shape.nq, one.shape.nq);
  return compared("padding",
                  fmt::format("numbers that padded keys and values change, {}, {}", one.name(), precision_name<T>),
                  differing_numbers(attended(*method, head, one.shape.mask), kept), 0);
}

}  // namespace

ClaimResults test_views(const Subject& subject, const Probes& probes, std::uint64_t seed) {
  ClaimResults results;
  for (const Probe& one : probes) {
    const auto method = Drawing(subject, subject.params, one.shape, seed).draw<double>(0);
    const Matrix<double> Q = widened(one.head.Q), K = widened(one.head.K), V = widened(one.head.V);
    Matrix<double> out = widened(Matrix<double>::Constant(one.shape.nq, one.shape.dv, NAN));
    Context context;
    method->attend({inside(Q), inside(K), inside(V), &one.head.extra}, one.shape.mask, context,
                   {out.data() + before, out.rows(), one.shape.dv, out.cols()});
    // Not bit for bit: where a view begins decides which terms a vector register adds together.
    results.push_back(
        compare_rows("views", "views into larger memory, " + one.name(), out.middleCols(before, one.shape.dv),
                     attended(*method, one.head, one.shape.mask),
                     row_conditions(*method, one, subject.claims(subject.params, one.shape).non_negative, seed),
                     size_of(one.head.V), double_tolerance));
    const auto written =
        (out.leftCols(before).array() != around).count() + (out.rightCols(behind).array() != around).count();
    results.push_back(
        compared("views", "numbers written beside the output, " + one.name(), static_cast<double>(written), 0));
  }
  return results;
}

ClaimResults test_padding(const Subject& subject, const Probes& probes, std::uint64_t seed) {
  ClaimResults results;
  for (const Probe& given : probes) {
    Mask mask = given.shape.mask;
    if (mask.keys < 0) mask.keys = (2 * given.shape.nk + 2) / 3;
    if (mask.keys >= given.shape.nk) continue;
    const auto one = under(subject, given, mask);
    if (!one) continue;
    const Drawing drawing(subject, subject.params, one->shape, seed);
    results.push_back(compare_padding<double>(drawing, *one));
    results.push_back(compare_padding<float>(drawing, *one));
  }
  return results;
}

ClaimResults test_empty_rows(const Subject& subject, const Probes& probes, std::uint64_t seed) {
  ClaimResults results;
  const auto test = [&](const Probe& one) {
    const auto method = Drawing(subject, subject.params, one.shape, seed).draw<double>(0);
    const Matrix<double> out = attended(*method, one.head, one.shape.mask);
    double others = 0;
    bool any = false;
    for (Index i = 0; i < one.shape.nq; ++i) {
      if (one.shape.mask.visible(i, one.shape.nk) > 0) continue;
      any = true;
      others += static_cast<double>((out.row(i).array() != 0).count());
    }
    if (any) results.push_back(compared("empty-rows", "numbers other than 0, " + one.name(), others, 0));
  };
  for (const Probe& given : probes) {
    Mask nothing = given.shape.mask, late = given.shape.mask;
    nothing.keys = 0;
    late.offset = -3;
    if (const auto one = under(subject, given, nothing)) test(*one);
    if (!late.causal || given.shape.nq <= 3) continue;
    if (const auto one = under(subject, given, late)) test(*one);
  }
  return results;
}

}  // namespace attnbench
