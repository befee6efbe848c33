// Results: one SQLite file, one transaction per (cell, replicate). A killed run leaves whole replicates or none.
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

#include "harness/store/ending.hpp"
#include "harness/store/measurement.hpp"
#include "harness/store/row.hpp"
#include "harness/store/verdict.hpp"

namespace attnbench {

struct ExportRequest;

class Store {
 public:
  // Opens or creates a results file. Throws Misuse when the path cannot be written, holds another kind of file (which
  // stays untouched), or has another schema.
  explicit Store(const std::filesystem::path& path);
  // Opens an existing results file of this schema for reading. Throws Misuse if the path has no such file.
  static Store open_existing(const std::filesystem::path& path);
  ~Store();
  Store(Store&&) noexcept;

  // Records where and how this run is made (environment: a JSON object), and returns its id.
  std::int64_t begin_run(const std::string& command_line, const std::string& environment);

  // The endings of all replicates, by the key of their cell, in one query for runs of many cells.
  std::unordered_map<std::string, std::map<Index, Ending::Kind>> ended() const;
  // The replicates of one cell that have ended, in any way.
  std::unordered_set<Index> ended_replicates(const std::string& key) const;

  // Writes in one transaction the cell (if new), the ending of this replicate and all its measurements. A settled
  // replicate stays unchanged; one that ended otherwise is replaced.
  void record(std::int64_t run, const CellRow& cell, Index replicate, const Ending& ending, double seconds,
              const std::vector<Measurement>& measurements);

  // A scalar of that cell by replicate, for replicates that are done.
  std::map<Index, double> scalars(const std::string& key, const std::string& metric) const;
  // The same for an array, flattened.
  std::map<Index, std::vector<double>> arrays(const std::string& key, const std::string& metric) const;

  // All measurements of a replicate that is done, by metric.
  std::map<std::string, Measurement> measurements(const std::string& key, Index replicate) const;

  // Stores a recipe's figure description (JSON) under a name, replacing an earlier one of the same recipe and name.
  void put_figure(const std::string& recipe, const std::string& name, Index position, const std::string& json);

  // Stores a recipe's verdicts and the numbers that they are based on, replacing all earlier ones of that recipe.
  void put_reproduction(const Reproduction& reproduction);

  // Writes the measurements that the request selects to `out` as a table (harness/store/export.hpp).
  void export_table(std::ostream& out, const ExportRequest& request) const;

 private:
  struct Implementation;
  explicit Store(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace attnbench
