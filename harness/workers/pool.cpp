#include "harness/workers/pool.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
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

// The plugins of each unit, and a number for each set of them.
struct PluginSets {
  explicit PluginSets(const Units& units) {
    std::map<PluginFiles, size_t> numbers;
    for (const Unit* unit : units) {
      const auto [place, fresh] = numbers.try_emplace(plugins_of(unit->cell), sets.size());
      if (fresh) sets.push_back(place->first);
      of_unit.push_back(place->second);
    }
  }
  std::vector<PluginFiles> sets;
  std::vector<size_t> of_unit;
};

std::vector<UnitQueue::Group> groups_of(const Units& units, const std::vector<size_t>& plugins) {
  std::vector<UnitQueue::Group> groups;
  for (size_t i = 0; i < units.size(); ++i)
    groups.push_back(
        {fmt::format("{} {}", units[i]->cell.input_key(), units[i]->replicate), units[i]->replicate, plugins[i]});
  return groups;
}

// Workers without work, each with the memory limit and the plugins that it was started with.
struct Idle {
  struct One {
    double bytes;
    PluginFiles plugins;
    std::unique_ptr<Worker> worker;
  };
  std::vector<One> workers;
  size_t inputs = 0;  // number of inputs numbered so far: a worker recognises its last input by its number
};
std::unique_ptr<Idle> kept;

// An idle worker with this memory limit and these plugins that is still fit, or null. Drops workers of a run with
// another limit.
std::unique_ptr<Worker> take_kept(double bytes, const PluginFiles& plugins) {
  if (!kept) return nullptr;
  std::erase_if(kept->workers, [&](const auto& one) { return one.bytes != bytes || !one.worker->fit(); });
  const auto found =
      std::find_if(kept->workers.begin(), kept->workers.end(), [&](const auto& one) { return one.plugins == plugins; });
  if (found == kept->workers.end()) return nullptr;
  std::unique_ptr<Worker> worker = std::move(found->worker);
  kept->workers.erase(found);
  return worker;
}

// Workers with one memory limit, and the units that they run.
class Pool {
 public:
  Pool(const Units& units, size_t workers, int threads_each, Allowance allowance, const RecordOutcome& record,
       bool fresh)
      : units_(units),
        plugins_(units),
        queue_(groups_of(units, plugins_.of_unit), workers),
        places_(workers),
        threads_each_(threads_each),
        allowance_(allowance),
        record_(record),
        fresh_(fresh) {
    if (kept) kept->inputs += units.size();
  }
  ~Pool() {
    for (Place& place : places_) put_aside(place);
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
    size_t plugins = 0;  // the set that the worker loads
    const Unit* unit = nullptr;
  };

  void begin_next(size_t w) {
    const auto next = queue_.next(w);
    if (!next) return;
    Place& place = places_[w];
    const size_t plugins = plugins_.of_unit[next->unit];
    if (place.plugins != plugins) put_aside(place);
    place.plugins = plugins;
    if (!place.worker) place.worker = take_kept(allowance_.bytes, plugins_.sets[plugins]);
    if (!place.worker) start(place);
    place.unit = units_[next->unit];
    Allowance allowance = allowance_;
    allowance.sent += 2 * cell_bytes(place.unit->cell);  // an experiment may record all that it holds
    place.worker->ask({{"do", "unit"},
                       {"cell", to_message(place.unit->cell)},
                       {"replicate", place.unit->replicate},
                       {"input", first_input_ + next->input},
                       {"threads", threads_each_}},
                      allowance, "measuring");
  }

  void start(Place& place) {
    place.worker.reset();  // ends the old worker and everything that it started before the new one starts
    place.worker = std::make_unique<Worker>(allowance_.bytes, plugins_.sets[place.plugins]);
  }

  // Leaves a place without a worker. The worker stays for a later call if workers are kept.
  void put_aside(Place& place) {
    if (kept && place.worker && !place.worker->busy() && place.worker->fit())
      kept->workers.push_back({allowance_.bytes, plugins_.sets[place.plugins], std::move(place.worker)});
    place.worker.reset();
  }

  void finish(Place& place, Worker::Reply reply) {
    const double seconds = place.worker->seconds();
    UnitOutcome outcome = place.worker->outcome(std::move(reply));
    if (fresh_ || !place.worker->fit()) start(place);  // restart now, so that it starts up while we write the row
    record_(*place.unit, std::move(outcome), seconds);
  }

  const Units& units_;
  PluginSets plugins_;
  const size_t first_input_ = kept ? kept->inputs : 0;
  UnitQueue queue_;
  std::vector<Place> places_;
  int threads_each_;
  Allowance allowance_;
  const RecordOutcome& record_;
  bool fresh_;  // each unit gets a worker of its own
};

void run_units(const std::vector<Unit>& units, int threads, const Limits& limits, const RecordOutcome& record,
               bool fresh) {
  const double memory = memory_of_workers();
  const bool few = std::ssize(units) < threads;
  const auto workers = static_cast<size_t>(few ? 1 : threads);
  const double share = memory / static_cast<double>(workers);
  Units small, large;
  for (const Unit& unit : units) (!few && cell_bytes(unit.cell) > share / 2 ? large : small).push_back(&unit);
  if (!small.empty())
    Pool(small, std::min(workers, small.size()), few ? threads : 1, {limits.seconds, limits.bytes.value_or(share)},
         record, fresh)
        .go();
  if (!large.empty()) Pool(large, 1, threads, {limits.seconds, limits.bytes.value_or(memory)}, record, fresh).go();
}

}  // namespace

KeptWorkers::KeptWorkers() { kept = std::make_unique<Idle>(); }
KeptWorkers::~KeptWorkers() { kept.reset(); }

double memory_of_workers() {
  static const double bytes = 0.9 * total_memory();
  return bytes;
}

void run_side_by_side(const std::vector<Unit>& units, int threads, const Limits& limits, const RecordOutcome& record) {
  run_units(units, threads, limits, record, false);
}

void run_in_fresh_workers(const std::vector<Unit>& units, int threads, const Limits& limits,
                          const RecordOutcome& record) {
  run_units(units, threads, limits, record, true);
}

}  // namespace attnbench
