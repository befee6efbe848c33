#include "harness/core/torch_place.hpp"

#include <algorithm>
#include <limits>

namespace attnbench {

bool computes_by_torch(const Params& method) {
  return method.has("device") && method.has("dtype") && method.has("compile");
}

bool is_torch_place(const Params& method, const std::string& parameter) {
  return computes_by_torch(method) && (parameter == "device" || parameter == "dtype" || parameter == "compile");
}

bool computes_on_device(const Params& method) { return device_of(method) != "cpu"; }

std::string device_of(const Params& method) { return computes_by_torch(method) ? method.text("device") : "cpu"; }

Params in_precision_of_cell(const Params& method) {
  return computes_by_torch(method) ? method.with("dtype", "precision") : method;
}

double spacing_of(const Params& method) {
  const std::string dtype = computes_by_torch(method) ? method.text("dtype") : "float32";
  if (dtype == "float16") return spacing_of_float16;
  if (dtype == "bfloat16") return spacing_of_bfloat16;
  return std::numeric_limits<float>::epsilon();
}

double limit_at_dtype(const Params& method, double in_float) { return std::max(in_float, 16 * spacing_of(method)); }

double limit_at_precision(const Params& method, Precision precision, double in_float) {
  const double limit = limit_at_dtype(method, in_float);
  return precision == Precision::bf16 ? std::max(limit, 16 * spacing_of_bfloat16) : limit;
}

}  // namespace attnbench
