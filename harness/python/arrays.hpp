// Converts matrices to NumPy arrays and back.
#pragma once

#include <pybind11/numpy.h>

#include <string>
#include <vector>

#include "harness/linalg/matrix.hpp"

namespace attnbench {

// A read-only view of the same memory: a method that changed it would change it for all others. It must not outlive X.
template <class T>
pybind11::array view(const In<T>& X);

// An array of one axis. array_t<T>(n) of this pybind11 looks for the size of a number where NumPy 1 had it, so that
// with NumPy 2 all elements lie at one place.
template <class T>
pybind11::array_t<T> vector_of_size(Index n) {
  return pybind11::array_t<T>(std::vector<pybind11::ssize_t>{n});
}

// A copy.
template <class T>
pybind11::array copied(const In<T>& X);

// Copies the numbers that a method returned into `out`, which must have the same shape. Accepts float32, float64 and
// float16. Anything else throws std::runtime_error, which says what was returned and what was expected. source:
// "attend(q, k, v, causal)".
template <class T>
void copy_result(const pybind11::object& result, Out<T> out, const std::string& source);

}  // namespace attnbench
