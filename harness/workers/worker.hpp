// The runner's side of a worker: what it is asked, what it may take, and how it ended.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "harness/experiment/message.hpp"
#include "harness/machine/scratch_folder.hpp"
#include "harness/workers/process.hpp"

namespace attnbench {

// What one request may take before its worker is ended.
struct Allowance {
  double seconds, bytes;
};

class Worker {
 public:
  // bytes: an allocation beyond twice that is refused, should it come faster than the resident set is looked at.
  // cores: those that it may run on; empty: as the runner.
  explicit Worker(double bytes, const std::vector<int>& cores = {});

  // Begins a request; doing: what it will be at, until it says otherwise ("measuring").
  void ask(const Message& request, Allowance allowance, std::string doing);
  bool busy() const { return busy_; }

  // What has come of the request since: its answer, or the ending of the worker, which is then gone. Watches the
  // limits, so it is to be called every few milliseconds while the worker is busy.
  using Reply = std::variant<Message, Ending>;
  std::optional<Reply> look();
  // A reply as what has become of the cell; a failure with what it printed, memory with the limit.
  UnitOutcome outcome(Reply reply) const;

  double resident() const { return resident_bytes(process_.id()); }
  double seconds() const { return seconds_; }  // that the last request took
  // Whether it can be asked for more: it lives, and what it did has left nothing that could disturb the next: no other
  // process, no other locale, rounding or folder.
  bool fit() const;

 private:
  friend void wait_for(std::span<Worker* const> workers);
  Ending ended(Ending::Kind kind, std::string reason);
  std::string last_words() const;

  ScratchFolder scratch_;
  Process process_;
  Inbox inbox_;
  Allowance allowance_{};
  std::string doing_;
  bool ready_ = false, busy_ = false, open_ = true, spent_ = false;
  double at_start_ = 0;  // bytes resident when it was ready
  double started_ = 0, seconds_ = 0, looked_ = 0, closed_ = 0, peak_ = 0;
  std::uintmax_t said_before_ = 0;  // bytes of output when the request began
};

// Waits until one of them has something to say or ended, but not longer than until it is time to look at the limits.
void wait_for(std::span<Worker* const> workers);
// Asks and waits. Nothing: the run was interrupted meanwhile.
std::optional<Worker::Reply> answer(Worker& worker, const Message& request, Allowance allowance, std::string doing);

}  // namespace attnbench
