#include "harness/runner/cell.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "harness/core/approximation.hpp"
#include "harness/store/environment.hpp"

namespace attnbench {

namespace {
std::string problem_key(const Problem& p) {
  const auto& s = p.shape;
  const std::string round = p.rounding == Rounding::none ? "" : " round=" + to_string(p.rounding);
  return fmt::format("nq={} nk={} d={} dv={} causal={} offset={} keys={} precision={} heads={} logit_scale={}{}", s.nq,
                     s.nk, s.d, s.dv, s.mask.causal, s.mask.offset, s.mask.keys,
                     s.precision == Precision::f32 ? "f32" : "f64", p.heads, p.logit_scale, round);
}

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
}  // namespace

std::string Cell::input_key() const {
  return fmt::format("{} {} {} seed={}", input.spec(), find<InputEntry>(input.name()).content(input),
                     problem_key(problem), seed);
}

CellRow Cell::row(bool timing) const {
  auto files = method.source_files();
  for (const auto& part : {experiment.source_files(), input.source_files()})
    files.insert(files.end(), part.begin(), part.end());
  CellRow row{.key = {},
              .experiment = experiment.spec(),
              .method = method.spec(),
              .input = input.spec(),
              .shape = problem.shape,
              .heads = problem.heads,
              .logit_scale = problem.logit_scale,
              .seed = seed,
              .threads = timing ? threads : 0,
              .parameters = parameters_json(*this),
              .source_version = source_version(files),
              .machine = timing ? this_machine() : ""};
  const std::string identity = fmt::format("{}\n{}\n{}\n{}\nthreads={}\n{}", row.experiment, row.method, input_key(),
                                           row.parameters, row.threads, row.source_version);
  row.key = fmt::format("{:016x}{:016x}", hash_bytes(identity), hash_bytes(identity + "\n"));
  if (timing) row.key = key_on(row.key, row.machine);
  return row;
}

namespace {
InputRequest input_request(const Cell& cell, Index replicate, Index head, Purpose purpose) {
  const auto& shape = cell.problem.shape;
  return {.nq = shape.nq,
          .nk = shape.nk,
          .d = shape.d,
          .dv = shape.dv,
          .streams = Streams(cell.seed),
          .head = head,
          .replicate = replicate,
          .purpose = purpose};
}
}  // namespace

HeadData<double> draw_cell_head(const Cell& cell, Index replicate, Index head, Purpose purpose) {
  auto drawn = draw_head(cell.input, input_request(cell, replicate, head, purpose), cell.problem.logit_scale);
  for (Matrix<double>* X : {&drawn.Q, &drawn.K, &drawn.V}) round_to<double>(cell.problem.rounding, *X);
  return drawn;
}

std::vector<Index> needles_of(const Cell& cell, Index replicate) {
  const auto& entry = find<InputEntry>(cell.input.name());
  if (!entry.needles) return {};
  return entry.needles(cell.input, input_request(cell, replicate, 0, Purpose::measured));
}

}  // namespace attnbench
