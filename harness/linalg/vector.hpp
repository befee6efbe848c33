// Vector registers of the machine that this is compiled for, by the compilers' own vector types.
#pragma once

#include <cstring>

#include "harness/linalg/matrix.hpp"

namespace attnbench {

#if defined(__AVX512F__)
constexpr int vector_bytes = 64;
#elif defined(__AVX__)
constexpr int vector_bytes = 32;
#else
constexpr int vector_bytes = 16;
#endif

template <class T>
constexpr Index lanes = vector_bytes / static_cast<Index>(sizeof(T));

// The next multiple of a vector's numbers.
template <class T>
constexpr Index in_whole_vectors(Index count) {
  return (count + lanes<T> - 1) / lanes<T> * lanes<T>;
}

template <class T>
struct Vector {
  typedef T type __attribute__((vector_size(vector_bytes)));
};

template <class T>
typename Vector<T>::type load(const T* p) {
  typename Vector<T>::type v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class T>
void store(T* p, const typename Vector<T>::type& v) {
  std::memcpy(p, &v, sizeof v);
}

}  // namespace attnbench
