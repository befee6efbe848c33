// The streams that laws draw from, one per tensor: Q does not change with nk or dv. Rows are drawn in order, so that
// the rows of a smaller n are the first rows of a larger one.
#pragma once

#include "harness/inputs/input.hpp"

namespace attnbench {

// For numbers that differ between the measured and the calibration head: the tokens.
inline Generator token_stream(const Params& law, const InputRequest& request, std::string_view tensor) {
  const std::string_view purpose = request.purpose == Purpose::measured ? "measured" : "calibration";
  return request.streams.stream("input", law.name(), law.spec(), purpose, tensor, request.head, request.replicate);
}

// For numbers that both share, as two texts share the model that reads them: centres, a subspace.
inline Generator shared_stream(const Params& law, const InputRequest& request, std::string_view structure) {
  return request.streams.stream("input", law.name(), law.spec(), "shared", structure, request.head, request.replicate);
}

// rows x columns independent N(0, 1) numbers from the tensor's own stream.
inline Matrix<double> normal_rows(const Params& law, const InputRequest& request, std::string_view tensor, Index rows,
                                  Index columns) {
  Generator generator = token_stream(law, request, tensor);
  return standard_normal(generator, rows, columns);
}

}  // namespace attnbench
