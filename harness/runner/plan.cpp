#include "harness/runner/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "harness/core/approximation.hpp"
#include "harness/core/error.hpp"
#include "harness/inputs/memory_limit.hpp"
#include "harness/runner/experiment.hpp"

namespace attnbench {

namespace {

constexpr size_t most_axis_values = 100'000;
constexpr size_t most_cells = 1'000'000;  // about 3 KB each

const std::vector<std::string>& problem_axes() {
  static const std::vector<std::string> names{"n", "d", "dv", "heads", "logit_scale", "round"};
  return names;
}

void refuse_beyond_most_cells(double cells) {
  if (cells > static_cast<double>(most_cells))
    throw Misuse(fmt::format("{:.0f} cells were asked for; at most {} are made: narrow the sweep", cells, most_cells));
}

template <class Number>
Number number(const std::string& axis, std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw Misuse(
        fmt::format("--sweep {}: '{}' is not a number of the expected kind; expected {}=16,32,64, "
                    "{}=1024:65536:x2 or {}=64:512:+64",
                    axis, text, axis, axis, axis));
  return value;
}

// "first:last:x2" or "first:last:+64"; integers only.
std::vector<std::string> range_values(const std::string& axis, std::string_view text) {
  const size_t a = text.find(':'), b = text.find(':', a + 1);
  if (b == std::string_view::npos || b + 2 > text.size() || (text[b + 1] != 'x' && text[b + 1] != '+'))
    throw Misuse(fmt::format("--sweep {}={}: a range reads first:last:xFACTOR or first:last:+STEP", axis, text));
  const auto first = number<Index>(axis, text.substr(0, a));
  const auto last = number<Index>(axis, text.substr(a + 1, b - a - 1));
  const auto step = number<Index>(axis, text.substr(b + 2));
  const bool factor = text[b + 1] == 'x';
  if (step < (factor ? 2 : 1) || first < (factor ? 1 : 0) || last < first || last > 1'000'000'000'000)
    throw Misuse(
        fmt::format("--sweep {}={}: expected 0 <= first <= last <= 10^12 and a factor of at least 2 or a step "
                    "of at least 1",
                    axis, text));
  if (!factor && (last - first) / step >= static_cast<Index>(most_axis_values))
    throw Misuse(fmt::format("--sweep {}={}: more than {} values; use a larger step", axis, text, most_axis_values));
  std::vector<std::string> values;
  for (Index v = first;; v = factor ? v * step : v + step) {
    values.push_back(std::to_string(v));
    if (factor ? v > last / step : v > last - step) return values;  // the next one lies beyond last, or overflows
  }
}

// One configuration for each combination of the axes; each is applied where the configuration so far has the parameter.
std::vector<Params> swept(const Params& base, const std::vector<Axis>& axes, std::set<std::string>& applied) {
  std::vector<Params> all{base};
  for (const auto& axis : axes) {
    refuse_beyond_most_cells(static_cast<double>(all.size()) * static_cast<double>(axis.values.size()));
    std::vector<Params> next;
    for (auto& params : all) {
      if (!params.has(axis.name)) {
        next.push_back(std::move(params));
        continue;
      }
      applied.insert(axis.name);
      for (const auto& value : axis.values) next.push_back(params.with(axis.name, value));
    }
    all = std::move(next);
  }
  return all;
}

std::vector<Params> swept_all(const std::string& plural, const std::vector<std::string>& specs,
                              const std::vector<Axis>& axes, std::set<std::string>& applied) {
  std::vector<Params> all;
  for (const auto& spec : specs)
    for (auto& params : swept(Params(plural, spec), axes, applied)) all.push_back(std::move(params));
  return all;
}

template <class Number>
std::vector<Number> problem_values(const RunRequest& request, const std::string& name, std::vector<Number> given) {
  for (const auto& axis : request.sweep)
    if (axis.name == name) {
      given.clear();
      for (const auto& value : axis.values) given.push_back(number<Number>(name, value));
    }
  return given;
}

std::vector<Rounding> rounding_values(const RunRequest& request) {
  for (const auto& axis : request.sweep)
    if (axis.name == "round") {
      std::vector<Rounding> all;
      for (const auto& value : axis.values) all.push_back(parse_rounding(value));
      return all;
    }
  return {request.rounding};
}

// The sizes that an axis or the request itself asks for; {0} when neither does.
std::vector<Index> sizes(const RunRequest& request, const std::string& name, const std::vector<Index>& given) {
  const auto values = problem_values<Index>(request, name, given);
  for (const Index value : values)
    if (value < 1) throw Misuse(fmt::format("{}={} is not allowed; expected an integer of at least 1", name, value));
  return values.empty() ? std::vector<Index>{0} : values;
}

Index chosen(Index asked, Index fixed, Index otherwise) { return asked > 0 ? asked : fixed > 0 ? fixed : otherwise; }

// The problems of the request for one input: the product of its problem axes, with the input's own sizes where nothing
// was asked.
std::vector<Problem> problems(const RunRequest& request, const Params& input) {
  const auto& entry = find<InputEntry>(input.name());
  const InputLimits limits = entry.limits(input);
  const auto all_n = sizes(request, "n", request.n), all_d = sizes(request, "d", request.d);
  const auto all_dv = sizes(request, "dv", request.dv == 0 ? std::vector<Index>{} : std::vector<Index>{request.dv});
  const auto all_heads = sizes(request, "heads", {request.heads});
  const auto scales = problem_values<double>(request, "logit_scale", {request.logit_scale});
  const auto roundings = rounding_values(request);
  double count = 1;
  for (const size_t values :
       {all_n.size(), all_d.size(), all_dv.size(), all_heads.size(), scales.size(), roundings.size()})
    count *= static_cast<double>(values);
  refuse_beyond_most_cells(count);
  std::vector<Problem> all;
  for (const Index n : all_n)
    for (const Index d : all_d)
      for (const Index dv : all_dv)
        for (const Index heads : all_heads)
          for (const double scale : scales)
            for (const Rounding rounding : roundings) {
              Problem p;
              p.shape.nk = chosen(n, limits.keys, 1024);
              p.shape.nq = chosen(n, limits.queries, 1024);
              p.shape.d = chosen(d, limits.d, 64);
              p.shape.dv = chosen(dv, limits.dv, p.shape.d);
              p.shape.mask.causal = request.causal.value_or(entry.causal_by_default);
              // A causal row sees the keys up to its own place counted from the end when the lengths differ.
              if (p.shape.mask.causal) p.shape.mask.offset = p.shape.nk - p.shape.nq;
              p.shape.precision = request.precision;
              p.heads = heads;
              p.logit_scale = scale;
              p.rounding = rounding;
              if (!(scale > 0) || !std::isfinite(scale))
                throw Misuse(fmt::format("logit_scale={} is not allowed; expected a finite number above 0", scale));
              refuse_sizes(input, p.shape.nq, p.shape.nk, p.shape.d, p.shape.dv);
              all.push_back(p);
            }
  return all;
}

}  // namespace

Axis parse_axis(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos || equals + 1 == text.size())
    throw Misuse(fmt::format("--sweep {}: expected AXIS=VALUES, such as m=16,32,64 or n=1024:65536:x2", text));
  Axis axis{text.substr(0, equals), {}};
  const std::string_view values = std::string_view(text).substr(equals + 1);
  if (values.find(':') != std::string_view::npos) {
    axis.values = range_values(axis.name, values);
    return axis;
  }
  for (size_t begin = 0; begin <= values.size();) {
    const size_t end = std::min(values.find(',', begin), values.size());
    if (end == begin) throw Misuse(fmt::format("--sweep {}: an empty value; expected values between commas", text));
    axis.values.emplace_back(values.substr(begin, end - begin));
    begin = end + 1;
  }
  if (axis.values.size() > most_axis_values)
    throw Misuse(fmt::format("--sweep {}: more than {} values", axis.name, most_axis_values));
  return axis;
}

double cell_bytes(const Cell& cell) {
  const auto& shape = cell.problem.shape;
  const auto rows = static_cast<double>(shape.nq + shape.nk), widths = static_cast<double>(shape.d + shape.dv);
  // The head as it was drawn in double, as it is used, and the output.
  const double heads = 16 * rows * widths * static_cast<double>(cell.problem.heads);
  return heads + find<ExperimentEntry>(cell.experiment.name()).bytes(cell);
}

std::vector<Cell> expand(const RunRequest& request) {
  std::set<std::string> applied(problem_axes().begin(), problem_axes().end());
  for (size_t i = 0; i < request.sweep.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (request.sweep[i].name == request.sweep[j].name)
        throw Misuse(fmt::format("--sweep {}: given twice; put all values into one", request.sweep[i].name));
  const auto experiments = swept_all("experiments", {request.experiment}, request.sweep, applied);
  const auto methods = swept_all("methods", request.methods, request.sweep, applied);
  const auto inputs = swept_all("inputs", request.inputs, request.sweep, applied);
  for (const auto& axis : request.sweep)
    if (!applied.contains(axis.name)) {
      std::vector<std::string> known = problem_axes();
      for (const auto* group : {&experiments, &methods, &inputs})
        for (const auto& params : *group)
          for (const auto& [name, value] : params.values())
            if (std::find(known.begin(), known.end(), name) == known.end()) known.push_back(name);
      throw Misuse(fmt::format("--sweep {}: nothing in this run has that parameter{}", axis.name,
                               nearest_names(axis.name, known)));
    }
  for (const Params& method : methods) find<MethodEntry>(method.name()).check(method);
  const bool timing = find<ExperimentEntry>(experiments.front().name()).timing();
  std::vector<Cell> cells;
  std::set<std::string> seen;
  for (const auto& input : inputs) {
    const auto all_problems = problems(request, input);
    refuse_beyond_most_cells(static_cast<double>(cells.size()) + static_cast<double>(all_problems.size()) *
                                                                     static_cast<double>(experiments.size()) *
                                                                     static_cast<double>(methods.size()));
    for (const auto& problem : all_problems)
      for (const auto& experiment : experiments)
        for (const auto& method : methods) {
          Cell cell{experiment,   request.match ? matched(method, problem.shape, *request.match) : method,
                    input,        problem,
                    request.seed, request.threads};
          refuse_beyond_memory(cell_bytes(cell), experiment.name() + " at n=" + std::to_string(problem.shape.nk),
                               "give a smaller n");
          find<ExperimentEntry>(experiment.name()).check(cell);
          if (problem.heads > 1 && !timing)
            throw Misuse(
                fmt::format("heads={}: {} measures one head a cell; sweep the input's head or use --replicates",
                            problem.heads, experiment.name()));
          if (problem.rounding != Rounding::none && timing)
            throw Misuse(
                fmt::format("round {}: half precision is emulated, so {} would time the emulation; leave it out",
                            to_string(problem.rounding), experiment.name()));
          if (seen.insert(experiment.spec() + "\n" + cell.method.spec() + "\n" + cell.input_key()).second)
            cells.push_back(std::move(cell));
        }
  }
  return cells;
}

}  // namespace attnbench
