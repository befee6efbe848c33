#include "harness/python/calls.hpp"

#include <new>

#include "harness/errors/error.hpp"

namespace attnbench {

namespace py = pybind11;

void throw_as_ours(const py::error_already_set& raised, const std::string& file) {
  if (raised.matches(PyExc_MemoryError)) throw std::bad_alloc();
  std::string line;
  bool skip = false, misuse = false;
  try {
    const py::module_ failures = py::module_::import("attnbench.failures");
    line = failures.attr("one_line")(raised.value(), raised.trace() ? raised.trace() : py::none(), file)
               .cast<std::string>();
    skip = raised.matches(failures.attr("SKIPS"));
    misuse = raised.matches(py::module_::import("attnbench._native").attr("Misuse"));
  } catch (const py::error_already_set& again) {  // the exception cannot even be printed
    line = again.what();
  }
  if (skip) throw Skip(line);
  if (misuse) throw Misuse(line);
  throw std::runtime_error(line);
}

}  // namespace attnbench
