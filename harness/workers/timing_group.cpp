#include "harness/workers/timing_group.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <stdexcept>
#include <unordered_map>

#include "harness/random/streams.hpp"
#include "harness/timing/turns.hpp"
#include "harness/workers/interrupts.hpp"
#include "harness/workers/load.hpp"
#include "harness/workers/worker.hpp"

namespace attnbench {

namespace {

// Of the machine, measured once by a worker of their own and kept for the runner's life.
const Rates& rates_on(const std::vector<int>& cores, Precision precision, int threads) {
  static std::map<std::pair<Precision, int>, Rates> kept;
  const auto [place, fresh] = kept.try_emplace({precision, threads});
  if (!fresh) return place->second;
  Worker worker(memory_of_workers(), cores);
  const auto reply = answer(worker, {{"do", "rates"}, {"precision", static_cast<int>(precision)}, {"threads", threads}},
                            {600, memory_of_workers()}, "measuring the machine");
  const Message* message = reply ? std::get_if<Message>(&*reply) : nullptr;
  if (message && message->contains("rates")) {
    const auto& all = message->at("rates");
    place->second = {.fma_peak = all.at(0), .exp_rate = all.at(1), .bandwidth = all.at(2)};
    return place->second;
  }
  kept.erase(place);
  static const Rates none;
  if (!reply) return none;  // interrupted: nothing will be recorded
  throw std::runtime_error("the rates of the machine could not be measured: " + worker.outcome(*reply).ending.reason);
}

class Group {
 public:
  Group(std::vector<const Unit*> units, const Limits& limits, const RecordOutcome& record)
      : first_(*units.front()), limits_(limits), record_(record), load_(load_of_others(limits.wait_quiet)) {
    const auto threads = static_cast<size_t>(first_.cell.threads);
    if (threads < load_.quietest.size())
      cores_.assign(load_.quietest.begin(), load_.quietest.begin() + first_.cell.threads);
    exact_cell_.method = Params("methods", "softmax");
    for (const Unit* unit : units) seats_.push_back({.cell = &unit->cell, .unit = unit});
  }

  void go() {
    const KeptOff off(cores_);
    const Rates& rates = rates_on(cores_, first_.cell.problem.shape.precision, first_.cell.threads);
    make_members();
    if (any_member()) run_blocks();
    for (Seat& seat : seats_)
      if (seat.unit && seat.worker) record(seat, rates);
  }

 private:
  struct Seat {
    const Cell* cell;
    const Unit* unit;                     // null for the partner, which is recorded nowhere
    std::unique_ptr<Worker> worker = {};  // null: it has ended
    double seconds = 0;                   // that it has taken
    bool peer = false;
    std::vector<double> turns = {};  // seconds of a call, a sample a block
    bool unpaired = false;           // softmax has not had as many
  };

  bool any_member() const {
    return std::any_of(seats_.begin(), seats_.end(), [](const Seat& s) { return s.unit && s.worker; });
  }

  // Asks a member; nothing when that ended it, or when the run was interrupted. What ended a unit is recorded.
  std::optional<Message> ask(Seat& seat, const Message& request, std::string doing) {
    double others = 0;
    for (const Seat& other : seats_)
      if (&other != &seat && other.worker) others += other.worker->resident();
    const double bytes = limits_.bytes.value_or(std::max(0.0, memory_of_workers() - others));
    auto reply = answer(*seat.worker, request, {limits_.seconds - seat.seconds, bytes}, std::move(doing));
    if (!reply) return std::nullopt;
    seat.seconds += seat.worker->seconds();
    auto* message = std::get_if<Message>(&*reply);
    if (message && !message->contains("ending") && seat.seconds <= limits_.seconds) return std::move(*message);
    UnitOutcome outcome = message && !message->contains("ending") ? UnitOutcome{{Ending::Kind::timed_out, ""}}
                                                                  : seat.worker->outcome(std::move(*reply));
    if (outcome.ending.kind == Ending::Kind::timed_out)
      outcome.ending.reason = fmt::format("limit {:g} s for all of its turns", limits_.seconds);
    end(seat, std::move(outcome));
    return std::nullopt;
  }

  void end(Seat& seat, UnitOutcome outcome) {
    const auto& [kind, reason] = outcome.ending;
    seat.worker.reset();
    if (&seat == exact_ && kind != Ending::Kind::done)
      no_pair_ = fmt::format("no pair: softmax ended {} ({})", to_string(kind), reason);
    if (seat.unpaired) outcome.notes.push_back(no_pair_);
    if (!load_.quiet)
      outcome.notes.push_back(
          fmt::format("timed beside other work: the machine was not quiet within {:g} s", *limits_.wait_quiet));
    if (seat.unit) record_(*seat.unit, std::move(outcome), seat.seconds);
  }

  void make(Seat& seat) {
    seat.worker = std::make_unique<Worker>(limits_.bytes.value_or(memory_of_workers()), cores_);
    const auto made = ask(seat, {{"do", "make"}, {"cell", to_message(*seat.cell)}, {"replicate", first_.replicate}},
                          "making what is timed");
    if (made) seat.peer = made->at("peer");
  }

  void make_members() {
    const auto is_exact = [&](const Seat& seat) { return seat.cell->method.spec() == exact_cell_.method.spec(); };
    const bool partner = first_.cell.experiment.flag("pair") && std::none_of(seats_.begin(), seats_.end(), is_exact);
    if (partner) seats_.push_back({.cell = &exact_cell_, .unit = nullptr});
    for (Seat& seat : seats_) {
      if (Interrupts::asked() || (!seat.unit && !any_member())) return;
      if (is_exact(seat)) exact_ = &seat;
      make(seat);
    }
  }

  void run_blocks() {
    struct Turn {
      Seat* seat;
      bool peer;
    };
    std::vector<Turn> turns;
    for (Seat& seat : seats_)
      if (seat.worker && seat.peer) turns.push_back({&seat, true});
    for (Seat& seat : seats_)
      if (seat.worker) turns.push_back({&seat, false});
    Generator generator = Streams(first_.cell.seed).stream("turns", exact_cell_.input_key(), first_.replicate);
    const Index blocks = first_.cell.experiment.integer("blocks");
    for (Index block = 0; block < blocks; ++block) {
      for (size_t i = turns.size(); i > 1; --i) std::swap(turns[i - 1], turns[generator() % i]);
      for (const auto& [seat, peer] : turns) {
        if (Interrupts::asked()) return;
        if (!seat->worker) continue;
        const auto taken = ask(*seat, {{"do", "turn"}, {"peer", peer}}, peer ? "its peer had a turn" : "taking a turn");
        if (taken && !peer) seat->turns.push_back(taken->at("seconds"));
      }
    }
  }

  void record(Seat& seat, const Rates& rates) {
    if (Interrupts::asked()) return;
    const bool paired = exact_ && exact_->turns.size() == seat.turns.size();
    seat.unpaired = exact_ && !paired;
    ask(seat,
        {{"do", "record"},
         {"exact", paired ? exact_->turns : std::vector<double>{}},
         {"load", load_.cores},
         {"rates", {rates.fma_peak, rates.exp_rate, rates.bandwidth}}},
        "measuring peak memory");
  }

  const Unit& first_;
  const Limits& limits_;
  const RecordOutcome& record_;
  Load load_;
  std::vector<int> cores_;
  Cell exact_cell_ = first_.cell;
  std::vector<Seat> seats_;
  Seat* exact_ = nullptr;
  std::string no_pair_;
};

}  // namespace

void run_in_groups(const std::vector<Unit>& units, const Limits& limits, const RecordOutcome& record) {
  std::vector<std::vector<const Unit*>> groups;  // in the order of their first cells
  std::unordered_map<std::string, size_t> numbers;
  for (const Unit& unit : units) {
    const auto [place, fresh] = numbers.try_emplace(
        fmt::format("{} {} {}", unit.row.experiment, unit.cell.input_key(), unit.replicate), groups.size());
    if (fresh) groups.emplace_back();
    groups[place->second].push_back(&unit);
  }
  for (const auto& members : groups) {
    if (Interrupts::asked()) return;
    Group(members, limits, record).go();
  }
}

}  // namespace attnbench
