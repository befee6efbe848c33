// Softmax of a few queries over keys that come tile by tile, with online rescaling (methods.md H): the running maximum,
// sum and output of each query. Tiles are keys x queries, so that maxima and sums run down vectors of queries, and
// products find both operands in place.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

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

// Some neighbouring queries of a tile, and the keys [begin, end) of the tile beyond which none of them sees any. Bands
// begin at a multiple of 16 queries: products take rows 6, 6 and 4 at a time.
struct Band {
  static constexpr Index step = 16;
  Index query = 0, queries = 0;
  Index begin = 0, end = 0;

  // The columns of its queries in a tile, whose width is padded to whole vectors.
  template <class T>
  ColumnRange columns() const {
    return {query, query + in_whole_vectors<T>(queries)};
  }
};

// The columns of logits that each strip of a product with keys [first, first + count) of the tile needs. Bands ascend.
template <class T>
void find_needed(std::span<const Band> bands, Index first, Index count, std::vector<ColumnRange>& needed) {
  needed.clear();
  for (Index begin = first; begin < first + count; begin += strip_rows) {
    const Index end = std::min(begin + strip_rows, first + count);
    ColumnRange columns;
    for (const Band& band : bands)
      if (band.begin < end && begin < band.end) {
        const ColumnRange own = band.columns<T>();
        columns = {columns.end == 0 ? own.begin : columns.begin, own.end};
      }
    needed.push_back(columns);
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

  // A tile takes three steps. First its logits, keys x queries, -infinity for a key that a query of a band does not
  // see; entries outside of the bands are not read. bias: of each key, or empty.
  void raise(Out<T> logits, std::span<const Band> bands, std::span<const T> bias = {}) {
    raised_ = maximum_;
    for (const Band& band : bands)
      raise_to_column_maxima<T>(of_band(logits, band), of_band(bias, band), from(std::span(raised_), band));
  }
  // Then the output and the sums so far are put in relation to the new maxima.
  void rescale() {
    for (Index i = 0; i < output_.rows(); ++i) {
      const T fresh = raised_[static_cast<size_t>(i)];
      if (fresh == maximum(i) || maximum(i) == none) continue;
      const T factor = std::exp(maximum(i) - fresh);
      sum(i) *= factor;
      output_.row(i) *= factor;
    }
    maximum_ = raised_;
    // A query that has seen no key may use any finite maximum: exp(-infinity) is 0.
    for (size_t i = 0; i < maximum_.size(); ++i) minus_maximum_[i] = maximum_[i] == none ? T(0) : -maximum_[i];
  }
  // Last, logits become weights, which the caller multiplies with values and adds to the output. The caller counts the
  // exponentials, since it knows which keys are seen.
  void weigh(Context& context, Out<T> logits, std::span<const Band> bands, std::span<const T> bias = {}) {
    Context uncounted;
    for (const Band& band : bands) {
      const Out<T> weights = of_band(logits, band);
      exponentiate<T>(uncounted, weights, of_band(bias, band), from(std::span<const T>(minus_maximum_), band),
                      from(std::span(sum_), band));
      round_to<T>(context.rounding(), weights);
    }
  }

  // Divides the output by the sums.
  void finish() {
    for (Index i = 0; i < output_.rows(); ++i)
      if (sum(i) > 0) output_.row(i) *= 1 / sum(i);
  }

 private:
  using PerQuery = std::array<T, static_cast<size_t>(most_queries)>;

  static Out<T> of_band(Out<T>& tile, const Band& band) {
    const auto [begin, end] = band.columns<T>();
    return {&tile(band.begin, begin), band.end - band.begin, end - begin, tile.outerStride()};
  }
  static std::span<const T> of_band(std::span<const T> bias, const Band& band) {
    if (bias.empty()) return bias;
    return bias.subspan(static_cast<size_t>(band.begin), static_cast<size_t>(band.end - band.begin));
  }
  static auto from(auto per_query, const Band& band) { return per_query.subspan(static_cast<size_t>(band.query)); }

  Out<T> output_;
  PerQuery maximum_, raised_, sum_, minus_maximum_;
};

}  // namespace attnbench
