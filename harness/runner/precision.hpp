// A stopping rule: replicates are added until the experiment's headline metric is precise enough.
//
// A cell's own stored replicates decide whether it goes on, at 5, 10, 20, ... of them in the order of their numbers.
// Threads, interruptions and other cells therefore do not change where it stops. Chow and Robbins 1965, Ann. Math.
// Statist. 36:457, give the meaning of the final interval: stopping when it is short costs coverage, which returns as
// the requested width goes to 0. precision_test.cpp tests what remains of the 95 % for a normal law whose standard
// deviation is half its mean: at least 90 % for rel-ci=0.05 and 0.2, where a fixed number of replicates would have
// 95 %. Read an interval of a run with --until as one of about 90 %, and one with --replicates alone as one of 95 %.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/linalg/matrix.hpp"

namespace attnbench {

struct Until {
  double relative = 0.05;              // half width of the 95 % interval over the magnitude of its centre
  std::optional<double> seconds = {};  // timing: measured turns after which a cell gives up; default 60
};

// "rel-ci=0.05" or "rel-ci=0.05,seconds=120". Throws Misuse.
Until parse_until(const std::string& text);

inline constexpr Index first_replicates = 5;     // fewer cannot estimate a spread
inline constexpr Index until_replicates = 1000;  // maximum, if no number was given

// One replicate that has ended: its values of the headline metric (empty if it has no such number), and the seconds
// that its turns took (timing).
struct EndedReplicate {
  std::vector<double> values;
  double seconds = 0;
};

struct Stopping {
  enum class State {
    precise,    // the interval is short enough
    open,       // more replicates are needed
    ambiguous,  // the cap came first
    unmeasured  // no replicate has that metric
  };
  State state;
  Index replicates;     // that decided it; open: that are needed
  double relative = 0;  // half width of the interval over the magnitude of its centre; infinite without an interval
};

// Decides from one cell's replicates. Statistics: by the interval of the mean, with at most `most` replicates. Timing:
// by the distribution-free interval of the median of all samples, with at most `most` replicates and until.seconds of
// turns.
Stopping stopping_of(const std::map<Index, EndedReplicate>& ended, const Until& until, Index most, bool timing);

}  // namespace attnbench
