#include "harness/experiment/cell_row.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "harness/core/approximation.hpp"
#include "harness/core/torch_place.hpp"
#include "harness/machine/accelerator.hpp"
#include "harness/store/environment.hpp"

namespace attnbench {

namespace {
// Every parameter with its value. If two parts share a parameter name, the method's value wins over the input's, and
// the input's over the experiment's. Also records what a fitted method learnt from, and emulated half precision.
std::string parameters_json(const Cell& cell) {
  auto object = nlohmann::json::object();
  const auto add = [&](const Params& params) {
    for (const auto& [name, value] : params.values())
      if (!object.contains(name)) {
        // Most values are words, and passing each to the JSON parser would take half of the time per row.
        const bool may_be_number = !value.empty() && (value[0] == '-' || (value[0] >= '0' && value[0] <= '9'));
        const auto number = may_be_number ? nlohmann::json::parse(value, nullptr, false) : nlohmann::json();
        object[name] = number.is_number() ? number : nlohmann::json(value);
      }
  };
  add(cell.method);
  add(cell.input);
  add(cell.experiment);
  if (find<MethodEntry>(cell.method.name()).fitted(cell.method))
    object["calibration"] = has_calibration(cell.input) ? "held out" : "in sample";
  if (cell.problem.rounding != Rounding::none) object["round"] = to_string(cell.problem.rounding);
  return object.dump();
}

// These files decide the order of the turns and which turns count as disturbed. Their own includes are not followed:
// the workers and the store decide no number, and the experiments' sources already include the code that times a turn.
const std::vector<std::string> timing_sources{"harness/workers/timing_session.cpp", "harness/machine/load.cpp",
                                              "harness/timing/session.cpp"};
const std::vector<std::string> none;

// A device is a machine of its own: times on it say nothing of those on the processor beside it.
std::string machine_of(const Params& method) {
  if (!computes_on_device(method)) return this_machine();
  return fmt::format("{}, {}", this_machine(), accelerator_name(device_of(method)));
}
}  // namespace

CellRow row_of(const Cell& cell, bool timing) {
  auto files = cell.method.source_files();
  // Every cell depends on softmax: errors are against it, and speedups are over it.
  static const Params exact("methods", "softmax");
  for (const auto& part : {cell.experiment.source_files(), cell.input.source_files(), exact.source_files()})
    files.insert(files.end(), part.begin(), part.end());
  CellRow row{.key = {},
              .experiment = cell.experiment.spec(),
              .method = cell.method.spec(),
              .input = cell.input.spec(),
              .shape = cell.problem.shape,
              .heads = cell.problem.heads,
              .logit_scale = cell.problem.logit_scale,
              .seed = cell.seed,
              .threads = timing ? cell.threads : 0,
              .parameters = parameters_json(cell),
              .source_version = source_version(files, timing ? timing_sources : none),
              .machine = timing ? machine_of(cell.method) : ""};
  const std::string identity = fmt::format("{}\n{}\n{}\n{}\nthreads={}\n{}", row.experiment, row.method,
                                           cell.input_key(), row.parameters, row.threads, row.source_version);
  row.key = fmt::format("{:016x}{:016x}", hash_bytes(identity), hash_bytes(identity + "\n"));
  if (timing) row.key = key_on(row.key, row.machine);
  return row;
}

}  // namespace attnbench
