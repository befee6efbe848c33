// The work of others on the cores of this run, before it measures time and meanwhile.
#pragma once

#include <map>
#include <optional>
#include <vector>

namespace attnbench {

struct Load {
  double cores = 0;           // of those that this process may use: how many were busy with other work
  std::vector<int> quietest;  // those cores, the least busy ones first
  bool quiet = true;          // false: it was waited for, and did not come
};

// Watches for a moment, or, where wait is given, until less than a tenth of a core was busy for half a second, at most
// so many seconds.
Load load_of_others(std::optional<double> wait);

// The work of others meanwhile, from readings of a clock that counts how long they had the processors.
class OthersWork {
 public:
  // busy: seconds of work of others until that time, of all cores together.
  void add(double time, double busy) { readings_.emplace_hint(readings_.end(), time, busy); }
  // Less than that is too short for a clock that counts hundredths of a second.
  static constexpr double least_seconds = 0.25;
  // How many cores they kept busy in between, or around it for at least so long. 0 where there are no two readings.
  double cores(double from, double to) const;

 private:
  std::map<double, double> readings_;
};

// So many cores busy with other work disturb what is measured on the cores beside them: they share its memory, its last
// cache and its clock rate. docs/engines.md has what that costs.
bool disturbs(double cores);

// Seconds that others have had the processors, since the start of the machine: work on cores that nothing is measured
// on, less that of this process, and on the measured ones what the machine itself was kept waiting by other machines on
// its host. Needs a core that nothing is measured on; else nothing.
std::optional<double> work_of_others(const std::vector<int>& all, const std::vector<int>& measured);

// Keeps this process off these cores while it lives, when others are left to it.
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
