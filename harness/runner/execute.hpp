// Executes units of work, each in one transaction of the store, with an ending for each.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/experiment/unit.hpp"
#include "harness/store/store.hpp"

namespace attnbench {

// Progress with the time left, on stderr when it is a terminal (or when told to), at most a few lines a second.
class Progress {
 public:
  explicit Progress(size_t total);
  void step(const std::string& what);  // one more is done
  // Of those that are under way, as much as so many units is done.
  void within(double units, const std::string& what);
  ~Progress();

 private:
  void print(double done, const std::string& what);

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
  bool interrupted = false;             // by Ctrl-C or SIGTERM: what is missing was not begun, or given up
  std::vector<std::string> ambiguous;   // cells whose cap came before the precision that was asked for

  // Endings other than done, alike ones counted together; the first few dozen.
  struct NotDone {
    std::string method;
    Index n;
    Ending ending;
    size_t replicates;
  };
  std::vector<NotDone> endings = {};
};

// Those endings as a table for a terminal: method, n, ending, reason; empty when all is done.
std::string table_of_endings(const RunSummary& summary);

// Executes units of one experiment in workers and adds what came of them to the summary. Those of statistics run side
// by side on `threads` cores; their numbers do not depend on it. Those of timing run alone, in sessions of all methods
// and lengths. The first Ctrl-C or SIGTERM meanwhile ends it between two units, the second ends the program.
void execute(std::vector<Unit> units, int threads, const Limits& limits, Store& store, std::int64_t run_id,
             RunSummary& summary);

}  // namespace attnbench
