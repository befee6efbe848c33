// Cosines and sines of a block of angles in one pass, which share the reduction of the angle.
//   x = n pi/2 + r, |r| <= pi/4; cos and sin of r by polynomials (Cephes, cosf and sinf), swapped and signed by n mod 4
#pragma once

#include "harness/linalg/products.hpp"

namespace attnbench {

// cosines_ij = factor cos x_ij and sines_ij = factor sin x_ij, where x is what `cosines` holds before. In float the
// error is below 1.2e-7 factor. Counts two exponentials for each angle.
template <class T>
void cosines_and_sines(Context& context, OutArg<T> cosines, OutArg<T> sines, T factor);

}  // namespace attnbench
