// Counts of events while a piece of code runs, such as instructions: perf_event_open(2).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace attnbench {

// By the numbers of <linux/perf_event.h>.
struct CountedEvent {
  std::uint32_t type;
  std::uint64_t config;
};
// Instructions, cycles, and reads that no cache had.
const std::vector<CountedEvent>& hardware_events();

// Counts while it lives, in the threads of this process and in those that they start, in user mode.
class Counters {
 public:
  explicit Counters(const std::vector<CountedEvent>& events);
  ~Counters();
  Counters(const Counters&) = delete;
  Counters& operator=(const Counters&) = delete;

  // Whether the system counts all of them and lets this process ask. Most virtual machines count no hardware events.
  bool available() const { return available_; }
  // How often each event came so far, or nullopt. An event that shared its counter with others is scaled up to the
  // whole time.
  std::optional<std::vector<double>> counts() const;

 private:
  std::vector<std::vector<int>> files_;  // of each event, one a thread
  bool available_ = true;
};

}  // namespace attnbench
