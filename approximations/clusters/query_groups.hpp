// The queries of a call in groups, as clustered and improved-clustered attention have them, with their parameters.
#pragma once

#include <algorithm>
#include <boost/random/uniform_01.hpp>

#include "approximations/clusters/clusters.hpp"

namespace attnbench {

class QueryGrouping {
 public:
  explicit QueryGrouping(const Draw& draw) : sweeps_(draw.params.integer("sweeps")) {
    // There are no more groups than queries, so further numbers are not needed.
    const Index count = std::min(draw.params.integer("clusters"), draw.shape.nq);
    if (const auto* given = draw.injected("uniforms", 1, count)) {
      uniforms_ = *given;
      return;
    }
    auto generator = draw.streams.stream("seeding", "queries", draw.head, draw.replicate);
    boost::random::uniform_01<double> uniform;
    uniforms_.resize(1, count);
    for (Index c = 0; c < count; ++c) uniforms_(0, c) = uniform(generator);
  }

  template <class T>
  Groups groups(const In<T>& Q, Context& context) const {
    const std::span<const double> uniforms(uniforms_.data(), static_cast<size_t>(uniforms_.size()));
    const Matrix<double> exact = Q.template cast<double>();
    return group_queries(context, exact, uniforms, sweeps_);
  }
  Tensors state() const { return {{"uniforms", uniforms_}}; }

  static std::vector<Parameter> parameters() {
    return {Parameter::integer("clusters", 64, "groups of queries; no more than there are queries", 1, 1e9).as_budget(),
            Parameter::integer("sweeps", 5, "sweeps of Lloyd's algorithm at most", 0, 10000)};
  }
  static double clusters(const Params& params, const Shape& shape) {
    return static_cast<double>(std::min(params.integer("clusters"), shape.nq));
  }
  static double flops(const Params& params, const Shape& shape) {
    return grouping_flops(shape.nq, shape.d, std::min(params.integer("clusters"), shape.nq), params.integer("sweeps"));
  }
  static double memory(const Params& params, const Shape& shape) {
    const double d = static_cast<double>(shape.d), c = clusters(params, shape);
    return 8 * (static_cast<double>(shape.nq) * (d + 3) + 2 * c * d) +
           c * (d + static_cast<double>(shape.dv)) * bytes_of(shape.precision);
  }

 private:
  Index sweeps_;
  Matrix<double> uniforms_;  // 1 x groups
};

}  // namespace attnbench
