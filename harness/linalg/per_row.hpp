// One number for each row of a matrix (or for each of its columns), indexed as its rows are.
#pragma once

#include <concepts>
#include <vector>

#include "harness/linalg/matrix.hpp"

namespace attnbench {

// A std::vector that takes Eigen's Index as well as size_t.
template <class T>
class PerRow : public std::vector<T> {
 public:
  PerRow() = default;
  explicit PerRow(Index rows, T value = T()) : std::vector<T>(static_cast<size_t>(rows), value) {}

  T& operator[](std::integral auto row) { return std::vector<T>::operator[](static_cast<size_t>(row)); }
  const T& operator[](std::integral auto row) const { return std::vector<T>::operator[](static_cast<size_t>(row)); }
};

}  // namespace attnbench
