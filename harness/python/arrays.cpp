#include "harness/python/arrays.hpp"

#include <fmt/format.h>

#include <stdexcept>

namespace attnbench {

namespace py = pybind11;

namespace {

std::string shape_text(const py::array& array) {
  std::string text;
  for (py::ssize_t axis = 0; axis < array.ndim(); ++axis)
    text += fmt::format("{}{}", axis == 0 ? "" : ", ", array.shape(axis));
  return fmt::format("({}{})", text, array.ndim() == 1 ? "," : "");
}

template <class T, class Number>
void copy_numbers(const py::array& array, Out<T> out) {
  const auto numbers = py::array_t<Number, py::array::c_style | py::array::forcecast>::ensure(array);
  if (!numbers) throw py::error_already_set();
  const Eigen::Map<const Matrix<Number>> from(numbers.data(), out.rows(), out.cols());
  if constexpr (std::is_same_v<T, Number>)
    out = from;
  else
    out = from.template cast<T>();
}

}  // namespace

template <class T>
py::array view(const In<T>& X) {
  constexpr auto size = static_cast<py::ssize_t>(sizeof(T));
  // Any base object tells NumPy that it does not own the memory; without a base NumPy would copy it.
  py::array array(py::dtype::of<T>(), {X.rows(), X.cols()}, {size * X.outerStride(), size}, X.data(), py::none());
  py::detail::array_proxy(array.ptr())->flags &= ~py::detail::npy_api::NPY_ARRAY_WRITEABLE_;
  return array;
}

template py::array view<float>(const In<float>&);
template py::array view<double>(const In<double>&);

template <class T>
py::array copied(const In<T>& X) {
  py::array_t<T> array({X.rows(), X.cols()});
  Eigen::Map<Matrix<T>>(array.mutable_data(), X.rows(), X.cols()) = X;
  return array;
}

template py::array copied<float>(const In<float>&);
template py::array copied<double>(const In<double>&);

template <class T>
void copy_result(const py::object& result, Out<T> out, const std::string& source) {
  const auto refuse = [&](const std::string& returned) {
    throw std::runtime_error(fmt::format("{} returned {}; expected an array of shape ({}, {}) and type {}", source,
                                         returned, out.rows(), out.cols(), sizeof(T) == 4 ? "float32" : "float64"));
  };
  if (result.is_none()) refuse("None");
  // Other types, such as a torch tensor, become an array, without a copy if possible.
  const py::array array = py::isinstance<py::array>(result)
                              ? py::reinterpret_borrow<py::array>(result)
                              : py::array(py::module_::import("numpy").attr("asarray")(result));
  if (array.ndim() != 2 || array.shape(0) != out.rows() || array.shape(1) != out.cols())
    refuse(array.ndim() == 0 ? fmt::format("a {}", py::str(py::type::of(result).attr("__name__")).cast<std::string>())
                             : "an array of shape " + shape_text(array));
  if (array.dtype().kind() != 'f') refuse("an array of type " + py::str(array.dtype()).cast<std::string>());
  // Not by itemsize(), which this pybind11 reads at the place that NumPy 1 had it.
  if (py::isinstance<py::array_t<float>>(array))
    copy_numbers<T, float>(array, out);
  else
    copy_numbers<T, double>(array, out);
}

template void copy_result<float>(const py::object&, Out<float>, const std::string&);
template void copy_result<double>(const py::object&, Out<double>, const std::string&);

}  // namespace attnbench
