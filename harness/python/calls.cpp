#include "harness/python/calls.hpp"

#include <memory>
#include <new>
#include <utility>

#include "harness/errors/error.hpp"

namespace attnbench {

namespace py = pybind11;

namespace {
// Says what could not be allocated, and where: a device has its own memory.
class RefusedAllocation final : public std::bad_alloc {
 public:
  explicit RefusedAllocation(std::string line) : line_(std::make_shared<const std::string>(std::move(line))) {}
  const char* what() const noexcept override { return line_->c_str(); }

 private:
  std::shared_ptr<const std::string> line_;  // a copy must not allocate
};
}  // namespace

void throw_as_ours(const py::error_already_set& raised, const std::string& file) {
  std::string line;
  bool skip = false, misuse = false, memory = false;
  try {
    const py::module_ failures = py::module_::import("attnbench.failures");
    line = failures.attr("one_line")(raised.value(), raised.trace() ? raised.trace() : py::none(), file)
               .cast<std::string>();
    memory = raised.matches(PyExc_MemoryError);
    skip = raised.matches(failures.attr("SKIPS"));
    misuse = raised.matches(py::module_::import("attnbench._native").attr("Misuse"));
  } catch (const py::error_already_set& again) {  // the exception cannot even be printed
    if (raised.matches(PyExc_MemoryError)) throw std::bad_alloc();
    line = again.what();
  }
  if (memory) throw RefusedAllocation(line);
  if (skip) throw Skip(line);
  if (misuse) throw Misuse(line);
  throw std::runtime_error(line);
}

}  // namespace attnbench
