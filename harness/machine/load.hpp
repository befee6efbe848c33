// The work of other processes on the cores of this run, before and while it measures time.
#pragma once

#include <map>
#include <optional>
#include <vector>

namespace attnbench {

struct Load {
  double cores = 0;           // how many of the cores that this process may use were busy with other work
  std::vector<int> quietest;  // those cores, least busy first
  bool quiet = true;          // false: the machine did not become quiet within the wait
};

// Watches for a moment. With `wait`, watches until less than a tenth of a core was busy for half a second, for at most
// that many seconds.
Load load_of_others(std::optional<double> wait);

// The work of other processes over time, from readings of their processor seconds.
class OthersWork {
 public:
  // busy: processor seconds of other processes up to that time, over all cores.
  void add(double time, double busy) { readings_.emplace_hint(readings_.end(), time, busy); }
  // A clock that counts hundredths of a second needs at least this long.
  static constexpr double least_seconds = 0.25;
  // How many cores they kept busy in that interval, which is widened to least_seconds if it is shorter. 0 with fewer
  // than two readings.
  double cores(double from, double to) const;

 private:
  std::map<double, double> readings_;
};

// Whether this many cores busy with other work disturb measurements on the cores beside them: they share memory,
// last-level cache and clock rate. docs/engines.md gives the cost.
bool disturbs(double cores);

// Processor seconds of others since the machine started. Counts the work on cores without measurements, minus that of
// this process. On the measured cores it counts the time stolen by other virtual machines on the host. Needs a core
// without measurements; otherwise nullopt.
std::optional<double> work_of_others(const std::vector<int>& all, const std::vector<int>& measured);

// Keeps this process off these cores while it lives, if that leaves it other cores.
class KeptOff {
 public:
  explicit KeptOff(const std::vector<int>& cores);
  ~KeptOff();
  KeptOff(const KeptOff&) = delete;
  KeptOff& operator=(const KeptOff&) = delete;

 private:
  std::vector<int> before_;
};

}  // namespace attnbench
