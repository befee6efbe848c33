// Methods that misbehave, for tests of the runner: each does its fault in the call after `calls` good ones, and is
// `zero` otherwise.
#pragma once

#include <atomic>

#include "harness/core/approximation.hpp"

namespace attnbench {

template <class T>
using Fault = std::function<void(Out<T> out)>;

template <class T>
class Faulty final : public Approximation<T> {
 public:
  Faulty(const Draw& draw, Fault<T> fault) : good_(draw.params.integer("calls")), fault_(std::move(fault)) {}
  void attend(const Head<T>&, Mask, Context&, Out<T> out) const override {
    out.setZero();
    if (calls_++ >= good_) fault_(out);
  }

 private:
  Index good_;
  mutable std::atomic<Index> calls_{0};
  Fault<T> fault_;
};

inline MethodEntry faulty(const std::string& name, const Fault<float>& f32, const Fault<double>& f64) {
  return {.text = {.name = name,
                   .summary = "a fault, for tests",
                   .formula = "A = 0",
                   .reference = "none",
                   .cost = "O(n dv) time",
                   .family = "fault"},
          .parameters = {Parameter::integer("calls", 0, "good calls before it", 0)},
          .f32 = [f32](const Draw& draw) { return std::make_unique<Faulty<float>>(draw, f32); },
          .f64 = [f64](const Draw& draw) { return std::make_unique<Faulty<double>>(draw, f64); },
          .claims = [](const Params&, const Shape&) { return Claims{}; },
          .memory = [](const Params&, const Shape&) { return 0.0; },
          .cost = [](const Params&, const Shape&) { return Work{}; }};
}

inline MethodEntry faulty(const std::string& name, const std::function<void()>& fault) {
  return faulty(
      name, [fault](Out<float>) { fault(); }, [fault](Out<double>) { fault(); });
}

}  // namespace attnbench
