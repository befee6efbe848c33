// Weights that depend on positions, not on content: one row of weights per query. A model learns them; here they are
// drawn. Row i of a head has position i + offset, so that a part of a sequence has the same weights as in the whole.
// A model has positions 0 to n - 1, those of the keys; other rows have no weights (no_weights_for_rows).
#pragma once

#include "harness/core/approximation.hpp"

namespace attnbench {

// The caveat of every method with such weights.
inline const std::string drawn_not_trained =
    "its weights are drawn, not trained: its output says what such a mixer costs and what rank it has, not what it "
    "learns";

// Positions [begin, end).
struct Positions {
  Index begin, end;
  Index size() const { return end - begin; }
};
// The positions of a head's rows, without those below 0: these rows see no key.
inline Positions positions_of_rows(Index nq, Mask mask) {
  const Index begin = std::max<Index>(0, mask.offset);
  return {begin, std::max(begin, nq + mask.offset)};
}

// The reason why a method with per-row weights has no form for this shape; empty if it has one.
std::string no_weights_for_rows(const Shape& shape);
// Throws Misuse when an instance with weights for `drawn` is asked for rows elsewhere.
void require_drawn(const Positions& drawn, const Positions& asked, const std::string& method);

// Standard normal numbers times `scale`, positions.size() x columns. Each position has its own stream, so that a longer
// sequence extends a shorter one's rows and columns. In the instance's scalar type, since n^2 numbers take much memory.
template <class T>
Matrix<T> rows_by_position(const Draw& draw, const char* name, Positions positions, Index columns, double scale);

// The same from one stream, row by row: more rows extend the matrix, more columns change it.
template <class T>
Matrix<T> rows_in_order(const Draw& draw, const std::string& name, Index rows, Index columns, double scale);

// The matrix that is injected under that name, or a matrix filled with that value.
template <class T>
Matrix<T> constant_unless_injected(const Draw& draw, const std::string& name, Index rows, Index columns, double value);

}  // namespace attnbench
