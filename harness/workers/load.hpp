// What others do on the cores of this run, just before it measures time.
#pragma once

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
