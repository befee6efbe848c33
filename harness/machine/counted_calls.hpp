// Work of a call that another language does, where only that language can count it.
#pragma once

#include <functional>
#include <optional>

#include "harness/linalg/context.hpp"

namespace attnbench {

// least: products and exponentials that were seen. most_flops: with arithmetic on single numbers, and infinite where
// that is not counted.
struct CountedCall {
  Work least;
  double most_flops = 0;
};

// Calls in this thread with counting on, and returns what the method told. nullopt: it told nothing.
std::optional<CountedCall> counted(const std::function<void()>& call);
// For methods: whether the caller wants to know, and the answer.
bool counting_calls();
void tell_counted(const CountedCall& call);

}  // namespace attnbench
