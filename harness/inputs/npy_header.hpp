// The header of one .npy array: what its bytes mean.
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

// The dictionary literal of a .npy header, {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }, padded with
// spaces and a line end. Not Python: only this form is taken. Throws Misuse beginning with `where`.
NpyHeader parse_npy_header(std::string_view text, const std::string& where);

}  // namespace attnbench
