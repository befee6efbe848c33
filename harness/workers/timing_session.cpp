#include "harness/workers/timing_session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <stdexcept>
#include <thread>
#include <unordered_map>

#include "harness/machine/interrupts.hpp"
#include "harness/machine/load.hpp"
#include "harness/machine/memory_limit.hpp"
#include "harness/random/streams.hpp"
#include "harness/timing/session.hpp"
#include "harness/timing/turns.hpp"
#include "harness/workers/worker.hpp"

namespace attnbench {

namespace {

// The machine's rates, measured once by a separate worker and kept for the lifetime of the runner.
const Rates& rates_on(const std::vector<int>& cores, Precision precision, int threads) {
  static std::map<std::pair<Precision, int>, Rates> kept;
  const auto [place, fresh] = kept.try_emplace({precision, threads});
  if (!fresh) return place->second;
  Worker worker(memory_of_workers(), {}, cores);
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

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

class Session {
 public:
  // note: added to each of the session's cells; may be empty.
  Session(std::vector<const Unit*> units, const std::string& note, const Limits& limits, const RecordOutcome& record,
          const TellProgress& progress)
      : first_(*units.front()),
        note_(note),
        limits_(limits),
        record_(record),
        progress_(progress),
        load_(load_of_others(limits.wait_quiet)) {
    const auto threads = static_cast<size_t>(first_.cell.threads);
    if (threads < load_.quietest.size())
      cores_.assign(load_.quietest.begin(), load_.quietest.begin() + first_.cell.threads);
    for (const Unit* unit : units) {
      Length& length = lengths_.try_emplace(unit->cell.input_key(), partner_of(unit->cell)).first->second;
      seats_.push_back({.cell = &unit->cell, .unit = unit, .length = &length});
    }
  }

  void go() {
    const KeptOff off(cores_);
    const Rates& rates = rates_on(cores_, first_.cell.problem.shape.precision, first_.cell.threads);
    make_members();
    if (alive() > 0) run_blocks();
    for (Seat& seat : seats_)
      if (seat.unit && seat.worker) record(seat, rates);
  }

 private:
  struct Seat;
  struct Length {
    explicit Length(Cell partner) : exact_cell(std::move(partner)) {}
    Cell exact_cell;
    Seat* exact = nullptr;  // the seat that takes the turns of exact softmax
    std::string no_pair;    // why this length has no pairs
  };
  struct Seat {
    const Cell* cell;
    const Unit* unit;  // null for a partner, which is not recorded
    Length* length;
    std::unique_ptr<Worker> worker = {};  // null once it has ended
    double seconds = 0;                   // that its requests have taken
    double resident = 0;                  // bytes, after its last request
    bool peer = false;
    std::vector<double> turns = {};                    // seconds of a call, one sample per block
    std::vector<std::pair<double, double>> when = {};  // begin and end of each turn
    bool unpaired = false;                             // softmax did not take as many turns
  };
  struct Turn {
    Seat* seat;
    bool peer;
  };

  // Number of cells that have not ended, of one length or of all.
  std::ptrdiff_t alive(const Length* length = nullptr) const {
    return std::count_if(seats_.begin(), seats_.end(), [&](const Seat& seat) {
      return seat.unit && seat.worker && (!length || seat.length == length);
    });
  }

  void look_around() {
    looked_ = now();
    if (const auto work = work_of_others(load_.quietest, cores_)) others_.add(looked_, *work);
  }

  // Sends a request to a member. Returns nullopt if the request ended the member, whose unit is then recorded, or if
  // the run was interrupted.
  std::optional<Message> ask(Seat& seat, const Message& request, std::string doing) {
    double others = 0;
    for (const Seat& other : seats_)
      if (&other != &seat && other.worker) others += other.resident;
    const double bytes = limits_.bytes.value_or(std::max(0.0, memory_of_workers() - others));
    auto reply = answer(*seat.worker, request, {limits_.seconds - seat.seconds, bytes}, std::move(doing));
    if (!reply) return std::nullopt;
    seat.seconds += seat.worker->seconds();
    seat.resident = seat.worker->resident();
    auto* message = std::get_if<Message>(&*reply);
    if (message && !message->contains("ending") && seat.seconds <= limits_.seconds) return std::move(*message);
    UnitOutcome outcome = message && !message->contains("ending") ? UnitOutcome{{Ending::Kind::timed_out, ""}}
                                                                  : seat.worker->outcome(std::move(*reply));
    if (outcome.ending.kind == Ending::Kind::timed_out)
      outcome.ending.reason = fmt::format("limit {:g} s for all of its turns", limits_.seconds);
    end(seat, std::move(outcome));
    return std::nullopt;
  }

  // The same for one value of the reply.
  template <class Value>
  std::optional<Value> ask(Seat& seat, const Message& request, const char* name, const std::string& doing) {
    const auto reply = ask(seat, request, doing);
    if (!reply) return std::nullopt;
    try {
      return reply->at(name).get<Value>();
    } catch (const nlohmann::json::exception&) {
      end(seat, {{Ending::Kind::crashed, "sent an answer that cannot be read while " + doing}});
      return std::nullopt;
    }
  }

  void end(Seat& seat, UnitOutcome outcome) {
    const auto& [kind, reason] = outcome.ending;
    seat.worker.reset();
    Length& length = *seat.length;
    if (&seat == length.exact && kind != Ending::Kind::done)
      length.no_pair = fmt::format("no pair: softmax ended {} ({})", to_string(kind), reason);
    if (seat.unpaired) outcome.notes.push_back(length.no_pair);
    if (!note_.empty()) outcome.notes.push_back(note_);
    if (!load_.quiet)
      outcome.notes.push_back(
          fmt::format("timed beside other work: the machine was not quiet within {:g} s", *limits_.wait_quiet));
    if (seat.unit) record_(*seat.unit, std::move(outcome), seat.seconds);
  }

  void start(Seat& seat) const {
    seat.worker = std::make_unique<Worker>(limits_.bytes.value_or(memory_of_workers()), plugins_of(*seat.cell), cores_);
  }

  void make(Seat& seat) {
    const auto peer =
        ask<bool>(seat, {{"do", "make"}, {"cell", to_message(*seat.cell)}, {"replicate", first_.replicate}}, "peer",
                  "making what is timed");
    seat.peer = peer.value_or(false);
  }

  // Makes the cells, then a softmax partner for each length that has cells but no softmax among them. All workers are
  // started first, because each may import a large library, and they can do so at the same time.
  void make_members() {
    for (Seat& seat : seats_) start(seat);
    for (Seat& seat : seats_) {
      if (Interrupts::asked()) return;
      if (seat.cell->method.spec() == seat.length->exact_cell.method.spec()) seat.length->exact = &seat;
      make(seat);
    }
    if (!first_.cell.experiment.flag("pair")) return;
    for (auto& [input, length] : lengths_) {
      if (Interrupts::asked()) return;
      if (length.exact || alive(&length) == 0) continue;
      length.exact = &seats_.emplace_back(Seat{.cell = &length.exact_cell, .unit = nullptr, .length = &length});
      start(*length.exact);
      make(*length.exact);
    }
  }

  void run_blocks() {
    began_ = since_1970();
    const double began = now();
    look_around();
    std::vector<Turn> turns;
    for (const bool peer : {true, false})
      for (Seat& seat : seats_)
        if (seat.worker && (!peer || seat.peer)) turns.push_back({&seat, peer});
    Generator generator = Streams(first_.cell.seed).stream("turns", session_key(first_.cell), first_.replicate);
    const Index blocks = first_.cell.experiment.integer("blocks");
    for (Index block = 0; block < blocks; ++block) {
      for (size_t i = turns.size(); i > 1; --i) std::swap(turns[i - 1], turns[generator() % i]);
      for (const Turn& turn : turns) {
        if (Interrupts::asked()) return;
        take(turn);
      }
      progress_(static_cast<double>(alive() * (block + 1)) / static_cast<double>(blocks),
                fmt::format("block {}/{} of {} cells, {} lengths", block + 1, blocks, alive(), lengths_.size()));
    }
    // Wait until the kernel's clock ticks can resolve the work of other processes.
    const double left = OthersWork::least_seconds - (now() - began);
    std::this_thread::sleep_for(std::chrono::duration<double>(std::max(0.0, left)));
    look_around();
  }

  void take(const Turn& turn) {
    Seat& seat = *turn.seat;
    if (!seat.worker || (!seat.unit && alive(seat.length) == 0)) return;
    if (now() - looked_ > 0.02) look_around();  // the kernel's clock ticks every hundredth of a second
    const double from = now();
    const auto seconds = ask<double>(seat, {{"do", "turn"}, {"peer", turn.peer}}, "seconds",
                                     turn.peer ? "its peer had a turn" : "taking a turn");
    if (!seconds || turn.peer) return;
    seat.turns.push_back(*seconds);
    seat.when.emplace_back(from, now());
  }

  void record(Seat& seat, const Rates& rates) {
    if (Interrupts::asked()) return;
    const Seat* exact = seat.length->exact;
    const bool paired = exact && exact->turns.size() == seat.turns.size();
    seat.unpaired = exact && !paired;
    std::vector<double> load, beside;
    for (const auto& [from, to] : seat.when) {
      load.push_back(cores_.empty() ? load_.cores : others_.cores(from, to));
      beside.push_back(!cores_.empty() && disturbs(load.back()) ? 1 : 0);
    }
    ask(seat,
        {{"do", "record"},
         {"exact", paired ? exact->turns : std::vector<double>{}},
         {"load", load},
         {"beside", beside},
         {"session", began_},
         {"rates", {rates.fma_peak, rates.exp_rate, rates.bandwidth}}},
        "measuring peak memory");
  }

  const Unit& first_;
  const std::string& note_;
  const Limits& limits_;
  const RecordOutcome& record_;
  const TellProgress& progress_;
  Load load_;
  OthersWork others_;
  double looked_ = 0, began_ = 0;
  std::vector<int> cores_;                 // for the turns; empty: all cores
  std::map<std::string, Length> lengths_;  // by input key
  std::deque<Seat> seats_;                 // a deque, because lengths point into it
};

// Runs units that could form one session, split into parts that fit into memory.
void run_in_parts(const std::vector<const Unit*>& units, const Limits& limits, const RecordOutcome& record,
                  const TellProgress& progress) {
  std::vector<const Cell*> cells;
  for (const Unit* unit : units) cells.push_back(&unit->cell);
  const double bytes = memory_of_a_session();
  const auto parts = sessions_that_fit(cells, bytes);
  const std::string note = parts.size() == 1
                               ? ""
                               : fmt::format(
                                     "timed in {} sessions, of some lengths each: workers for all {} cells at once "
                                     "would take {}, but {} is available",
                                     parts.size(), cells.size(), memory_size(session_bytes(cells)), memory_size(bytes));
  for (const auto& part : parts) {
    if (Interrupts::asked()) return;
    std::vector<const Unit*> members;
    for (const size_t place : part) members.push_back(units[place]);
    Session(members, note, limits, record, progress).go();
  }
}

}  // namespace

void run_in_sessions(const std::vector<Unit>& units, const Limits& limits, const RecordOutcome& record,
                     const TellProgress& progress) {
  std::vector<std::vector<const Unit*>> sessions;  // in the order of their first cells
  std::unordered_map<std::string, size_t> numbers;
  for (const Unit& unit : units) {
    const auto [place, fresh] =
        numbers.try_emplace(fmt::format("{} {}", session_key(unit.cell), unit.replicate), sessions.size());
    if (fresh) sessions.emplace_back();
    sessions[place->second].push_back(&unit);
  }
  for (const auto& members : sessions) {
    if (Interrupts::asked()) return;
    run_in_parts(members, limits, record, progress);
  }
}

}  // namespace attnbench
