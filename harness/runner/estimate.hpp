// Estimates what a run will take before it runs: a cost model, corrected by similar cells of the results file.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "harness/runner/cost_model.hpp"
#include "harness/store/past.hpp"

namespace attnbench {

// A cell and the number of its replicates that are missing.
struct CellsToCome {
  const Cell* cell;
  Index replicates;
};

struct RunEstimate {
  double seconds = 0, low = 0,
         high = 0;        // of all units, `threads` at a time; timing: one turn after the other, partners included
  double bytes = 0;       // the most at any time
  size_t past_cells = 0;  // number of past cells that corrected the model
  bool by_past = false;   // every cell has past ones of its experiment; otherwise some numbers are the model's alone
  // Adds a run that follows this one: times add up, and the larger need of memory remains.
  RunEstimate& operator+=(const RunEstimate& next);
  std::string text() const;  // "about 4 min (2 to 8 min), from 12 past cells"
};

// rates: of one thread of this machine in that precision; called only when a cell has no past.
RunEstimate estimate(std::span<const CellsToCome> missing, int threads, const std::vector<PastCell>& past,
                     const std::function<Rates(Precision)>& rates);

// "40 ms", "12 s", "3.5 min", "2.1 h", "5 days".
std::string duration_text(double seconds);

}  // namespace attnbench
