// Which code a vector is quantised to.   z_i = argmin_y |x_i - c_y| = argmax_y (x_i.c_y - |c_y|^2 / 2)   methods.md D
// Scores are computed in tiles, codes x vectors. A running maximum over the codes handles one register of vectors at a
// time, so the full score matrix is never stored. O(n c d) time, O(n) memory for the answer.
#pragma once

#include <span>
#include <vector>

#include "harness/linalg/products.hpp"

namespace attnbench {

// Ties go to the lowest index. X is n x d, centres c x d; half_norms are |c_y|^2 / 2.
template <class T>
std::vector<Index> nearest_codes(Context& context, const In<T>& X, const In<T>& centres, std::span<const T> half_norms);
template <class T>
std::vector<Index> nearest_codes(Context& context, const In<T>& X, const In<T>& centres);

}  // namespace attnbench
