#include "harness/python/handing.hpp"

#include <fmt/format.h>

#include <chrono>
#include <stdexcept>

#include "harness/timing/handover.hpp"

namespace attnbench {

namespace py = pybind11;

namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

PyObject* empty_method() {
  static PyObject* const method =
      py::object(py::module_::import("attnbench.method").attr("Empty")().attr("attend")).release().ptr();
  return method;
}

}  // namespace

Handing::Handing() : begun_(now()) {}
Handing::~Handing() { add_handover(conversion_ + now() - begun_, interpreter_); }
void Handing::over() { conversion_ += now() - begun_; }
void Handing::back() { begun_ = now(); }

void Handing::time_empty_call(PyObject* const* arguments, size_t count) {
  const double begin = now();
  Py_XDECREF(PyObject_Vectorcall(empty_method(), arguments, count, nullptr));
  interpreter_ = now() - begin;
}

void require_released(const py::handle& array, const char* method, const char* name) {
  if (Py_REFCNT(array.ptr()) == 1) return;
  py::module_::import("gc").attr("collect")();  // an array held only by a reference cycle does not count as kept
  if (Py_REFCNT(array.ptr()) == 1) return;
  throw std::runtime_error(fmt::format(
      "{0} keeps {1}, or a view of it, beyond the call, and its memory is the caller's; keep a copy: {1}.copy()",
      method, name));
}

}  // namespace attnbench
