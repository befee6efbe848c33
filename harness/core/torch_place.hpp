// Where and in which type a method in PyTorch computes. A class with backend = "torch" has three parameters of its spec
// for that: device (cpu, cuda, cuda:1), dtype and compile.
#pragma once

#include <string>

#include "harness/core/parameters.hpp"
#include "harness/core/problem.hpp"

namespace attnbench {

// Whether the method of a spec, or one inside it, computes by PyTorch.
bool computes_by_torch(const Params& method);
// Whether this parameter of such a method says where and in which type it computes, and nothing of the method.
bool is_torch_place(const Params& method, const std::string& parameter);
// Whether it does so on another device than the processor.
bool computes_on_device(const Params& method);
// "cuda:1"; "cpu" for every method that does not compute by PyTorch.
std::string device_of(const Params& method);
// The same method in the precision of its cell: float64 in double, float32 in float. It has a dtype of its own
// otherwise.
Params in_precision_of_cell(const Params& method);
inline constexpr double spacing_of_float16 = 0x1p-10, spacing_of_bfloat16 = 0x1p-7;
// The spacing of numbers at 1 in the type that an instance in float computes in: float's, or that of its dtype.
double spacing_of(const Params& method);
// A limit that holds in float, or 16 spacings at 1 where numbers are coarser than that.
double limit_at_dtype(const Params& method, double in_float);
// The same where the operands of products may be coarser as well.
double limit_at_precision(const Params& method, Precision precision, double in_float);

}  // namespace attnbench
