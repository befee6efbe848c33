// With a causal mask, row i depends only on tokens j <= i + offset. The test moves a token's q, k and v far away; no
// earlier row may change by a single bit, so later tokens cannot influence an earlier row even through rounding.
#include <fmt/format.h>

#include <cstring>

#include "harness/claims/structural.hpp"
#include "harness/core/torch_place.hpp"

namespace attnbench {

namespace {

constexpr const char* claim = "causal";

// Number of rows before `own_row` that differ in any bit.
template <class T>
double changed_rows(const Matrix<T>& before, const Matrix<T>& after, Index own_row) {
  double changed = 0;
  for (Index i = 0; i < own_row; ++i)
    changed += std::memcmp(&after(i, 0), &before(i, 0), sizeof(T) * static_cast<size_t>(after.cols())) != 0;
  return changed;
}

template <class T>
ClaimResults test(const Subject& subject, const Probe& one, std::uint64_t seed) {
  const Mask mask = one.shape.mask;
  const Index n = mask.keys < 0 ? one.shape.nk : std::min(mask.keys, one.shape.nk);
  const auto method = Drawing(subject, subject.params, one.shape, seed).draw<T>(0);
  const HeadData<T> head = one.head.cast<T>();
  const Matrix<T> before = attended(*method, head, mask);
  ClaimResults results;
  const T away = spacing_of(subject.params) == spacing_of_float16 ? T(1e4) : T(1e6);  // float16 ends at 65504
  // Both sides of the edges of blocks of 64, and the ends. j starts at 2, because a first row with a single key is the
  // same for any weight.
  for (const Index j : {Index(2), Index(63), Index(64), Index(65), Index(127), Index(128), n - 1}) {
    const Index own_row = std::clamp<Index>(j - mask.offset, 0, one.shape.nq);
    if (own_row == 0 || j < 0 || j >= n) continue;
    const auto compare = [&](const char* what, const HeadData<T>& moved) {
      results.push_back(
          compared(claim, fmt::format("earlier rows changed by {} {}, {}, {}", what, j, one.name(), precision_name<T>),
                   changed_rows<T>(before, attended(*method, moved, mask), own_row), 0));
    };
    HeadData<T> far = head;
    far.K.row(j) *= T(-30);
    far.V.row(j).array() += away;
    if (own_row < one.shape.nq) far.Q.row(own_row) *= T(-30);
    move_extras(far.extra, subject.params, j, j + 1, own_row, std::min(own_row + 1, one.shape.nq));
    compare("token", far);
    // A stabiliser that is a maximum over all keys moves when keys shrink. A single far token may lie below it
    // and leave it unchanged.
    HeadData<T> shrunk = head;
    shrunk.K.middleRows(j, n - j) *= T(0.5);
    move_extras(shrunk.extra, subject.params, j, n, own_row, one.shape.nq);
    compare("tokens from", shrunk);
  }
  return results;
}

}  // namespace

ClaimResults test_causality(const Subject& subject, const Probes& probes, std::uint64_t seed) {
  ClaimResults results;
  constexpr Shape causal{.nq = 48, .nk = 48, .d = 8, .dv = 5, .mask = {.causal = true}};
  if (const auto reason = subject.claims(subject.params, causal).no_form; !reason.empty())
    return {skipped(claim, "no causal form: " + reason)};
  for (const Probe& one : probes) {
    const Claims claims = subject.claims(subject.params, one.shape);
    if (!claims.causal_exact) return {skipped(claim, "not claimed exactly")};
    if (!one.shape.mask.causal) continue;
    for (const ClaimResults& of_type : {test<double>(subject, one, seed), test<float>(subject, one, seed)})
      results.insert(results.end(), of_type.begin(), of_type.end());
  }
  return results;
}

}  // namespace attnbench
