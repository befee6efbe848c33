// Matrices as NumPy sees them, and what it gives back.
#pragma once

#include <pybind11/numpy.h>

#include <string>

#include "harness/linalg/matrix.hpp"

namespace attnbench {

// The same memory, read-only: what a method changes would be changed for all others. It must not outlive X.
template <class T>
pybind11::array view(const In<T>& X);

// A copy.
template <class T>
pybind11::array copied(const In<T>& X);

// Copies the numbers of what a method returned into `out`, of its shape. float32, float64 and float16 are taken,
// anything else throws std::runtime_error: what was returned, and what was expected. source: "attend(q, k, v, causal)".
template <class T>
void copy_result(const pybind11::object& result, Out<T> out, const std::string& source);

}  // namespace attnbench
