// Uniform attention with a fault, for tests: each plugin here does one thing that a plugin should not.
#pragma once

#include "harness/core/approximation.hpp"

namespace attnbench {

// before: called for each attend, with what it was given; after: with its output as well.
template <class T>
using Act = std::function<void(const Head<T>& head, Out<T> out)>;

template <class T>
class Misbehaving final : public Approximation<T> {
 public:
  Misbehaving(const Draw&, Act<T> act) : act_(std::move(act)) {}
  void attend(const Head<T>& head, Mask mask, Context&, Out<T> out) const override {
    for (Index i = 0; i < out.rows(); ++i)
      if (const Index seen = mask.visible(i, head.K.rows()); seen > 0)
        out.row(i) = head.V.topRows(seen).colwise().mean();
      else
        out.row(i).setZero();
    act_(head, out);
  }

 private:
  Act<T> act_;
};

inline MethodEntry misbehaving(const std::string& name, Act<float> f32, Act<double> f64) {
  return {.text = {.name = name,
                   .summary = "uniform attention that misbehaves, for tests",
                   .formula = "A_ij = 1/n",
                   .reference = "none",
                   .cost = "O(n^2 dv) time",
                   .family = "fault"},
          .parameters = {},
          .f32 = [f32](const Draw& draw) { return std::make_unique<Misbehaving<float>>(draw, f32); },
          .f64 = [f64](const Draw& draw) { return std::make_unique<Misbehaving<double>>(draw, f64); },
          .claims = [](const Params&, const Shape&) { return Claims{.row_stochastic = true, .causal_exact = true}; },
          .memory = [](const Params&, const Shape&) { return 0.0; },
          .cost = [](const Params&, const Shape&) { return Work{}; }};
}

// act: generic, called with a head and an output of either type.
template <class Action>
MethodEntry misbehaving(const std::string& name, Action act) {
  return misbehaving(
      name, [act](const Head<float>& head, Out<float> out) { act(head, out); },
      [act](const Head<double>& head, Out<double> out) { act(head, out); });
}

}  // namespace attnbench
