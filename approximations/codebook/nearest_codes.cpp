#include "approximations/codebook/nearest_codes.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "harness/linalg/per_row.hpp"
#include "harness/linalg/rows.hpp"
#include "harness/linalg/vector.hpp"

namespace attnbench {

namespace {

constexpr Index block_rows = 512;  // rows in one thread's block
constexpr Index code_block = 128;  // codes in a tile: with one panel of vectors a tile takes 32 KB
template <class T>
constexpr Index panel_width = 256 / static_cast<Index>(sizeof(T));  // vectors

// The best code so far of each vector of a panel. Code indices are integers as wide as a score, so that one mask
// selects both.
template <class T>
struct Best {
  using Code = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  typedef Code Codes __attribute__((vector_size(vector_bytes)));
  static constexpr Index vectors = panel_width<T> / lanes<T>;

  Best() {
    for (auto& v : score) v = typename Vector<T>::type{} - std::numeric_limits<T>::infinity();
  }

  // tile: the products of codes [first, first + tile.rows()) with the panel, before -|c|^2/2 is added.
  void take(const Out<T>& tile, Index first, const T* half_norms) {
    Best best = *this;  // in registers
    for (Index y = 0; y < tile.rows(); ++y) {
      const T* row = tile.data() + y * panel_width<T>;
      const auto own = Codes{} + static_cast<Code>(first + y);
      for (Index v = 0; v < vectors; ++v) {
        const auto fresh = load(row + v * lanes<T>) - half_norms[y];
        const Codes better = fresh > best.score[v];
        best.code[v] = better ? own : best.code[v];
        best.score[v] = better ? fresh : best.score[v];
      }
    }
    *this = best;
  }
  Index code_of(Index i) const { return static_cast<Index>(code[i / lanes<T>][i % lanes<T>]); }

  typename Vector<T>::type score[vectors];
  Codes code[vectors] = {};
};

template <class T>
Index nearest_code(Context& context, const In<T>& x, const In<T>& centres, std::span<const T> half_norms) {
  Matrix<T> scores(1, centres.rows());
  multiply_transposed<T>(context, x, centres, scores);
  Index best = 0;
  const auto score = [&](Index y) { return scores(0, y) - half_norms[static_cast<size_t>(y)]; };
  for (Index y = 1; y < centres.rows(); ++y)
    if (score(y) > score(best)) best = y;
  return best;
}

}  // namespace

template <class T>
std::vector<Index> nearest_codes(Context& context, const In<T>& X, const In<T>& centres) {
  PerRow<T> half_norms(centres.rows());
  half_squared_norms<T>(centres, half_norms);
  return nearest_codes<T>(context, X, centres, half_norms);
}

template <class T>
std::vector<Index> nearest_codes(Context& context, const In<T>& X, const In<T>& centres,
                                 std::span<const T> half_norms) {
  if (X.rows() == 1) return {nearest_code<T>(context, X, centres, half_norms)};  // one token (decoding) needs no panel
  PerRow<Index> nearest(X.rows());
  context.for_blocks(X.rows(), block_rows, [&](Context& single, Index begin, Index count) {
    Matrix<T> tile(code_block, panel_width<T>);
    for (Index row = begin; row < begin + count; row += panel_width<T>) {
      const Index vectors = std::min(panel_width<T>, begin + count - row);
      const Matrix<T> Xt = transposed<T>(row_block(X, row, vectors), panel_width<T>);
      Best<T> best;
      for (Index y = 0; y < centres.rows(); y += code_block) {
        const auto scores = row_block(tile, 0, std::min(code_block, centres.rows() - y));
        multiply<T>(single, row_block(centres, y, scores.rows()), Xt, scores);
        best.take(scores, y, half_norms.data() + y);
      }
      for (Index i = 0; i < vectors; ++i) nearest[row + i] = best.code_of(i);
    }
  });
  return nearest;
}

#define ATTNBENCH_INSTANTIATE(T)                                                      \
  template std::vector<Index> nearest_codes<T>(Context&, const In<T>&, const In<T>&); \
  template std::vector<Index> nearest_codes<T>(Context&, const In<T>&, const In<T>&, std::span<const T>);
ATTNBENCH_INSTANTIATE(float)
ATTNBENCH_INSTANTIATE(double)
#undef ATTNBENCH_INSTANTIATE

}  // namespace attnbench
