#include "harness/linalg/rounding.hpp"

namespace attnbench {

template <class T>
void round_to(Rounding rounding, Out<T> X) {
  if (rounding == Rounding::none) return;
  // By way of float: a double is first rounded to it, which changes the result only for ties of 2^-29 relative width.
  for (Index i = 0; i < X.rows(); ++i)
    if (rounding == Rounding::f16)
      X.row(i) = X.row(i).template cast<float>().template cast<Eigen::half>().template cast<float>().template cast<T>();
    else
      X.row(i) =
          X.row(i).template cast<float>().template cast<Eigen::bfloat16>().template cast<float>().template cast<T>();
}

template void round_to<float>(Rounding, Out<float>);
template void round_to<double>(Rounding, Out<double>);

}  // namespace attnbench
