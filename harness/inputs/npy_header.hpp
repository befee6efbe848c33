// The header of a .npy array, which describes its bytes.
#pragma once

#include <string_view>

#include "harness/inputs/tensor_formats.hpp"

namespace attnbench {

struct NpyHeader {
  FloatFormat format = FloatFormat::float64;
  std::endian order = std::endian::little;
  bool fortran_order = false;
  std::vector<Index> shape;
};

// Parses the dictionary literal of a .npy header, {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }, padded
// with spaces and a line end. Accepts only this form, not Python in general. Throws Misuse beginning with `where`.
NpyHeader parse_npy_header(std::string_view text, const std::string& where);

}  // namespace attnbench
