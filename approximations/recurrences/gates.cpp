#include "approximations/recurrences/gates.hpp"

#include <fmt/format.h>

#include <cmath>

namespace attnbench {

template <class T>
GateLogits<T>::GateLogits(const Draw& draw, Index gates) {
  const Index d = draw.shape.d;
  if (const auto* given = draw.injected("W", gates, d)) {
    W_ = given->template cast<T>();
    return;
  }
  auto generator = draw.streams.stream("gates", draw.params.name(), draw.head, draw.replicate);
  const double deviation = std::pow(static_cast<double>(d), -0.25);
  W_ = (deviation * standard_normal(generator, gates, d)).template cast<T>();
}

template <class T>
Matrix<T> GateLogits<T>::of(const In<T>& K, Context& context) const {
  Matrix<T> z(K.rows(), W_.rows());
  multiply_transposed<T>(context, K, W_, z);
  return z;
}

template <class T>
void GateLogits<T>::pull(const In<T>& slopes, Context& context, Out<T> dK) const {
  multiply_add<T>(context, slopes, W_, dK);
}

template <class T>
Matrix<T> given_gates(const Head<T>& head, const std::string& name, double most) {
  const Matrix<double>& gates = head.needed(name);
  for (Index t = 0; t < gates.rows(); ++t)
    for (Index c = 0; c < gates.cols(); ++c)
      if (!(gates(t, c) >= 0 && gates(t, c) <= most))
        throw Misuse(
            fmt::format("'{}' is {} in row {}, column {}; expected gates from 0 to {}", name, gates(t, c), t, c, most));
  return gates.template cast<T>();
}

Parameter gates_parameter(const std::string& law) {
  return Parameter::choice("gates", "law", "law: " + law + ", with drawn weights; given: with the head",
                           {"law", "given"});
}

Need keep_need() {
  return {.name = "keep",
          .values = Need::Values::uniform,
          .meaning = "the share of the state that stays when the token comes, from 0 to 1",
          .when = {"gates", "given"}};
}

Need write_need() {
  return {.name = "write",
          .values = Need::Values::uniform,
          .meaning = "the strength with which the token writes its value",
          .when = {"gates", "given"}};
}

template class GateLogits<float>;
template class GateLogits<double>;
template Matrix<float> given_gates<float>(const Head<float>&, const std::string&, double);
template Matrix<double> given_gates<double>(const Head<double>&, const std::string&, double);

}  // namespace attnbench
