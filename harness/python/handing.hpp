// The clock of one call of Python: what is conversion, what is the interpreter's, and what is the method's.
#pragma once

#include <pybind11/pybind11.h>

namespace attnbench {

// Conversion lasts from when one is made until `over`, and from `back` until it ends.
class Handing {
 public:
  Handing();
  ~Handing();
  Handing(const Handing&) = delete;
  Handing& operator=(const Handing&) = delete;
  void over();
  void back();
  // Calls a method that does nothing with the same arguments, as PyObject_Vectorcall takes them.
  void time_empty_call(PyObject* const* arguments, size_t count);

 private:
  double begun_, conversion_ = 0, interpreter_ = 0;
};

// What a method has kept of an array that it was given will be somebody else's memory: throws std::runtime_error.
void require_released(const pybind11::handle& array, const char* method, const char* name);

}  // namespace attnbench
