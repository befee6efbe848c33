// Measures done replicates again, each in a worker of its own, and compares every number with the stored one, bit for
// bit. It finds numbers that depend on what ran before in the same process, which no rule for workers can exclude among
// the cells of one plugin.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "harness/experiment/unit.hpp"
#include "harness/runner/plan.hpp"

namespace attnbench {

class Store;

struct Audit {
  size_t cells = 0, replicates = 0;  // measured again
  size_t not_done = 0;               // replicates of the request that the file does not have as done
  std::set<std::string> left_out;    // metrics that are times
  bool interrupted = false;

  // A metric of a cell that came out differently, in its first such replicate.
  struct Difference {
    std::string method, input;
    Index n, replicate;
    std::string metric;         // with the place in an array, as in "spectrum[3]"; "ending" if it did not end as done
    std::string stored, again;  // the values, with all digits
    size_t replicates = 1;
  };
  std::vector<Difference> differences;
};

// cells: expand(request). Times differ from call to call, so metrics in seconds are left out, and an experiment that
// measures time throws Misuse. A file without a done replicate of the request throws Misuse as well.
Audit audit(const RunRequest& request, const std::vector<Cell>& cells, const Store& store, const Limits& limits);

// For a terminal: the table of differences, or one line that says that nothing differs. results: the file.
std::string text_of(const Audit& audit, const std::string& results);

}  // namespace attnbench
