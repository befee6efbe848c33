#include "harness/runner/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "harness/core/approximation.hpp"
#include "harness/core/entry_names.hpp"
#include "harness/errors/error.hpp"
#include "harness/experiment/experiment.hpp"
#include "harness/machine/memory_limit.hpp"
#include "harness/machine/resources.hpp"

namespace attnbench {

namespace {

constexpr size_t most_cells = 1'000'000;  // about 3 KB each

void refuse_beyond_most_cells(double cells) {
  if (cells > static_cast<double>(most_cells))
    throw Misuse(fmt::format("{:.0f} cells were asked for; at most {} are made: narrow the sweep", cells, most_cells));
}

// One configuration for each combination of the axes. An axis applies only if the configuration so far has the
// parameter.
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
      for (const auto& value : axis.values) given.push_back(axis_number<Number>(name, value));
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

// A request with `until` may name more: it adds replicates only as long as the input has them.
void refuse_replicates(const RunRequest& request, const Params& input, const InputLimits& limits) {
  if (limits.replicates > 0 && !request.until && request.replicates > limits.replicates)
    throw Misuse(
        fmt::format("{}: {} replicates were asked for and the input has data for {}; expected at most {}; "
                    "`attnbench describe {}` explains how all replicates can use the same data",
                    input.spec(), request.replicates, limits.replicates, limits.replicates, input.name()));
}

// The problems of the request for one input: the product of its problem axes. Sizes that the request leaves open are
// the input's own.
std::vector<Problem> problems(const RunRequest& request, const Params& input) {
  const auto& entry = find<InputEntry>(input.name());
  const InputLimits limits = entry.limits(input);
  refuse_replicates(request, input, limits);
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
      for (const Index dv : all_dv) {
        Problem p;
        p.shape.nk = chosen(n, limits.keys, 1024);
        p.shape.nq = chosen(n, limits.queries, 1024);
        p.shape.d = chosen(d, limits.d, 64);
        p.shape.dv = chosen(dv, limits.dv, p.shape.d);
        p.shape.mask.causal = request.causal.value_or(entry.causal_by_default || limits.causal);
        // If the lengths differ, a causal row sees the keys up to its own place counted from the end.
        if (p.shape.mask.causal) p.shape.mask.offset = p.shape.nk - p.shape.nq;
        p.shape.precision = request.precision;
        refuse_sizes(input, p.shape.nq, p.shape.nk, p.shape.d, p.shape.dv);
        for (const Index heads : all_heads)
          for (const double scale : scales)
            for (const Rounding rounding : roundings) {
              if (!(scale > 0) || !std::isfinite(scale))
                throw Misuse(fmt::format("logit_scale={} is not allowed; expected a finite number above 0", scale));
              p.heads = heads;
              p.logit_scale = scale;
              p.rounding = rounding;
              all.push_back(p);
            }
      }
  return all;
}

// Collects the cells of several steps of one request, each cell once.
class Expansion {
 public:
  explicit Expansion(const RunRequest& request)
      : request_(request), applied_(problem_axes().begin(), problem_axes().end()) {}

  // Adds the cells of one step, whose axes multiply.
  void add(const RunRequest& step) {
    const auto experiments = with_specs(swept_all("experiments", {step.experiment}, step.sweep, applied_));
    const auto methods = with_specs(swept_all("methods", step.methods, step.sweep, applied_));
    const auto inputs = swept_all("inputs", step.inputs, step.sweep, applied_);
    for (const auto& [method, spec] : methods) find<MethodEntry>(method.name()).check(method);
    if (methods.empty()) return;
    for (const auto& input : inputs) {
      const auto all_problems = problems(step, input);
      refuse_beyond_most_cells(static_cast<double>(cells_.size()) + static_cast<double>(all_problems.size()) *
                                                                        static_cast<double>(experiments.size()) *
                                                                        static_cast<double>(methods.size()));
      for (const auto& problem : all_problems) {
        const std::string input_key =
            Cell{experiments[0].first, methods[0].first, input, problem, step.seed, step.threads}.input_key();
        const size_t group = groups_.try_emplace(input_key, groups_.size()).first->second;
        for (const auto& [experiment, experiment_spec] : experiments)
          for (const auto& [method, method_spec] : methods) {
            Cell cell{experiment, step.match ? matched(method, problem.shape, *step.match) : method,
                      input,      problem,
                      step.seed,  step.threads};
            refuse(cell);
            const std::string spec = step.match ? cell.method.spec() : method_spec;
            if (!seen_.insert(fmt::format("{}\n{}\n{}", group, experiment_spec, spec)).second) continue;
            cells_.push_back(std::move(cell));
            group_of_.push_back(group);
          }
      }
    }
  }

  // Throws Misuse for an axis that no step used.
  void refuse_axes_without_use() const {
    for (const Axis& axis : request_.sweep)
      if (!applied_.contains(axis.name))
        throw Misuse(fmt::format("--sweep {}: nothing in this run has that parameter{}{}", axis.name,
                                 nearest_names(axis.name, known_axes()), budgets()));
  }

  // Puts cells that share an input together, in the order in which they were added.
  std::vector<Cell> cells() && {
    if (std::is_sorted(group_of_.begin(), group_of_.end())) return std::move(cells_);
    std::vector<size_t> order(cells_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return group_of_[a] < group_of_[b]; });
    std::vector<Cell> sorted;
    sorted.reserve(cells_.size());
    for (const size_t place : order) sorted.push_back(std::move(cells_[place]));
    return sorted;
  }

 private:
  using Specified = std::pair<Params, std::string>;
  static std::vector<Specified> with_specs(std::vector<Params> all) {
    std::vector<Specified> specified;
    for (Params& params : all) {
      std::string spec = params.spec();
      specified.emplace_back(std::move(params), std::move(spec));
    }
    return specified;
  }

  void refuse(const Cell& cell) {
    const auto& [shape, heads, logit_scale, rounding] = cell.problem;
    const auto& entry = find<ExperimentEntry>(cell.experiment.name());
    // Asking for the available memory takes longer than making a cell, so we ask once.
    if (const double bytes = cell_bytes(cell); bytes > available_)
      refuse_beyond_memory(bytes, entry.text.name + " at n=" + std::to_string(shape.nk),
                           "give a smaller n" + smaller_experiment(cell));
    entry.check(cell);
    if (heads > 1 && !entry.timing())
      throw Misuse(fmt::format("heads={}: {} measures one head per cell; sweep the input's head or use --replicates",
                               heads, entry.text.name));
    if (heads > 1) refuse_more_heads(cell);
    if (rounding != Rounding::none && entry.timing())
      throw Misuse(fmt::format("round {}: half precision is emulated, so {} would time the emulation; leave it out",
                               to_string(rounding), entry.text.name));
  }

  // A call of several heads takes those of the input from the spec's own on.
  static void refuse_more_heads(const Cell& cell) {
    const Index stored = find<InputEntry>(cell.input.name()).limits(cell.input).heads;
    if (stored == 0 || !cell.input.has("head")) return;  // a law draws any number
    const Index first = cell.input.integer("head"), left = stored - first;
    if (cell.problem.heads > left)
      throw Misuse(fmt::format("heads={}: {} has {} heads, and {} of them from head {} on; expected at most {}",
                               cell.problem.heads, cell.input.spec(), stored, left, first, left));
  }

  // An experiment may have an option without which it needs no n x n matrix.
  std::string smaller_experiment(const Cell& cell) const {
    for (const Parameter& option : cell.experiment.declared()) {
      if (option.kind != Parameter::Kind::flag) continue;
      Cell other = cell;
      other.experiment = cell.experiment.with(option.name, cell.experiment.flag(option.name) ? "false" : "true");
      if (cell_bytes(other) <= available_) return fmt::format(", or {}, which takes less", other.experiment.spec());
    }
    return "";
  }

  std::vector<std::string> known_axes() const {
    std::vector<std::string> known = problem_axes();
    std::set<std::string> applied;
    const auto add_all = [&](const std::string& plural, const std::vector<std::string>& specs) {
      for (const Params& params : swept_all(plural, specs, request_.sweep, applied))
        for (const auto& [name, value] : params.values())
          if (std::find(known.begin(), known.end(), name) == known.end()) known.push_back(name);
    };
    add_all("experiments", {request_.experiment});
    add_all("methods", request_.methods);
    add_all("inputs", request_.inputs);
    return known;
  }

  // Methods name their budgets differently: m, r, codes, window.
  std::string budgets() const {
    std::string text;
    std::set<std::string> said;
    for (const std::string& spec : request_.methods) {
      const Params method("methods", spec);
      for (const Parameter& parameter : method.declared())
        if (parameter.budget && said.insert(method.name()).second)
          text += fmt::format("; the budget of {} is {}", method.name(), parameter.name);
    }
    return text;
  }

  const RunRequest& request_;
  const double available_ = available_memory();
  std::set<std::string> applied_;
  std::vector<Cell> cells_;
  std::vector<size_t> group_of_;  // of each cell; cells with the same number share an input
  std::unordered_map<std::string, size_t> groups_;
  std::unordered_set<std::string> seen_;
};

}  // namespace

bool RunRequest::timing() const { return find<ExperimentEntry>(parse_spec(experiment).name).timing(); }

Index replicates_of(const RunRequest& request, const Cell& cell) {
  const Index most = find<InputEntry>(cell.input.name()).limits(cell.input).replicates;
  return most > 0 ? std::min(most, request.replicates) : request.replicates;
}

std::vector<Cell> expand(const RunRequest& request) {
  for (size_t i = 0; i < request.sweep.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (request.sweep[i].name == request.sweep[j].name)
        throw Misuse(fmt::format("--sweep {}: given twice; put all values into one", request.sweep[i].name));
  Expansion expansion(request);
  RunRequest step = request;
  for (auto& sweep : unzipped(request.sweep, request.zip)) {
    step.sweep = std::move(sweep);
    expansion.add(step);
  }
  expansion.refuse_axes_without_use();
  return std::move(expansion).cells();
}

}  // namespace attnbench
