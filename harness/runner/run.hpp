// Runs cells: whatever is not yet in the store, each replicate in one transaction, with an ending for each.
#pragma once

#include <functional>
#include <map>

#include "harness/runner/experiment.hpp"
#include "harness/runner/plan.hpp"
#include "harness/store/store.hpp"

namespace attnbench {

// Progress with the time left, on stderr when it is a terminal (or when told to), at most a few lines a second.
class Progress {
 public:
  explicit Progress(size_t total);
  void step(const std::string& what);
  ~Progress();

 private:
  size_t total_, done_ = 0;
  double started_, printed_ = 0;
  bool terminal_;
};

struct RunSummary {
  size_t cells = 0;
  size_t ran = 0;                       // replicates that this call ran
  size_t already = 0;                   // replicates that the store had
  size_t not_done = 0;                  // of those run, how many ended other than done
  std::string first_reason;             // of the first that ended so
  std::map<std::string, size_t> notes;  // what experiments noted, and in how many replicates
};

// Statistics cells run side by side on request.threads threads; their numbers do not depend on it. Cells of timing
// experiments run alone, in groups that share problem and input.
RunSummary run(const RunRequest& request, Store& store, std::int64_t run_id);

}  // namespace attnbench
