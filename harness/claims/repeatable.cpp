// One draw gives one set of numbers: drawn twice, called twice, on any number of threads. A call changes nothing else.
#include <fmt/format.h>

#include "harness/claims/structural.hpp"

namespace attnbench {

namespace {

// Each kind of repetition is a separate test, because each reveals a different mistake.
template <class T>
void test(const Subject& subject, const Probe& one, std::uint64_t seed, ClaimResults& results) {
  const Drawing drawing(subject, subject.params, one.shape, seed);
  const HeadData<T> head = one.head.cast<T>(),
                    other = gaussian_probe(subject.params, one.shape, seed + 1).head.cast<T>();
  const auto method = drawing.draw<T>(0), again = drawing.draw<T>(0);
  const Matrix<T> first = attended(*method, head, one.shape.mask);
  const auto compare = [&](const char* what, const Matrix<T>& second) {
    results.push_back(compared("repeatable",
                               fmt::format("numbers that differ {}, {}, {}", what, one.name(), precision_name<T>),
                               differing_numbers(first, second), 0));
  };
  compare("when it is called again", attended(*method, head, one.shape.mask));
  compare("when it is drawn again", attended(*again, head, one.shape.mask));
  const auto used = drawing.draw<T>(0);
  attended(*used, other, one.shape.mask);
  compare("when it was called for another head before", attended(*used, head, one.shape.mask));
  compare("on 3 threads", attended(*again, head, one.shape.mask, 3));
  // A class in Python may keep what it found out about a head. One that takes heads of a single length alone raises.
  const Index few = std::min<Index>(5, one.shape.nq);
  if (!subject.interpreted || one.shape.nq != one.shape.nk || one.shape.mask.keys >= 0) return;
  try {
    const HeadPart<T> part(other.view(), 0, few, 0, few);
    const Head<T> tokens = part.view();
    attended(*used, HeadData<T>{tokens.Q, tokens.K, tokens.V, *tokens.extra}, one.shape.mask);
  } catch (const std::runtime_error&) {
    return;
  }
  compare("when it was called for a head of 5 tokens before", attended(*used, head, one.shape.mask));
}

// Checks that a call keeps Q, K and V: every later method gets the same measured head.
template <class T>
Result test_kept(const Subject& subject, const Probe& one, std::uint64_t seed) {
  const auto method = Drawing(subject, subject.params, one.shape, seed).draw<T>(0);
  const HeadData<T> before = one.head.cast<T>(), after = before;
  attended(*method, after, one.shape.mask);
  const double changed = differing_numbers(before.Q, after.Q) + differing_numbers(before.K, after.K) +
                         differing_numbers(before.V, after.V);
  return compared("inputs-kept",
                  fmt::format("numbers of Q, K and V that a call changed, {}, {}", one.name(), precision_name<T>),
                  changed, 0);
}

}  // namespace

ClaimResults test_repeatable(const Subject& subject, const Probes& probes, std::uint64_t seed) {
  ClaimResults results;
  for (const Probe& one : probes) {
    test<double>(subject, one, seed, results);
    test<float>(subject, one, seed, results);
  }
  return results;
}

ClaimResults test_inputs_kept(const Subject& subject, const Probes& probes, std::uint64_t seed) {
  ClaimResults results;
  for (const Probe& one : probes) {
    results.push_back(test_kept<double>(subject, one, seed));
    results.push_back(test_kept<float>(subject, one, seed));
  }
  return results;
}

}  // namespace attnbench
