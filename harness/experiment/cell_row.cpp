#include "harness/experiment/cell_row.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "harness/core/approximation.hpp"
#include "harness/store/environment.hpp"

namespace attnbench {

namespace {
// Every parameter with its value; when two of the three parts share a name, method goes before input before experiment.
// Fitted methods also say what they learnt from, and half precision is a parameter as well.
std::string parameters_json(const Cell& cell) {
  auto object = nlohmann::json::object();
  const auto add = [&](const Params& params) {
    for (const auto& [name, value] : params.values())
      if (!object.contains(name)) {
        // Most values are words; asking the parser about each would be half of the time of a row.
        const bool may_be_number = !value.empty() && (value[0] == '-' || (value[0] >= '0' && value[0] <= '9'));
        const auto number = may_be_number ? nlohmann::json::parse(value, nullptr, false) : nlohmann::json();
        object[name] = number.is_number() ? number : nlohmann::json(value);
      }
  };
  add(cell.method);
  add(cell.input);
  add(cell.experiment);
  if (find<MethodEntry>(cell.method.name()).fitted(cell.method))
    object["calibration"] = find<InputEntry>(cell.input.name()).has_calibration ? "held out" : "in sample";
  if (cell.problem.rounding != Rounding::none) object["round"] = to_string(cell.problem.rounding);
  return object.dump();
}

// They decide in which order turns are timed and which turns were disturbed. They count alone: of what they include,
// the workers and the store decide no number, and what times a turn is included by the experiments.
const std::vector<std::string> timing_sources{"harness/workers/timing_session.cpp", "harness/machine/load.cpp",
                                              "harness/timing/session.cpp"};
const std::vector<std::string> none;
}  // namespace

CellRow row_of(const Cell& cell, bool timing) {
  auto files = cell.method.source_files();
  // Errors are against softmax, and speedups over it.
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
              .machine = timing ? this_machine() : ""};
  const std::string identity = fmt::format("{}\n{}\n{}\n{}\nthreads={}\n{}", row.experiment, row.method,
                                           cell.input_key(), row.parameters, row.threads, row.source_version);
  row.key = fmt::format("{:016x}{:016x}", hash_bytes(identity), hash_bytes(identity + "\n"));
  if (timing) row.key = key_on(row.key, row.machine);
  return row;
}

}  // namespace attnbench
