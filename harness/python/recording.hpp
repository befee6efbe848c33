// Rows of a results file for numbers that the caller of `import attnbench` has measured.
#pragma once

#include <pybind11/pybind11.h>

namespace attnbench {

// Adds the module's function `record`.
void add_recording(pybind11::module_& module);

}  // namespace attnbench
