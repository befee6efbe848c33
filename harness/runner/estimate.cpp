#include "harness/runner/estimate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "harness/timing/session.hpp"

namespace attnbench {

namespace {

constexpr double model_factor = 10;   // the cost model is right within this factor
constexpr double sibling_factor = 4;  // uncertainty by past cells of other methods of the experiment
constexpr double least_factor = 1.5;  // no past cells are more certain than this
constexpr int most_alike = 32;        // past cells used per method and length: more add nothing

Cell as_cell(const PastCell& past) {
  return {Params("experiments", past.experiment),
          Params("methods", past.method),
          Params("inputs", past.input),
          {past.shape, past.heads, past.logit_scale},
          1,
          std::max(1, past.threads)};
}

// Actual over modelled seconds of past cells, by their length.
using Ratios = std::multimap<double, double>;

struct Correction {
  double ratio = 1, factor = model_factor;
  size_t cells = 0;
  double n = 0;  // length of the past cells
};

// The correction by the past cells of the nearest length. Its uncertainty is the scatter of all past cells.
Correction nearest(const Ratios& ratios, double n, double factor) {
  std::vector<double> near, all;
  double best = INFINITY;
  for (const auto& [length, ratio] : ratios)
    if (std::abs(std::log(length / n)) < std::abs(std::log(best / n))) best = length;
  for (const auto& [length, ratio] : ratios) {
    all.push_back(ratio);
    if (length == best) near.push_back(ratio);
  }
  std::sort(all.begin(), all.end());
  std::nth_element(near.begin(), near.begin() + static_cast<std::ptrdiff_t>(near.size() / 2), near.end());
  const double ratio = near[near.size() / 2];
  const double scatter = std::max(all.back() / ratio, ratio / all.front());
  return {ratio, std::clamp(scatter, factor, model_factor), near.size(), best};
}

// How past cells correct the model: by method or, if the method has none, by all cells of the experiment.
class Past {
 public:
  explicit Past(const std::vector<PastCell>& past) {
    std::map<std::pair<std::string, Index>, int> alike;
    for (const PastCell& cell : past) {
      const std::string method = parse_spec(cell.method).name;
      if (++alike[{method, cell.shape.nk}] > most_alike) continue;
      double modelled = 0;
      try {
        modelled = seconds_by_model(as_cell(cell), nominal_rates);
      } catch (const Misuse&) {
        continue;  // the method or the option no longer exists
      }
      const double ratio = cell.seconds / modelled;
      if (!(ratio > 0)) continue;
      const auto n = static_cast<double>(cell.shape.nk);
      of_method_[method].emplace(n, ratio);
      of_experiment_.emplace(n, ratio);
    }
  }

  Correction of(const Cell& cell) {
    const auto key = std::pair(cell.method.name(), cell.problem.shape.nk);
    const auto [place, fresh] = known_.try_emplace(key);
    if (!fresh) return place->second;
    const auto n = static_cast<double>(cell.problem.shape.nk);
    const auto found = of_method_.find(cell.method.name());
    if (found != of_method_.end())
      place->second = nearest(found->second, n, least_factor);
    else if (!of_experiment_.empty())
      place->second = nearest(of_experiment_, n, sibling_factor);
    const Correction& correction = place->second;
    if (correction.cells > 0)
      used_[{found != of_method_.end() ? cell.method.name() : "", correction.n}] = correction.cells;
    return correction;
  }

  size_t used() const {
    size_t cells = 0;
    for (const auto& [group, count] : used_) cells += count;
    return cells;
  }

 private:
  std::map<std::string, Ratios> of_method_;
  Ratios of_experiment_;
  std::map<std::pair<std::string, Index>, Correction> known_;
  std::map<std::pair<std::string, double>, size_t> used_;  // past cells used, by method (empty: all) and length
};

// Groups cells of timing by their session.
std::vector<std::vector<const Cell*>> in_sessions(std::span<const CellsToCome> missing) {
  std::vector<std::vector<const Cell*>> sessions;
  std::map<std::string, size_t> numbers;
  for (const CellsToCome& one : missing) {
    const auto [place, fresh] = numbers.try_emplace(session_key(*one.cell), sessions.size());
    if (fresh) sessions.emplace_back();
    sessions[place->second].push_back(one.cell);
  }
  return sessions;
}

// The softmax partners that these cells will be timed with, each as often as the cells of its session.
std::vector<std::pair<Cell, Index>> partners_to_come(std::span<const CellsToCome> missing) {
  std::map<std::string, Index> replicates;
  for (const CellsToCome& one : missing) {
    Index& most = replicates[session_key(*one.cell)];
    most = std::max(most, one.replicates);
  }
  std::vector<std::pair<Cell, Index>> partners;
  for (const auto& cells : in_sessions(missing))
    for (Cell& partner : partners_of(cells))
      partners.emplace_back(std::move(partner), replicates[session_key(*cells.front())]);
  return partners;
}

// Statistics: up to `threads` units run at a time, and the whole takes at least as long as its longest unit.
void side_by_side(RunEstimate& total, std::vector<double> bytes, int threads, Index units, double longest) {
  const double share = std::max(1 / static_cast<double>(std::min<Index>(units, threads)), longest / total.seconds);
  for (double* seconds : {&total.seconds, &total.low, &total.high}) *seconds *= std::min(1.0, share);
  const size_t largest = std::min(static_cast<size_t>(std::max(1, threads)), bytes.size());
  std::partial_sort(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(largest), bytes.end(), std::greater<>());
  for (size_t i = 0; i < largest; ++i) total.bytes += bytes[i];
}

// Bytes that the largest session holds at once.
double bytes_in_sessions(std::span<const CellsToCome> missing) {
  double most = 0;
  const double free = memory_of_a_session();
  for (const auto& cells : in_sessions(missing))
    for (const auto& session : sessions_that_fit(cells, free)) {
      std::vector<const Cell*> members;
      for (const size_t place : session) members.push_back(cells[place]);
      most = std::max(most, session_bytes(members));
    }
  return most;
}

}  // namespace

RunEstimate estimate(std::span<const CellsToCome> missing, int threads, const std::vector<PastCell>& past_cells,
                     const std::function<Rates(Precision)>& rates) {
  RunEstimate total;
  if (missing.empty()) return total;
  const bool timing = missing.front().cell->timing();
  Past past(past_cells);
  total.by_past = true;
  double longest = 0;
  Index units = 0;
  std::map<Precision, Rates> machine;  // each rate is measured once
  std::vector<double> bytes;
  std::vector<CellsToCome> all_to_come(missing.begin(), missing.end());
  std::vector<std::pair<Cell, Index>> partners;
  if (timing) partners = partners_to_come(missing);
  for (const auto& [cell, replicates] : partners) all_to_come.push_back({&cell, replicates});
  for (const auto& [cell, replicates] : all_to_come) {
    const Correction correction = past.of(*cell);
    const Precision precision = cell->problem.shape.precision;
    if (correction.cells == 0 && !machine.contains(precision)) machine[precision] = rates(precision);
    const double each =
        correction.ratio * seconds_by_model(*cell, correction.cells > 0 ? nominal_rates : machine[precision]);
    const double all = static_cast<double>(replicates) * each;
    total.by_past = total.by_past && correction.cells > 0;
    total.seconds += all;
    total.low += all / correction.factor;
    total.high += all * correction.factor;
    longest = std::max(longest, each);
    units += replicates;
    if (!timing) bytes.push_back(peak_bytes_of(*cell));
  }
  if (timing)
    total.bytes = bytes_in_sessions(missing);
  else
    side_by_side(total, std::move(bytes), threads, units, longest);
  total.past_cells = past.used();
  return total;
}

RunEstimate& RunEstimate::operator+=(const RunEstimate& next) {
  seconds += next.seconds;
  low += next.low;
  high += next.high;
  bytes = std::max(bytes, next.bytes);
  past_cells += next.past_cells;
  by_past = by_past && (next.by_past || next.seconds == 0);
  return *this;
}

std::string duration_text(double seconds) {
  if (seconds < 0.1) return fmt::format("{:.2g} ms", 1000 * seconds);
  if (seconds < 1) return fmt::format("{:.0f} ms", 1000 * seconds);
  if (seconds < 60) return fmt::format("{:.2g} s", seconds);
  if (seconds < 5940) return fmt::format("{:.2g} min", seconds / 60);
  if (seconds < 48 * 3600) return fmt::format("{:.2g} h", seconds / 3600);
  return fmt::format("{:.0f} days", seconds / 86400);
}

std::string RunEstimate::text() const {
  const std::string cells = fmt::format("{} past cell{}", past_cells, past_cells == 1 ? "" : "s");
  const std::string ground = past_cells == 0
                                 ? fmt::format("from the cost model, within a factor of about {}", model_factor)
                             : by_past ? "from " + cells
                                       : fmt::format("from {}, the rest from the cost model", cells);
  return fmt::format("about {} ({} to {}), {}", duration_text(seconds), duration_text(low), duration_text(high),
                     ground);
}

}  // namespace attnbench
