#include "harness/workers/serve.hpp"

#include <fcntl.h>
#include <fenv.h>
#include <malloc.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <clocale>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <locale>
#include <new>
#include <nlohmann/json.hpp>
#include <system_error>

#include "harness/experiment/message.hpp"
#include "harness/plugins/tell.hpp"
#include "harness/timing/turns.hpp"
#include "harness/workers/process.hpp"

namespace attnbench {

namespace {

constexpr int channel = 3;           // the descriptor where Process puts the socket
constexpr int kept_free = 64 << 20;  // bytes of freed memory that a worker keeps for its next measurement

// Turns the current exception into a cell's ending. Misuse inside a cell is a failure of that cell: the request itself
// was checked before.
Ending ending_of_current_exception() {
  try {
    throw;
  } catch (const Skip& e) {
    return {Ending::Kind::skipped, e.what()};
  } catch (const NumericallyInvalid& e) {
    return {Ending::Kind::invalid, e.what()};
  } catch (const std::bad_alloc& e) {
    const bool says_which = e.what() != std::string_view(std::bad_alloc().what());
    return {Ending::Kind::out_of_memory, says_which ? e.what() : "an allocation was refused"};
  } catch (const std::exception& e) {
    return {Ending::Kind::failed, e.what()};
  } catch (...) {
    return {Ending::Kind::failed, "threw something that is not a std::exception"};
  }
}

// A NaN makes the unit `invalid`; it never becomes a row.
Ending ending_of(const std::vector<Measurement>& measurements) {
  for (const auto& m : measurements)
    for (const double value : m.values)
      if (std::isnan(value)) return {Ending::Kind::invalid, m.metric + " is not a number"};
  return {};
}

UnitOutcome outcome_of(Recorder& recorder) {
  UnitOutcome outcome{.measurements = recorder.take(), .notes = recorder.notes()};
  outcome.ending = ending_of(outcome.measurements);
  if (outcome.ending.kind != Ending::Kind::done) outcome.measurements.clear();
  return outcome;
}

// Detects changes by a method that would affect everything that runs after it in the same process.
class ProcessState {
 public:
  bool changed() const {
    std::error_code gone;
    return computes_otherwise() || std::locale() != std::locale::classic() || setlocale(LC_ALL, nullptr) != locale_ ||
           uselocale(nullptr) != LC_GLOBAL_LOCALE || std::filesystem::current_path(gone) != folder_;
  }
  static bool computes_otherwise() { return fegetround() != FE_TONEAREST || subnormals_are_lost(); }

 private:
  static bool subnormals_are_lost() {
    volatile double smallest = std::numeric_limits<double>::min();
    return smallest / 2 == 0;
  }

  std::filesystem::path folder_ = std::filesystem::current_path();
  std::string locale_ = setlocale(LC_ALL, nullptr);  // an interpreter sets the user's locale
};

std::function<bool()> spoilt;  // set by set_spoilt

class Server {
 public:
  // Serves requests until the runner closes the connection.
  int go() {
    Inbox inbox;
    for (bool settled = false;;) {
      while (const auto request = inbox.next()) {
        if (!settled) {
          settled = settle(*request);
          continue;
        }
        number_ = request->at("request");
        Message done = answer(*request);
        done["request"] = number_;
        if (getpid() != own_) _exit(0);  // a method forked and its child returned here: only the parent may answer
        send(channel, done);
      }
      if (!inbox.receive(channel, true)) return 0;
    }
  }

 private:
  bool settle(const Message& settings) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != settings.at("runner").get<pid_t>()) _exit(0);  // the runner died before the line above
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    // When memory runs out, the kernel kills this process first, not the runner.
    std::ofstream("/proc/self/oom_score_adj") << 500;
    if (const auto& cores = settings.at("cores"); !cores.empty()) {
      cpu_set_t set;
      CPU_ZERO(&set);
      for (const int core : cores) CPU_SET(core, &set);
      sched_setaffinity(0, sizeof(set), &set);
    }
    load();
    limit_data(settings.at("bytes"));
    state_ = ProcessState();
    send(channel, {{"ready", resident_bytes(getpid())}});
    return true;
  }

  // If a plugin fails to load, the worker answers every later request with that error.
  void load() {
    try {
      loaded_ = load_plugins();
      if (ProcessState::computes_otherwise())
        throw Misuse(
            "a plugin changes how this process computes as soon as it is loaded: its rounding, or subnormal numbers "
            "are lost; link it without -ffast-math");
    } catch (const std::exception& e) {
      refusal_ = e.what();
    }
  }

  // Allows twice `bytes` beyond the present data size, which can be large: a sanitizer maps terabytes at the start.
  static void limit_data(double bytes) {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;)
      if (double kilobytes = 0; word == "VmData:" && status >> kilobytes) {
        const auto most = static_cast<rlim_t>(2 * bytes + 1024 * kilobytes);
        const rlimit limit{most, most};
        setrlimit(RLIMIT_DATA, &limit);
      }
  }

  void doing(const char* what) const {
    if (getpid() == own_) send(channel, {{"doing", what}, {"request", number_}});
  }

  Message answer(const Message& request) {
    const std::string wanted = request.at("do");
    if (wanted == "entries" || wanted == "tell") return said(request);
    UnitOutcome outcome;
    try {
      if (!refusal_.empty()) throw Misuse(refusal_);
      if (wanted == "unit") {
        outcome = measure(request);
      } else if (wanted == "rates") {
        const Rates& all = rates(static_cast<Precision>(request.at("precision").get<int>()), request.at("threads"));
        return {{"rates", {all.fma_peak, all.exp_rate, all.bandwidth}}};
      } else if (wanted == "make") {
        cell_ = cell_of(request.at("cell"));
        context_ = context_of(*cell_, cell_->threads);
        exact_ = std::make_unique<ExactCache>();
        member_.emplace(find<ExperimentEntry>(cell_->experiment.name()).timed.value(),
                        Task{*cell_, request.at("replicate"), context_, *exact_});
        return {{"peer", member_->has_peer()}};
      } else if (wanted == "turn") {
        return {{"seconds", member_->turn(request.at("peer") ? TimedMember::Whose::peer : TimedMember::Whose::own)}};
      } else if (wanted == "record") {
        Recorder recorder;
        const auto& all = request.at("rates");
        member_->record({.exact = request.at("exact"),
                         .load = request.at("load"),
                         .beside = request.at("beside"),
                         .session = request.at("session"),
                         .rates = {.fma_peak = all.at(0), .exp_rate = all.at(1), .bandwidth = all.at(2)}},
                        recorder);
        doing("recording");
        outcome = outcome_of(recorder);
      } else {
        throw std::logic_error("a worker does not know how to do: " + wanted);
      }
    } catch (...) {
      outcome = {.ending = ending_of_current_exception()};
    }
    // If the process state changed, nothing that was computed here since can be trusted, least of all the cached exact
    // results: the runner then replaces this worker.
    Message done = to_message(outcome);
    if (state_.changed() || (spoilt && spoilt())) done["spent"] = true;
    return done;
  }

  // Answers the runner's questions about plugins.
  Message said(const Message& request) const {
    try {
      if (!refusal_.empty()) throw Misuse(refusal_);
      if (request.at("do") == "entries") return entries_message(loaded_);
      return {{"told", told(request)}};
    } catch (const Misuse& e) {
      return {{"misuse", e.what()}};
    } catch (...) {
      return to_message(UnitOutcome{.ending = ending_of_current_exception()});
    }
  }

  UnitOutcome measure(const Message& request) {
    // Exact results are kept for one input only: those of another input would count towards this input's memory.
    if (const size_t input = request.at("input"); !exact_ || input != input_) {
      exact_ = std::make_unique<ExactCache>();
      if (mallinfo2().fordblks > kept_free) malloc_trim(0);
      input_ = input;
    }
    const Cell cell = cell_of(request.at("cell"));
    Context context = context_of(cell, request.at("threads"));
    Recorder recorder;
    find<ExperimentEntry>(cell.experiment.name())
        .run(Task{.cell = cell,
                  .replicate = request.at("replicate"),
                  .context = context,
                  .exact = *exact_,
                  .doing = [this](const char* what) { doing(what); }},
             recorder);
    doing("recording");
    return outcome_of(recorder);
  }

  pid_t own_ = getpid();
  std::uint64_t number_ = 0;  // of the request, which its messages repeat
  ProcessState state_;
  std::vector<PluginEntry> loaded_;
  std::string refusal_;  // why the plugins could not be loaded
  std::unique_ptr<ExactCache> exact_;
  size_t input_ = 0;
  // The member of a timing session that this worker runs, if any.
  std::optional<Cell> cell_;
  Context context_;
  std::optional<TimedMember> member_;
};

}  // namespace

void set_spoilt(std::function<bool()> ask) { spoilt = std::move(ask); }

std::optional<int> serve_if_worker(int argc, char** argv) {
  if (argc != 2 || std::string_view(argv[1]) != "worker") return std::nullopt;
  struct stat file {};
  if (fstat(channel, &file) != 0 || !S_ISSOCK(file.st_mode)) {
    std::cerr << "attnbench: a run starts 'worker' for its own use; expected a command of attnbench --help\n";
    return 2;
  }
  fcntl(channel, F_SETFD, FD_CLOEXEC);
  // Keep the memory that one replicate frees for the next. Giving it back and faulting it in again took a quarter of
  // the time of a run over heads of the model.
  mallopt(M_TRIM_THRESHOLD, kept_free);
  mallopt(M_MMAP_THRESHOLD, kept_free / 2);
  try {
    return Server().go();
  } catch (const std::system_error& e) {
    // A runner that is killed closes its sockets before the kernel ends its workers, and this one was about to send.
    if (e.code() == std::errc::broken_pipe) return 0;
    std::cerr << "attnbench worker: " << e.what() << "\n";
    return 1;
  } catch (const std::exception& e) {
    std::cerr << "attnbench worker: " << e.what() << "\n";
    return 1;
  }
}

}  // namespace attnbench
