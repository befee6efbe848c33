#include "harness/runner/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "harness/core/approximation.hpp"
#include "harness/core/error.hpp"
#include "harness/runner/experiment.hpp"

namespace attnbench {

namespace {

constexpr size_t most_axis_values = 100'000;
constexpr size_t most_cells = 10'000'000;

const std::vector<std::string>& problem_axes() {
  static const std::vector<std::string> names{"n", "d", "dv", "heads", "logit_scale"};
  return names;
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
  for (Index v = first; v <= last; v = factor ? v * step : v + step) values.push_back(std::to_string(v));
  return values;
}

// One configuration for each combination of the axes that the spec has a parameter for.
std::vector<Params> swept(const Params& base, const std::vector<Axis>& axes, std::set<std::string>& applied) {
  std::vector<Params> all{base};
  for (const auto& axis : axes) {
    if (!base.has(axis.name)) continue;
    applied.insert(axis.name);
    std::vector<Params> next;
    for (const auto& params : all)
      for (const auto& value : axis.values) next.push_back(params.with(axis.name, value));
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

Index chosen(Index asked, Index fixed, Index otherwise) { return asked > 0 ? asked : fixed > 0 ? fixed : otherwise; }

// The problems of the request for one input: the product of its problem axes, with the input's own sizes where nothing
// was asked.
std::vector<Problem> problems(const RunRequest& request, const Params& input) {
  const auto& entry = find<InputEntry>(input.name());
  const InputLimits limits = entry.limits(input);
  const auto at_least_one = [](const char* name, Index value) {
    if (value < 1) throw Misuse(fmt::format("{}={} is not allowed; expected an integer of at least 1", name, value));
    return value;
  };
  std::vector<Problem> all;
  for (const Index n : problem_values<Index>(request, "n", request.n.empty() ? std::vector<Index>{-1} : request.n))
    for (const Index d : problem_values<Index>(request, "d", request.d.empty() ? std::vector<Index>{-1} : request.d))
      for (const Index dv : problem_values<Index>(request, "dv", {request.dv}))
        for (const Index heads : problem_values<Index>(request, "heads", {request.heads}))
          for (const double scale : problem_values<double>(request, "logit_scale", {request.logit_scale})) {
            Problem p;
            p.shape.nk = n == -1 ? chosen(0, limits.keys, 1024) : at_least_one("n", n);
            p.shape.nq = n == -1 ? chosen(0, limits.queries, 1024) : n;
            p.shape.d = d == -1 ? chosen(0, limits.d, 64) : at_least_one("d", d);
            p.shape.dv = chosen(dv, limits.dv, p.shape.d);
            p.shape.mask.causal = request.causal.value_or(entry.causal_by_default);
            // A causal row sees the keys up to its own place counted from the end when the lengths differ.
            if (p.shape.mask.causal) p.shape.mask.offset = p.shape.nk - p.shape.nq;
            p.shape.precision = request.precision;
            p.heads = at_least_one("heads", heads);
            p.logit_scale = scale;
            if (!(scale > 0))
              throw Misuse(fmt::format("logit_scale={} is not allowed; expected a number above 0", scale));
            refuse_absurd_sizes(p.shape.nq, p.shape.nk, p.shape.d, p.shape.dv);
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
  std::vector<Cell> cells;
  std::set<std::string> seen;
  for (const auto& input : inputs)
    for (const auto& problem : problems(request, input))
      for (const auto& experiment : experiments)
        for (const auto& method : methods) {
          Cell cell{experiment, method, input, problem, request.seed, request.threads};
          if (seen.insert(experiment.spec() + "\n" + method.spec() + "\n" + cell.input_key()).second)
            cells.push_back(std::move(cell));
          if (cells.size() > most_cells) throw Misuse(fmt::format("more than {} cells; narrow the sweep", most_cells));
        }
  return cells;
}

}  // namespace attnbench
