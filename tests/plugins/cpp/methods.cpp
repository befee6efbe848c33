// Methods that misbehave while they are called. None of them may cost more than its own cells.
#include <atomic>
#include <csignal>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>

#include "misbehaving.hpp"

namespace attnbench {
namespace {

const bool segfault = add(misbehaving("segfault", [](const auto&, auto) { std::raise(SIGSEGV); }));

const bool nan = add(misbehaving("nan", [](const auto&, auto out) {
  out(0, 0) = std::numeric_limits<std::decay_t<decltype(out(0, 0))>>::quiet_NaN();
}));

const bool modifies_inputs = add(misbehaving("modifies-inputs", [](const auto& head, auto) {
  using Scalar = std::decay_t<decltype(head.V(0, 0))>;
  const_cast<Scalar*>(head.V.data())[0] = 0;
}));

const bool not_deterministic = add(misbehaving("not-deterministic", [](const auto&, auto out) {
  static std::atomic<int> calls{0};
  out(0, 0) += static_cast<std::decay_t<decltype(out(0, 0))>>(1e-3) * static_cast<float>(++calls);
}));

// An instance that keeps a number of the first head that it is called with.
template <class T>
std::unique_ptr<Approximation<T>> keeping(const Draw& draw) {
  const auto kept = std::make_shared<std::optional<T>>();
  return std::make_unique<Misbehaving<T>>(draw, [kept](const Head<T>& head, Out<T> out) {
    if (!*kept) *kept = head.K(0, 0);
    out(0, 0) += **kept;
  });
}

MethodEntry keeps_state_entry() {
  MethodEntry entry = misbehaving("keeps-state", [](const auto&, auto) {});
  entry.f32 = keeping<float>;
  entry.f64 = keeping<double>;
  return entry;
}

const bool keeps_state = add(keeps_state_entry());

const bool prints = add(misbehaving("prints", [](const auto&, auto) {
  std::puts("a line on standard output");
  std::fputs("a line on standard error\n", stderr);
}));

const bool freed_memory = add(misbehaving("freed-memory", [](const auto&, auto out) {
  using Scalar = std::decay_t<decltype(out(0, 0))>;
  auto memory = std::make_unique<Scalar[]>(16);
  const volatile Scalar* view = memory.get();
  memory.reset();
  out(0, 0) = view[3];
}));

const bool throws = add(misbehaving("throws", [](const auto&, auto) { throw std::runtime_error("no luck today"); }));

}  // namespace
}  // namespace attnbench
