// The runner's side of a worker: sends requests, enforces limits, and reports how the worker ended.
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

// Limits of one request. A worker that exceeds them is ended.
struct Allowance {
  double seconds, bytes;
  // Bytes that it may send: a plugin that floods the socket must not fill the memory of the runner.
  double sent = 16e6;
};

class Worker {
 public:
  // bytes: the worker's memory limit. The system refuses an allocation beyond twice that, in case memory grows faster
  // than we check the resident set. plugins: the ones that it loads. cores: the cores that it may run on; empty: those
  // of the runner.
  Worker(double bytes, const PluginFiles& plugins, const std::vector<int>& cores = {});

  // Begins a request. doing: the current step in messages ("measuring"), until the worker names another.
  void ask(Message request, Allowance allowance, std::string doing);
  bool busy() const { return busy_; }

  // The reply to the request, if there is one yet: its answer, or how the worker ended, in which case the worker is
  // gone. Also enforces the limits, so call it every few milliseconds while the worker is busy.
  using Reply = std::variant<Message, Ending>;
  std::optional<Reply> look();
  // Turns a reply into the outcome of a cell. Adds the last output to a failure, and the limit to an out-of-memory
  // ending. A reply without an outcome ends the worker.
  UnitOutcome outcome(Reply reply);

  double resident() const { return resident_bytes(process_.id()); }
  double seconds() const { return seconds_; }  // of the last request
  // Whether it can take more requests: it is alive, and earlier requests left nothing that could disturb the next, such
  // as a child process, another locale, rounding mode or working folder, or a message that nothing asked for.
  bool fit() const;

 private:
  friend void wait_for(std::span<Worker* const> workers);
  Ending ended(Ending::Kind kind, std::string reason);
  Ending broken(std::string_view what);
  std::optional<Message> next_reply();
  std::string last_words() const;

  ScratchFolder scratch_;
  Process process_;
  Inbox inbox_;
  Allowance allowance_{};
  std::string doing_;
  // The number of the request, which its messages repeat. It is drawn, so that code of a plugin that writes to the
  // socket cannot guess the number of a later request.
  std::uint64_t number_ = 0, received_before_ = 0;
  bool ready_ = false, busy_ = false, open_ = true, spent_ = false;
  double at_start_ = 0;  // bytes resident when it was ready
  double started_ = 0, seconds_ = 0, looked_ = 0, closed_ = 0, peak_ = 0;
  std::uintmax_t said_before_ = 0;  // bytes of output when the request began
};

// Waits until a worker has sent something or ended, but not longer than until the next check of the limits.
void wait_for(std::span<Worker* const> workers);
// Sends a request and waits for the reply. nullopt: the run was interrupted.
std::optional<Worker::Reply> answer(Worker& worker, const Message& request, Allowance allowance, std::string doing);

}  // namespace attnbench
