// Softmax of a few queries over keys that come tile by tile, with online rescaling (methods.md H): the running maximum,
// sum and output of each query. Tiles are keys x queries, so that maxima and sums run down vectors of queries, and
// products find both operands in place.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "harness/linalg/exp.hpp"
#include "harness/linalg/exponentials.hpp"
#include "harness/linalg/rounding.hpp"
#include "harness/linalg/vector.hpp"

namespace attnbench {

// Writes -infinity to the logits of a key, one of each query, for those queries that do not see it. sees: bit i is
// query i. The number of logits is a multiple of a vector's.
template <class T>
void hide(std::span<T> logits, std::uint64_t sees) {
  using Integer = typename ExponentialConstants<T>::Integer;
  typedef Integer Integers __attribute__((vector_size(vector_bytes)));
  const auto hidden = typename Vector<T>::type{} - std::numeric_limits<T>::infinity();
  Integers bit;
  for (Index i = 0; i < lanes<T>; ++i) bit[i] = Integer(1) << i;
  for (size_t i = 0; i < logits.size(); i += lanes<T>, sees >>= lanes<T>) {
    const Integers shown = (bit & static_cast<Integer>(sees)) != 0;
    store<T>(&logits[i], shown ? load(&logits[i]) : hidden);
  }
}

template <class T>
class RunningSoftmax {
 public:
  static constexpr Index most_queries = 64;
  static constexpr T none = -std::numeric_limits<T>::infinity();  // the maximum of a query that has seen no key

  // output: one row per query, which holds the sum of weighted values so far.
  explicit RunningSoftmax(Out<T> output) : output_(output) {
    maximum_.fill(none);
    sum_.fill(0);
  }

  T& maximum(Index query) { return maximum_[static_cast<size_t>(query)]; }
  T& sum(Index query) { return sum_[static_cast<size_t>(query)]; }
  const Out<T>& output() const { return output_; }

  // A tile takes three steps. First its logits, keys x queries first_query, first_query + 1, ..., in one block or
  // several; -infinity for a key that a query does not see. bias: of each key, or empty.
  void raise(const In<T>& logits, Index first_query = 0, std::span<const T> bias = {}) {
    if (!raised_) raised_ = maximum_;
    raise_to_column_maxima<T>(logits, bias, std::span(*raised_).subspan(static_cast<size_t>(first_query)));
  }
  // Then the output and the sums so far are put in relation to the new maxima.
  void rescale() {
    for (Index i = 0; i < output_.rows(); ++i) {
      const T fresh = (*raised_)[static_cast<size_t>(i)];
      if (fresh == maximum(i) || maximum(i) == none) continue;
      const T factor = std::exp(maximum(i) - fresh);
      sum(i) *= factor;
      output_.row(i) *= factor;
    }
    maximum_ = *raised_;
    raised_.reset();
    // A query that has seen no key may use any finite maximum: exp(-infinity) is 0.
    for (size_t i = 0; i < maximum_.size(); ++i) minus_maximum_[i] = maximum_[i] == none ? T(0) : -maximum_[i];
  }
  // Last, logits become weights, which the caller multiplies with values and adds to the output. The caller counts the
  // exponentials, since it knows which keys are seen.
  void weigh(Context& context, Out<T> logits, Index first_query = 0, std::span<const T> bias = {}) {
    Context uncounted;
    const auto first = static_cast<size_t>(first_query);
    exponentiate<T>(uncounted, logits, bias, std::span<const T>(minus_maximum_).subspan(first),
                    std::span(sum_).subspan(first));
    round_to<T>(context.rounding(), logits);
  }

  // Divides the output by the sums.
  void finish() {
    for (Index i = 0; i < output_.rows(); ++i)
      if (sum(i) > 0) output_.row(i) *= 1 / sum(i);
  }

 private:
  using PerQuery = std::array<T, static_cast<size_t>(most_queries)>;

  Out<T> output_;
  PerQuery maximum_, sum_, minus_maximum_;
  std::optional<PerQuery> raised_;
};

}  // namespace attnbench
