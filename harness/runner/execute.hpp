// Executes units of work, each in one transaction of the store, and gives each an ending.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/experiment/unit.hpp"
#include "harness/store/ending.hpp"

namespace attnbench {

class Store;

struct RunSummary {
  size_t cells = 0;
  size_t ran = 0;                       // replicates that this call ran
  size_t already = 0;                   // replicates that the store already had
  size_t failed_before = 0;             // of these, the ones that a retry would run again
  size_t not_done = 0;                  // replicates of this call that did not end `done`
  size_t failed = 0;                    // of these, the ones that a retry would run again
  std::string first_reason;             // of the first that failed or, if none failed, of the first that is not done
  std::map<std::string, size_t> notes;  // notes of experiments, with the number of replicates that had each
  bool interrupted = false;             // by Ctrl-C or SIGTERM: missing units were not begun, or abandoned
  std::vector<std::string> ambiguous;   // cells that reached the cap before the requested precision

  // Endings other than `done`, equal ones counted together; only the first few dozen are kept.
  struct NotDone {
    std::string method;
    Index n;
    Ending ending;
    size_t replicates;
  };
  std::vector<NotDone> endings = {};

  // Adds the counts of another request, and keeps the first reason.
  RunSummary& operator+=(const RunSummary& other);
};

// Those endings as a table for a terminal: method, n, ending, reason. Empty when everything is done.
std::string table_of_endings(const RunSummary& summary);

// Executes units of one experiment in workers and adds their outcomes to the summary. Statistics run in parallel on
// `threads` cores; their numbers do not depend on it. Timings run alone, in sessions of all methods and lengths. The
// first Ctrl-C or SIGTERM ends this between two units, the second ends the program.
void execute(std::vector<Unit> units, int threads, const Limits& limits, Store& store, std::int64_t run_id,
             RunSummary& summary);

}  // namespace attnbench
