#include "harness/runner/backlog.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "harness/experiment/cell_row.hpp"
#include "harness/experiment/experiment.hpp"
#include "harness/store/store.hpp"

namespace attnbench {

namespace {

constexpr double most_units = 1e7;

// The numbers that the rule of --until uses: the headline metric of each replicate.
std::map<Index, EndedReplicate> headline_of(const ExperimentEntry& entry, const std::string& key,
                                            const std::map<Index, Ending::Kind>& ended, const Store& store) {
  std::map<Index, EndedReplicate> replicates;
  for (const auto& [replicate, kind] : ended) replicates[replicate];
  if (!entry.timing()) {
    for (const auto& [replicate, value] : store.scalars(key, entry.headline.metric))
      replicates[replicate].values = {value};
    return replicates;
  }
  const std::map<Index, double> iterations = store.scalars(key, "iterations");
  for (const auto& [replicate, seconds] : store.arrays(key, entry.headline.metric)) {
    const auto calls = iterations.find(replicate);
    for (const double second : seconds)
      replicates[replicate].seconds += second * (calls == iterations.end() ? 1 : calls->second);
    replicates[replicate].values = seconds;
  }
  return replicates;
}

}  // namespace

EndedUnits ended_units(const RunRequest& request, const Store& store) {
  EndedUnits ended = store.ended();
  if (request.retry)
    for (auto& [key, replicates] : ended)
      std::erase_if(replicates, [](const auto& replicate) { return !settled(replicate.second); });
  return ended;
}

Backlog backlog_of(const RunRequest& request, const std::vector<Cell>& cells, const EndedUnits& ended,
                   const Store* store) {
  // With --until a shard takes all replicates of a cell or none.
  const Index asked = request.until ? 1 : request.replicates;
  if (static_cast<double>(cells.size()) * static_cast<double>(asked) > most_units)
    throw Misuse(
        fmt::format("{} cells with {} replicates were asked for; at most {:.0f} replicates are made: narrow "
                    "the sweep or give fewer replicates",
                    cells.size(), asked, most_units));
  const std::vector<bool> mine = units_of_shard(cells, asked, request.shard);
  const auto& entry = find<ExperimentEntry>(parse_spec(request.experiment).name);
  static const std::map<Index, Ending::Kind> none;
  Backlog backlog;
  for (size_t place = 0; place < cells.size(); ++place) {
    const auto first = mine.begin() + static_cast<std::ptrdiff_t>(place) * asked;
    if (std::find(first, first + asked, true) == first + asked) continue;
    Backlog::Entry one{&cells[place], row_of(cells[place], entry.timing()).key};
    const auto found = ended.find(one.key);
    const auto& there = found == ended.end() ? none : found->second;
    Index wanted = asked;
    if (request.until) {
      const auto numbers = store ? headline_of(entry, one.key, there, *store) : std::map<Index, EndedReplicate>();
      one.stopping = stopping_of(numbers, *request.until, replicates_of(request, cells[place]), entry.timing());
      wanted = one.stopping->replicates;
    }
    for (Index replicate = 0; replicate < wanted; ++replicate) {
      if (!request.until && !first[replicate]) continue;
      if (there.contains(replicate)) {
        ++backlog.already;
        backlog.failed += !settled(there.at(replicate));
      } else {
        one.missing.push_back(replicate);
      }
    }
    backlog.entries.push_back(std::move(one));
  }
  return backlog;
}

std::string remark_on_failed(size_t failed) {
  return failed == 0 ? "" : fmt::format("{} of those that were there had failed: --retry runs them again\n", failed);
}

RunEstimate estimate(const RunRequest& request, const Backlog& backlog, const std::vector<PastCell>& past) {
  const auto with = [&](auto&& replicates_of) {
    std::vector<CellsToCome> to_come;
    for (const auto& entry : backlog.entries)
      if (const Index replicates = replicates_of(entry); replicates > 0) to_come.push_back({entry.cell, replicates});
    return estimate(to_come, request.threads, past, rates_by_one_product);
  };
  RunEstimate next = with([](const Backlog::Entry& entry) { return std::ssize(entry.missing); });
  if (request.until) {
    const RunEstimate most = with([&](const Backlog::Entry& entry) -> Index {
      if (entry.stopping->state != Stopping::State::open) return 0;
      return replicates_of(request, *entry.cell) - entry.stopping->replicates + std::ssize(entry.missing);
    });
    next.high = most.high;
  }
  return next;
}

}  // namespace attnbench
