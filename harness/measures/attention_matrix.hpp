// The attention matrix of a method that is linear in V, read off the code that is timed: attend with V = I.
#pragma once

#include "harness/core/approximation.hpp"

namespace attnbench {

// A, nq x nk, as attend applies it: V = I in panels of columns. Throws NumericallyInvalid, which names the first entry
// that is NaN or infinite.
Matrix<double> attention_matrix(const Approximation<double>& method, const Head<double>& head, Mask mask,
                                Context& context);
Matrix<double> attention_matrix(const Approximation<float>& method, const Head<float>& head, Mask mask,
                                Context& context);

// Throws NumericallyInvalid, which names `what` and the first place, unless every entry is finite. If X is a block of a
// larger matrix, first_row is the block's first row there.
template <class T>
void require_finite(const In<T>& X, const std::string& what, Index first_row = 0);

}  // namespace attnbench
