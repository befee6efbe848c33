// Times the parts of one call to Python: conversion, the interpreter, and the method.
#pragma once

#include <pybind11/pybind11.h>

namespace attnbench {

// Counts conversion from the constructor until `over`, and from `back` until the destructor.
class Handing {
 public:
  Handing();
  ~Handing();
  Handing(const Handing&) = delete;
  Handing& operator=(const Handing&) = delete;
  void over();
  void back();
  // Times a call of a method that does nothing, with the same arguments (in the form of PyObject_Vectorcall).
  void time_empty_call(PyObject* const* arguments, size_t count);

 private:
  double begun_, conversion_ = 0, interpreter_ = 0;
};

// Throws std::runtime_error if the method still holds a reference to an array that it was passed: that memory is about
// to be reused.
void require_released(const pybind11::handle& array, const char* method, const char* name);

}  // namespace attnbench
