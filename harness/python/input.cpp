// A class with draw(self, shape, seed) becomes an input.
#include <fmt/format.h>

#include "harness/python/arrays.hpp"
#include "harness/python/calls.hpp"
#include "harness/python/entries.hpp"

namespace attnbench {

namespace py = pybind11;

namespace {

// The measured head and the one that fitted methods learn from have different seeds.
std::uint32_t seed_of(const Declared& declared, const Params& params, const InputRequest& request) {
  const char* purpose = request.purpose == Purpose::measured ? "measured" : "calibration";
  Generator generator = request.streams.stream("python input", declared.text.name, params.spec(), purpose, request.head,
                                               request.replicate);
  return static_cast<std::uint32_t>(generator() >> 32);  // the most that NumPy's older generator takes
}

// Calls a function of the class with its parameters, the sizes and the seed.
py::object called(const char* function, const Declared& declared, const Params& params, const InputRequest& request) {
  return py::handle(declared.object)
      .attr(function)(py::reinterpret_steal<py::dict>(declared.values(params)),
                      py::make_tuple(request.nq, request.nk, request.d, request.dv),
                      seed_of(declared, params, request));
}

HeadData<double> draw(const Declared& declared, const std::vector<Need>& provides, const Params& params,
                      const InputRequest& request) {
  HeadData<double> head{Matrix<double>(request.nq, request.d), Matrix<double>(request.nk, request.d),
                        Matrix<double>(request.nk, request.dv)};
  in_python(declared.file, [&] {
    const py::tuple arrays = called("draw", declared, params, request);
    copy_result<double>(py::object(arrays[0]), head.Q, "q of draw(shape, seed)");
    copy_result<double>(py::object(arrays[1]), head.K, "k of draw(shape, seed)");
    copy_result<double>(py::object(arrays[2]), head.V, "v of draw(shape, seed)");
    const Shape shape{.nq = request.nq, .nk = request.nk, .d = request.d, .dv = request.dv};
    for (const Need& given : provides) {
      const auto [rows, columns] = size_of(given, shape);
      Matrix<double> numbers(rows, columns);
      const std::string name = fmt::format("'{}' of draw(shape, seed)", given.name);
      copy_result<double>(py::object(arrays[3][py::str(given.name)]), numbers, name);
      head.extra[given.name] = extra_of(given, std::move(numbers));
    }
  });
  return head;
}

}  // namespace

InputEntry input_entry(const DeclaredClass& declared, bool aims, bool causal, const std::vector<Need>& provides) {
  InputEntry entry{
      .text = declared->text,
      .parameters = declared->parameters,
      .draw = [declared, provides](const Params& params,
                                   const InputRequest& request) { return draw(*declared, provides, params, request); },
      .provides = provides,
      .causal_by_default = causal};
  if (aims)
    entry.needles = [declared](const Params& params, const InputRequest& request) {
      return in_python(declared->file, [&] {
        std::vector<Index> keys;
        for (const py::handle key : called("needles", *declared, params, request)) keys.push_back(key.cast<Index>());
        return keys;
      });
    };
  return entry;
}

}  // namespace attnbench
