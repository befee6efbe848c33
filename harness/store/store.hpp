// Results: SQLite, one file, one transaction per (cell, replicate). A killed run leaves whole replicates or none.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "harness/core/problem.hpp"
#include "harness/store/ending.hpp"
#include "harness/store/measurement.hpp"
#include "harness/store/verdict.hpp"

namespace attnbench {

// One recipe, run and judged.
struct Reproduction {
  std::string recipe;
  std::string size;                // "smoke", "quick" or "full"
  std::string command;             // runs it alone, again
  double seconds = 0;              // that running what was missing and judging it took
  std::vector<std::string> cells;  // keys of what it was judged by
  std::vector<Verdict> verdicts;
};

// What identifies a cell, and what readers select by. key is the hash of all that the numbers depend on.
struct CellRow {
  std::string key;
  std::string experiment;  // canonical spec with its options, e.g. "kernel-error:draws=4096"
  std::string method;      // canonical spec
  std::string input;       // canonical spec
  Shape shape;
  Index heads = 1;
  double logit_scale = 1;
  std::uint64_t seed = 0;
  int threads = 0;         // 0: not part of the cell (statistics)
  std::string parameters;  // JSON object: every parameter of method, input and experiment with its value
  std::string source_version;
  std::string machine = {};  // where it was timed: timings of two machines are two cells; empty for statistics
};

// The key of a timing cell on one machine: the hash of all else, and that of where it was timed.
std::string key_on(const std::string& key, const std::string& machine);

class Store {
 public:
  // Opens or creates. Throws Misuse when the path cannot be written, or is a file that is no results file (which is
  // then left untouched), or has another schema.
  explicit Store(const std::filesystem::path& path);
  // Opens an existing results file of this schema for reading; throws Misuse when there is none.
  static Store open_existing(const std::filesystem::path& path);
  ~Store();
  Store(Store&&) noexcept;

  // Records where and how this run is made (environment: a JSON object) and returns its id.
  std::int64_t begin_run(const std::string& command_line, const std::string& environment);

  // What has ended, of every cell by its key: one query, for runs of many cells.
  std::unordered_map<std::string, std::map<Index, Ending::Kind>> ended() const;
  // Replicates of one cell that ended in any way.
  std::unordered_set<Index> ended_replicates(const std::string& key) const;

  // One transaction: the cell (if new), the ending of this replicate and all of its measurements. A replicate that
  // is there already and settled is left as it is; one that ended otherwise is replaced.
  void record(std::int64_t run, const CellRow& cell, Index replicate, const Ending& ending, double seconds,
              const std::vector<Measurement>& measurements);

  // A scalar of that cell, by replicate; of replicates that are done.
  std::map<Index, double> scalars(const std::string& key, const std::string& metric) const;
  // The same of an array, flat.
  std::map<Index, std::vector<double>> arrays(const std::string& key, const std::string& metric) const;

  // A figure description (JSON) of a recipe, by name; replaces an earlier one of the same recipe and name.
  void put_figure(const std::string& recipe, const std::string& name, Index position, const std::string& json);

  // A recipe's verdicts and what they rest on; they replace all earlier ones of that recipe.
  void put_reproduction(const Reproduction& reproduction);

  // Every measurement as a long table on `out`, one line a number: arrays have one line an element, with its index.
  // Sorted by content, so that equal results give equal text whatever the order of running; clock and run columns come
  // last and only with `clock` (they differ between runs by nature).
  void export_csv(std::ostream& out, bool clock) const;
  void export_json(std::ostream& out, bool clock) const;

 private:
  struct Implementation;
  explicit Store(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace attnbench
