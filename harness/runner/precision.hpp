// Precision as a stopping rule: replicates are added until the experiment's headline metric is known well enough.
//
// Whether a cell goes on is decided from its own stored replicates, at 5, 10, 20, ... of them in the order of their
// numbers, so that neither threads nor interruptions nor other cells change where it stops. What the interval means
// then is Chow and Robbins 1965, Ann. Math. Statist. 36:457: stopping when it is short costs coverage, which comes back
// as the asked width goes to 0. precision_test.cpp holds what is left of the 95 % for a normal law whose standard
// deviation is half its mean: at least 90 % for rel-ci=0.05 and 0.2, where plain replicates would have 95 %. Read an
// interval of a run with --until as one of about 90 %; with --replicates alone it is one of 95 %.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/linalg/matrix.hpp"

namespace attnbench {

struct Until {
  double relative = 0.05;              // half of the 95 % interval over the magnitude of its centre
  std::optional<double> seconds = {};  // timing: of measured turns, in which a cell may try; 60 when not given
};

// "rel-ci=0.05" or "rel-ci=0.05,seconds=120". Throws Misuse.
Until parse_until(const std::string& text);

inline constexpr Index first_replicates = 5;     // fewer say nothing about a spread
inline constexpr Index until_replicates = 1000;  // at most, when no number was given

// One replicate that has ended: its values of the headline metric, none where it has no such number, and the seconds
// that its turns took (timing).
struct EndedReplicate {
  std::vector<double> values;
  double seconds = 0;
};

struct Stopping {
  enum class State {
    precise,    // the interval is short enough
    open,       // more replicates are wanted
    ambiguous,  // the cap came first
    unmeasured  // no replicate has that metric
  };
  State state;
  Index replicates;     // that decided it; open: that are wanted
  double relative = 0;  // half of the interval over the magnitude of its centre; infinite when there is none
};

// A summary of one cell's replicates. Statistics: the interval of the mean, at most `most` replicates. Timing:
// the distribution-free interval of the median of all samples, at most `most` replicates and until.seconds of turns.
Stopping stopping_of(const std::map<Index, EndedReplicate>& ended, const Until& until, Index most, bool timing);

}  // namespace attnbench
