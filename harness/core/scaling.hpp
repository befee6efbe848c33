// Q and K are scaled by d^-1/4 each (methods.md 0), once, where a head enters. Methods see only scaled heads.
#pragma once

#include <cmath>

#include "harness/core/problem.hpp"

namespace attnbench {

inline double edge_scale(Index d) { return std::pow(static_cast<double>(d), -0.25); }

// A head with Q and K times `factor`, multiplied in double, then rounded to T once.
template <class T, class Given>
HeadData<T> scaled_head(const Head<Given>& raw, double factor) {
  const auto times = [](const In<Given>& X, double by) {
    return Matrix<T>((X.template cast<double>() * by).template cast<T>());
  };
  return {times(raw.Q, factor), times(raw.K, factor), raw.V.template cast<T>(), raw.extra ? *raw.extra : Extras()};
}

}  // namespace attnbench
