// The functions of `import attnbench` that work in its own process: methods on the caller's arrays, closed forms,
// checks.
#pragma once

#include <pybind11/numpy.h>

namespace attnbench {

// Adds the module's functions that need no runner.
void add_functions(pybind11::module_& module);

}  // namespace attnbench
