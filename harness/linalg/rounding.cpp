#include "harness/linalg/rounding.hpp"

#include "harness/errors/error.hpp"

namespace attnbench {

template <class T>
void round_to(Rounding rounding, Out<T> X) {
  if (rounding == Rounding::none) return;
  // Via float: rounding a double to float first changes the result only for ties of 2^-29 relative width.
  for (Index i = 0; i < X.rows(); ++i)
    if (rounding == Rounding::f16)
      X.row(i) = X.row(i).template cast<float>().template cast<Eigen::half>().template cast<float>().template cast<T>();
    else
      X.row(i) =
          X.row(i).template cast<float>().template cast<Eigen::bfloat16>().template cast<float>().template cast<T>();
}

Rounding parse_rounding(const std::string& text) {
  for (const Rounding rounding : {Rounding::none, Rounding::f16, Rounding::bf16})
    if (text == to_string(rounding)) return rounding;
  throw Misuse("round " + text + ": expected none, f16 or bf16");
}

std::string to_string(Rounding rounding) {
  return rounding == Rounding::f16 ? "f16" : rounding == Rounding::bf16 ? "bf16" : "none";
}

template void round_to<float>(Rounding, Out<float>);
template void round_to<double>(Rounding, Out<double>);

}  // namespace attnbench
