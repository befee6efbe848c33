#include "harness/runner/audit.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>

#include "harness/experiment/cell_row.hpp"
#include "harness/machine/interrupts.hpp"
#include "harness/machine/scratch_folder.hpp"
#include "harness/runner/backlog.hpp"
#include "harness/runner/execute.hpp"
#include "harness/runner/progress.hpp"
#include "harness/store/store.hpp"
#include "harness/workers/pool.hpp"

namespace attnbench {

namespace {

bool is_time(const std::string& unit) { return unit == "s" || unit.ends_with("/s"); }

// SQLite keeps no sign of a zero that is a scalar.
bool same(double a, double b) { return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b) || a == b; }

// A metric that differs, with the stored value and the new one.
struct Differing {
  std::string metric, stored, again;
};

// Where two measurements of one metric differ first.
std::optional<Differing> difference_of(const Measurement& stored, const Measurement& again) {
  if (stored.unit != again.unit) return Differing{stored.metric, stored.unit, again.unit};
  if (stored.shape != again.shape)
    return Differing{stored.metric, fmt::format("shape [{}]", fmt::join(stored.shape, ",")),
                     fmt::format("shape [{}]", fmt::join(again.shape, ","))};
  const auto [a, b] = std::mismatch(stored.values.begin(), stored.values.end(), again.values.begin(), same);
  if (a == stored.values.end()) return std::nullopt;
  return Differing{
      stored.shape.empty() ? stored.metric : fmt::format("{}[{}]", stored.metric, a - stored.values.begin()),
      fmt::format("{}", *a), fmt::format("{}", *b)};
}

std::vector<Differing> differences_of(std::map<std::string, Measurement> stored, const UnitOutcome& outcome,
                                      std::set<std::string>& left_out) {
  if (outcome.ending.kind != Ending::Kind::done)
    return {{"ending", "done", fmt::format("{}: {}", to_string(outcome.ending.kind), outcome.ending.reason)}};
  std::vector<Differing> found;
  for (const Measurement& again : outcome.measurements) {
    const auto place = stored.find(again.metric);
    if (is_time(again.unit))
      left_out.insert(again.metric);
    else if (place == stored.end())
      found.push_back({again.metric, "none", "measured"});
    else if (auto difference = difference_of(place->second, again))
      found.push_back(std::move(*difference));
    if (place != stored.end()) stored.erase(place);
  }
  for (const auto& [metric, measurement] : stored)
    if (!is_time(measurement.unit)) found.push_back({metric, "measured", "none"});
  return found;
}

// The done replicates of the request's shard. Counts the others; with --until, the cells without any.
std::vector<Unit> done_units(const RunRequest& request, const std::vector<Cell>& cells, const Store& store,
                             size_t& not_done) {
  const EndedUnits ended = ended_units(request, store);
  const Index asked = request.until ? 1 : request.replicates;
  const std::vector<bool> mine = units_of_shard(cells, asked, request.shard);
  static const std::map<Index, Ending::Kind> none;
  std::vector<Unit> units;
  for (size_t place = 0; place < cells.size(); ++place) {
    const CellRow row = row_of(cells[place], false);
    const auto found = ended.find(row.key);
    const auto& there = found == ended.end() ? none : found->second;
    const auto is_done = [&](Index replicate) {
      const auto one = there.find(replicate);
      return one != there.end() && one->second == Ending::Kind::done;
    };
    size_t done = 0, of_shard = 0;
    for (Index replicate = 0; replicate < request.replicates; ++replicate) {
      const size_t unit = place * static_cast<size_t>(asked) + static_cast<size_t>(request.until ? 0 : replicate);
      if (!mine[unit]) continue;
      ++of_shard;
      if (!is_done(replicate)) continue;
      units.push_back({cells[place], row, replicate});
      ++done;
    }
    not_done += request.until ? of_shard > 0 && done == 0 : of_shard - done;
  }
  return units;
}

}  // namespace

Audit audit(const RunRequest& request, const std::vector<Cell>& cells, const Store& store, const Limits& limits) {
  if (request.timing())
    throw Misuse(
        fmt::format("run --audit: {} measures time, which differs from call to call; audit an experiment of other "
                    "numbers, such as attention-error, or time again into another file and use attnbench compare",
                    parse_spec(request.experiment).name));
  Audit result;
  const std::vector<Unit> units = done_units(request, cells, store, result.not_done);
  if (units.empty())
    throw Misuse(
        "run --audit: the results file has no replicate of this request that is done; the same command without "
        "--audit measures it");
  remove_abandoned_folders();
  const Interrupts interrupts;
  Progress progress(units.size());
  std::set<std::string> audited;
  std::map<std::pair<std::string, std::string>, size_t> places;  // in result.differences, by cell and metric
  const auto compare = [&](const Unit& unit, const UnitOutcome& outcome, double) {
    ++result.replicates;
    audited.insert(unit.row.key);
    for (auto& [metric, stored, again] :
         differences_of(store.measurements(unit.row.key, unit.replicate), outcome, result.left_out)) {
      const auto [place, fresh] =
          places.try_emplace({unit.row.key, metric.substr(0, metric.find('['))}, result.differences.size());
      if (fresh)
        result.differences.push_back({unit.row.method, unit.row.input, unit.row.shape.nk, unit.replicate,
                                      std::move(metric), std::move(stored), std::move(again)});
      else
        ++result.differences[place->second].replicates;
    }
    progress.step(fmt::format("{} {} n={}", unit.row.experiment, unit.row.method, unit.row.shape.nk));
  };
  run_in_fresh_workers(units, request.threads, limits, compare);
  result.cells = audited.size();
  result.interrupted = Interrupts::asked();
  return result;
}

std::string text_of(const Audit& audit, const std::string& results) {
  constexpr size_t most_listed = 40;
  std::string text;
  if (!audit.differences.empty()) {
    size_t method = 6, input = 5, metric = 6;
    const size_t listed = std::min(most_listed, audit.differences.size());
    for (size_t i = 0; i < listed; ++i) {
      const auto& line = audit.differences[i];
      method = std::max(method, line.method.size());
      input = std::max(input, line.input.size());
      metric = std::max(metric, line.metric.size());
    }
    text += fmt::format("{:<{}}  {:>7}  {:<{}}  {:<{}}  {:>9}  {:<24}  {}\n", "method", method, "n", "input", input,
                        "metric", metric, "replicate", "stored", "again");
    for (size_t i = 0; i < listed; ++i) {
      const auto& line = audit.differences[i];
      text += fmt::format("{:<{}}  {:>7}  {:<{}}  {:<{}}  {:>9}  {:<24}  {}{}\n", line.method, method, line.n,
                          line.input, input, line.metric, metric, line.replicate, line.stored, line.again,
                          line.replicates > 1 ? fmt::format(" (the first of {})", line.replicates) : "");
    }
    if (listed < audit.differences.size()) text += fmt::format("and {} more\n", audit.differences.size() - listed);
    text += fmt::format(
        "{} metrics of cells differ. Their numbers depend on what ran before in the same process, on chance beside the "
        "seed, or on the machine or the libraries, if {} was measured with others\n",
        audit.differences.size(), results);
  }
  text += fmt::format("{} replicates of {} cells measured again, each in a new worker: {}; {}", audit.replicates,
                      audit.cells, audit.differences.empty() ? "equal, bit for bit" : "some differ", results);
  if (!audit.left_out.empty()) text += fmt::format("; left out, being times: {}", fmt::join(audit.left_out, ", "));
  if (audit.not_done > 0) text += fmt::format("; {} replicates of the request are not done there", audit.not_done);
  return text + "\n";
}

}  // namespace attnbench
