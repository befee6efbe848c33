#include "harness/workers/pool.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "harness/experiment/experiment.hpp"
#include "harness/machine/interrupts.hpp"
#include "harness/machine/memory_limit.hpp"
#include "harness/machine/resources.hpp"
#include "harness/workers/unit_queue.hpp"
#include "harness/workers/worker.hpp"

namespace attnbench {

namespace {

using Units = std::vector<const Unit*>;

std::vector<UnitQueue::Group> groups_of(const Units& units) {
  std::vector<UnitQueue::Group> groups;
  for (const Unit* unit : units)
    groups.push_back({fmt::format("{} {}", unit->cell.input_key(), unit->replicate), unit->replicate});
  return groups;
}

// Workers without work, each with the memory limit that it was started with.
struct Idle {
  std::vector<std::pair<double, std::unique_ptr<Worker>>> workers;
  size_t inputs = 0;  // number of inputs numbered so far: a worker recognises its last input by its number
};
std::unique_ptr<Idle> kept;

// An idle worker with this memory limit that is still fit, or null. Drops workers of a run with another limit.
std::unique_ptr<Worker> take_kept(double bytes) {
  while (kept && !kept->workers.empty()) {
    auto [size, worker] = std::move(kept->workers.back());
    kept->workers.pop_back();
    if (size == bytes && worker->fit()) return std::move(worker);
  }
  return nullptr;
}

// Workers with one memory limit, and the units that they run.
class Pool {
 public:
  Pool(const Units& units, size_t workers, int threads_each, Allowance allowance, const RecordOutcome& record)
      : units_(units),
        queue_(groups_of(units), workers),
        places_(workers),
        threads_each_(threads_each),
        allowance_(allowance),
        record_(record) {
    if (kept) kept->inputs += units.size();
  }
  ~Pool() {
    for (Place& place : places_)
      if (kept && place.worker && !place.worker->busy() && place.worker->fit())
        kept->workers.emplace_back(allowance_.bytes, std::move(place.worker));
  }

  void go() {
    while (!Interrupts::asked()) {
      std::vector<Worker*> busy;
      for (size_t w = 0; w < places_.size(); ++w) {
        Place& place = places_[w];
        if (!place.worker || !place.worker->busy()) begin_next(w);
        if (place.worker && place.worker->busy()) busy.push_back(place.worker.get());
      }
      if (busy.empty()) return;
      wait_for(busy);
      for (Place& place : places_)
        if (place.worker && place.worker->busy())
          if (auto reply = place.worker->look()) finish(place, std::move(*reply));
    }
  }

 private:
  struct Place {
    std::unique_ptr<Worker> worker;
    const Unit* unit = nullptr;
  };

  void begin_next(size_t w) {
    const auto next = queue_.next(w);
    if (!next) return;
    Place& place = places_[w];
    if (!place.worker) place.worker = take_kept(allowance_.bytes);
    if (!place.worker) start(place);
    place.unit = units_[next->unit];
    place.worker->ask({{"do", "unit"},
                       {"cell", to_message(place.unit->cell)},
                       {"replicate", place.unit->replicate},
                       {"input", first_input_ + next->input},
                       {"threads", threads_each_}},
                      allowance_, "measuring");
  }

  void start(Place& place) {
    place.worker.reset();  // ends the old worker and everything that it started before the new one starts
    place.worker = std::make_unique<Worker>(allowance_.bytes);
  }

  void finish(Place& place, Worker::Reply reply) {
    const double seconds = place.worker->seconds();
    UnitOutcome outcome = place.worker->outcome(std::move(reply));
    if (!place.worker->fit()) start(place);  // restart now, so that it starts up while we write the row
    record_(*place.unit, std::move(outcome), seconds);
  }

  const Units& units_;
  const size_t first_input_ = kept ? kept->inputs : 0;
  UnitQueue queue_;
  std::vector<Place> places_;
  int threads_each_;
  Allowance allowance_;
  const RecordOutcome& record_;
};

}  // namespace

KeptWorkers::KeptWorkers() { kept = std::make_unique<Idle>(); }
KeptWorkers::~KeptWorkers() { kept.reset(); }

double memory_of_workers() {
  static const double bytes = 0.9 * total_memory();
  return bytes;
}

void run_side_by_side(const std::vector<Unit>& units, int threads, const Limits& limits, const RecordOutcome& record) {
  const double memory = memory_of_workers();
  const bool few = std::ssize(units) < threads;
  const auto workers = static_cast<size_t>(few ? 1 : threads);
  const double share = memory / static_cast<double>(workers);
  Units small, large;
  for (const Unit& unit : units) (!few && cell_bytes(unit.cell) > share / 2 ? large : small).push_back(&unit);
  if (!small.empty())
    Pool(small, std::min(workers, small.size()), few ? threads : 1, {limits.seconds, limits.bytes.value_or(share)},
         record)
        .go();
  if (!large.empty()) Pool(large, 1, threads, {limits.seconds, limits.bytes.value_or(memory)}, record).go();
}

}  // namespace attnbench
