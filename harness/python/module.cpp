// attnbench._native: the harness as a Python module, with everything that the program has. scripts/attnbench wraps it.
#include <fmt/format.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <iostream>
#include <sstream>

#include "harness/cli/command.hpp"
#include "harness/cli/program.hpp"
#include "harness/core/entry_names.hpp"
#include "harness/machine/device_facts.hpp"
#include "harness/plugins/plugins.hpp"
#include "harness/python/calls.hpp"
#include "harness/python/entries.hpp"
#include "harness/python/in_process.hpp"
#include "harness/python/recording.hpp"
#include "harness/store/export.hpp"
#include "harness/store/store.hpp"
#include "harness/timing/handover.hpp"
#include "harness/workers/serve.hpp"

namespace attnbench {

namespace py = pybind11;

namespace {

// Runs the program with argv. Flushes C++'s output, because Python may exit without doing so.
int run(std::vector<std::string> words) {
  const py::gil_scoped_release released;
  worker_process = getpid();
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const int code = run_program(static_cast<int>(words.size()), argv.data());
  std::cout.flush();
  std::fflush(nullptr);
  return code;
}

// Captures everything printed to std::cout while it lives.
class Captured {
 public:
  Captured() : before_(std::cout.rdbuf(text_.rdbuf())) {}
  ~Captured() { std::cout.rdbuf(before_); }
  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  std::streambuf* before_;
};

// Runs a command in this process, with workers that run this interpreter. Returns its exit code and its output.
std::pair<int, std::string> command(const std::vector<std::string>& words, const std::string& interpreter) {
  const py::gil_scoped_release released;
  run_workers_by(interpreter);
  const Captured captured;
  const int code = run_command_line(words);
  return {code, captured.text()};
}

// The table that `attnbench export` writes, as CSV.
std::string table(const std::string& file, const std::vector<std::string>& metrics,
                  const std::vector<std::pair<std::string, std::string>>& where, bool wide, bool arrays, bool clock) {
  const py::gil_scoped_release released;
  ExportRequest request{.metrics = metrics, .wide = wide, .arrays = arrays, .clock = clock};
  for (const auto& [column, value] : where) request.where.push_back({column, value});
  std::ostringstream text;
  Store::open_existing(file).export_table(text, request);
  return text.str();
}

Parameter parameter_of(const py::handle& p) {
  const auto name = p.attr("name").cast<std::string>(), kind = p.attr("kind").cast<std::string>(),
             help = p.attr("help").cast<std::string>();
  const double minimum = p.attr("minimum").cast<double>(), maximum = p.attr("maximum").cast<double>();
  const py::object value = p.attr("default");
  Parameter made = kind == "integer"  ? Parameter::integer(name, value.cast<long>(), help, minimum, maximum)
                   : kind == "real"   ? Parameter::real(name, value.cast<double>(), help, minimum, maximum)
                   : kind == "flag"   ? Parameter::flag(name, value.cast<bool>(), help)
                   : kind == "choice" ? Parameter::choice(name, value.cast<std::string>(), help,
                                                          p.attr("choices").cast<std::vector<std::string>>())
                                      : Parameter::text(name, value.cast<std::string>(), help);
  made.budget = p.attr("budget").cast<bool>();
  made.numerics = p.attr("numerics").cast<bool>();
  made.published = p.attr("published").cast<bool>();
  return made;
}

std::vector<Need> needs_of(const py::handle& declared) {
  std::vector<Need> needs;
  for (const auto& [name, rows, columns, values, meaning] :
       declared.cast<std::vector<std::tuple<std::string, std::string, std::string, std::string, std::string>>>())
    needs.push_back({name, rows, columns,
                     values == "uniform"     ? Need::Values::uniform
                     : values == "positions" ? Need::Values::positions
                                             : Need::Values::normal,
                     meaning});
  return needs;
}

void read_abilities(const py::object& object, Declared& declared) {
  const auto flag = [&](const char* name) { return object.attr(name).cast<bool>(); };
  declared.attends = flag("attends");
  declared.maps = flag("maps");
  declared.exponents = flag("exponents");
  declared.takes_causal = flag("takes_causal");
  declared.fitted = flag("fitted");
  declared.asks_for_seed = flag("asks_for_seed");
  declared.has_theory = flag("has_theory");
  declared.has_variance = flag("has_variance");
  declared.gives_memory = flag("gives_memory");
  declared.gives_cost = flag("gives_cost");
  declared.batched = flag("batched");
  declared.mixes_heads = flag("mixes_heads");
  declared.gives_kernel = flag("gives_kernel");
  declared.decodes = flag("decodes");
  declared.differentiates = flag("differentiates");
  declared.transcribes = flag("transcribes");
  declared.gives_decoder_bytes = flag("gives_decoder_bytes");
  declared.has_golden = flag("has_golden");
  declared.needs = needs_of(object.attr("needs"));
}

DeclaredClass declared_class(const py::object& object) {
  Declared declared;
  const auto text = [&](const char* name) { return object.attr(name).cast<std::string>(); };
  declared.text = {.name = text("name"),
                   .printed = text("printed"),
                   .summary = text("summary"),
                   .formula = text("formula"),
                   .reference = text("reference"),
                   .cost = text("cost_text"),
                   .family = text("family"),
                   .departure = text("departure")};
  for (const py::handle p : object.attr("parameters")) declared.parameters.push_back(parameter_of(p));
  declared.file = text("file");
  declared.files = object.attr("files").cast<std::vector<std::string>>();
  if (text("kind") == "method") read_abilities(object, declared);
  declared.object = py::object(object).release().ptr();
  return std::make_shared<const Declared>(std::move(declared));
}

std::vector<Metric> metrics_of(const py::object& object) {
  std::vector<Metric> metrics;
  for (const auto& [name, unit, text] :
       object.attr("metrics").cast<std::vector<std::tuple<std::string, std::string, std::string>>>())
    metrics.push_back({name, unit, text});
  return metrics;
}

// If a notebook's cell runs again with a changed class, the entry of the same file is replaced.
template <class Entry>
void put(Entry entry, const Declared& declared, bool again) {
  const auto& name = entry.text.name;
  const auto names = catalogue(Entry::plural).names();
  const bool there = std::find(names.begin(), names.end(), name) != names.end();
  if (there && again && catalogue(Entry::plural).source_files(name).front() == declared.file)
    Registry<Entry>::instance().replace(std::move(entry), declared.files);
  else if (there && again)
    throw Misuse(fmt::format("the name of {} '{}' is taken ({}); give it another", Entry::kind, name,
                             catalogue(Entry::plural).source_files(name).front()));
  else
    Registry<Entry>::instance().add(std::move(entry), declared.files);
}

// Throws Misuse for names that cannot be used, before it registers anything. again: an entry that the same file made is
// replaced, and a name taken by another file is Misuse. Otherwise a taken name is recorded among the duplicate
// registrations, which the loader of the plugin checks.
void register_class(const py::object& object, bool again) {
  const DeclaredClass declared = declared_class(object);
  const auto put_one = [&](auto entry) {
    refuse_unusable_names(entry.plural, entry.text, entry.parameters);
    put(std::move(entry), *declared, again);
  };
  const auto kind = object.attr("kind").cast<std::string>();
  const auto flag = [&](const char* name) { return object.attr(name).cast<bool>(); };
  if (kind == "input")
    return put_one(input_entry(declared, flag("aims"), flag("causal"), needs_of(object.attr("provides"))));
  if (kind == "experiment") return put_one(experiment_entry(declared, metrics_of(object), flag("matrices")));
  if (declared->maps) put_one(features_entry(declared));
  put_one(declared->attends ? method_with_attend(declared) : method_of_features(declared));
}

void set_loader(const py::function& load) {
  PyObject* const kept = py::function(load).release().ptr();
  set_python_loader([kept](const std::filesystem::path& file) {
    const py::handle call = kept;
    in_python(file.string(), [&] { call(file.string()); });
  });
}

// Sets the plugins that workers of this process load.
void set_files(const std::vector<std::string>& files, const std::string& interpreter) {
  set_plugins({.files = {files.begin(), files.end()}, .python = interpreter});
}

template <class Exception>
void add_exception(py::module_& module, const char* name, PyObject* base, const char* meaning) {
  const auto& exception = py::register_exception<Exception>(module, name, base);
  exception.attr("__doc__") = meaning;
  exception.attr("__module__") = "attnbench";  // the module where users find it
}

}  // namespace
}  // namespace attnbench

PYBIND11_MODULE(_native, module) {
  using namespace attnbench;
  add_exception<Misuse>(module, "Misuse", PyExc_ValueError,
                        "The request is impossible: says what was given, what was expected and how to fix it.");
  add_exception<NumericallyInvalid>(module, "NumericallyInvalid", PyExc_ArithmeticError,
                                    "A method gave NaN or infinity; names the first place.");
  module.def("run", run);
  module.def("command", command);
  module.def("table", table);
  module.def("register", register_class);
  module.def("set_loader", set_loader);
  module.def("set_plugins", set_files);
  module.def("plugins", [] {
    std::vector<std::string> files;
    for (const auto& file : plugins().files) files.push_back(file.string());
    return files;
  });
  module.def("load_library", [](const std::string& file) { load_plugin(file); });
  module.def("set_spoilt", [](const py::function& spoilt) {
    PyObject* const kept = py::function(spoilt).release().ptr();
    set_spoilt([kept] { return in_python("", [&] { return py::handle(kept)().cast<bool>(); }); });
  });
  module.def("add_conversion", [](double seconds) { add_handover(seconds, 0); });
  module.def("tell_device", [](const std::optional<double>& peak_bytes, const std::string& backend,
                               const std::optional<std::array<double, 3>>& rates) {
    std::optional<Rates> of_device;
    if (rates) of_device = Rates{.fma_peak = (*rates)[0], .exp_rate = (*rates)[1], .bandwidth = (*rates)[2]};
    tell_device({peak_bytes, backend, of_device});
  });
  module.attr("__version__") = ATTNBENCH_VERSION;
  add_functions(module);
  add_recording(module);
}
