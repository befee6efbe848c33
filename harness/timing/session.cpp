#include "harness/timing/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "harness/core/torch_place.hpp"
#include "harness/experiment/experiment.hpp"
#include "harness/machine/resources.hpp"

namespace attnbench {

namespace {

// Memory of one worker besides its cell: a worker that was ready had 20 MB resident. All but 3 MB of them are pages
// that workers share, but a worker's limit counts those too.
constexpr double bytes_of_a_worker = 20e6;
// A worker takes three of the runner's descriptors, and a process usually may have 1024.
constexpr size_t most_workers = 300;

// The memory that the workers of some lengths need.
struct Footprint {
  size_t workers = 0;
  double waiting = 0;  // bytes that all of them hold
  double working = 0;  // bytes that one of them needs in addition during its turn, at most

  void add(const Cell& cell) {
    ++workers;
    waiting += cell_bytes(cell) + bytes_of_a_worker;
    working = std::max(working, find<MethodEntry>(cell.method.name()).memory(cell.method, cell.problem.shape));
  }
  Footprint operator+(const Footprint& other) const {
    return {workers + other.workers, waiting + other.waiting, std::max(working, other.working)};
  }
  double bytes() const { return waiting + working; }
};

struct Length {
  std::vector<size_t> cells;
  Footprint need;
};

std::pair<Index, Index> length_of(const Cell& cell) { return {cell.problem.shape.nk, cell.problem.shape.nq}; }

// Longest first.
using Lengths = std::map<std::pair<Index, Index>, Length, std::greater<>>;

Lengths lengths_of(std::span<const Cell* const> cells) {
  Lengths lengths;
  for (size_t place = 0; place < cells.size(); ++place) {
    Length& length = lengths[length_of(*cells[place])];
    length.cells.push_back(place);
    length.need.add(*cells[place]);
  }
  for (const Cell& partner : partners_of(cells)) lengths[length_of(partner)].need.add(partner);
  return lengths;
}

}  // namespace

std::string session_key(const Cell& cell) {
  Cell any = cell;
  Shape& shape = any.problem.shape;
  shape.nq = shape.nk = shape.mask.offset = 0;
  const std::string key = fmt::format("{} threads={} {}", cell.experiment.spec(), cell.threads, any.input_key());
  return computes_on_device(cell.method) ? key + " " + partner_of(cell).method.spec() : key;
}

Cell partner_of(const Cell& cell) {
  Cell partner = cell;
  const bool on_device = computes_on_device(cell.method);
  partner.method = Params("methods", on_device ? "torch-softmax" : "softmax");
  if (on_device)
    for (const char* place : {"device", "dtype"}) partner.method = partner.method.with(place, cell.method.text(place));
  return partner;
}

std::vector<Cell> partners_of(std::span<const Cell* const> cells) {
  if (cells.empty() || !cells[0]->experiment.flag("pair")) return {};
  const std::string exact = partner_of(*cells[0]).method.spec();
  std::map<std::pair<Index, Index>, const Cell*> without;
  for (const Cell* cell : cells) without.emplace(length_of(*cell), cell);
  for (const Cell* cell : cells)
    if (cell->method.spec() == exact) without.erase(length_of(*cell));
  std::vector<Cell> partners;
  for (const auto& [n, cell] : without) partners.push_back(partner_of(*cell));
  return partners;
}

double memory_of_a_session() { return 0.9 * available_memory(); }

double session_bytes(std::span<const Cell* const> cells) {
  Footprint all;
  for (const auto& [n, length] : lengths_of(cells)) all = all + length.need;
  return all.bytes();
}

std::vector<std::vector<size_t>> sessions_that_fit(std::span<const Cell* const> cells, double bytes) {
  std::vector<std::vector<size_t>> sessions;
  Footprint all;
  for (const auto& [n, length] : lengths_of(cells)) {
    const Footprint with = all + length.need;
    const bool fits = with.bytes() <= bytes && with.workers <= most_workers;
    if (sessions.empty() || !fits) sessions.emplace_back();
    all = fits ? with : length.need;
    sessions.back().insert(sessions.back().end(), length.cells.begin(), length.cells.end());
  }
  for (auto& session : sessions) std::sort(session.begin(), session.end());
  return sessions;
}

}  // namespace attnbench
