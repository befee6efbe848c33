// Cells is a handle on cells that a recipe runs. `run` returns it, and figures and verdicts narrow it. A selection that
// matches nothing throws where it is written, before anything has run.
#pragma once

#include <concepts>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "harness/runner/plan.hpp"
#include "harness/statistics/estimate.hpp"

namespace attnbench {

class Store;

// A cell as the recipe writes it, and the cell that runs. They differ only if seeds or settings are varied.
struct RecipeCell {
  Cell asked, run;
  Index replicates = 1;
};

// Measurements by cell. A recipe reads its own from a results file; tests make some up.
class Measurements {
 public:
  virtual ~Measurements() = default;
  // The values of the planned replicates. Empty unless every replicate has the metric: the replicates where it could be
  // estimated are a biased subset.
  virtual Samples scalars(const RecipeCell& cell, const std::string& key, const std::string& metric) const = 0;
  // The same for arrays of `length` elements; 0: of any number.
  virtual std::map<Index, std::vector<double>> arrays(const RecipeCell& cell, const std::string& key,
                                                      const std::string& metric, size_t length) const = 0;
};

class StoredMeasurements final : public Measurements {
 public:
  explicit StoredMeasurements(const Store& store) : store_(store) {}
  Samples scalars(const RecipeCell& cell, const std::string& key, const std::string& metric) const override;
  std::map<Index, std::vector<double>> arrays(const RecipeCell& cell, const std::string& key, const std::string& metric,
                                              size_t length) const override;

 private:
  const Store& store_;
};

// The accepted values of a condition: one value, or a list.
struct AnyOf {
  using Value = std::variant<bool, Index, double, std::string>;

  template <class T>
  requires std::constructible_from<Value, T> AnyOf(T value) : values{Value(std::move(value))} {}
  AnyOf(const char* value) : values{std::string(value)} {}
  template <class T>
  AnyOf(const std::vector<T>& list) : values(list.begin(), list.end()) {}

  std::vector<Value> values;
};

struct Condition {
  std::string column;
  AnyOf wanted;
};

class Cells {
 public:
  // All cells of one recipe or of one request. Selections share it.
  class Table;

  Cells() = default;

  // Selects the cells that agree with every condition. A condition names a column of the store's table `cell` or a
  // parameter, with a value or a list of accepted values. `experiment` matches by its name unless the condition has
  // options; method and input match by their specs in any spelling. Throws std::logic_error when no cell agrees.
  Cells where(const std::vector<Condition>& conditions) const;
  Cells method(const std::string& spec) const { return where({{"method", spec}}); }
  Cells methods(const std::vector<std::string>& specs) const { return where({{"method", specs}}); }
  Cells input(const std::string& spec) const { return where({{"input", spec}}); }
  Cells n(Index keys) const { return where({{"n", keys}}); }
  // The union of two selections of one recipe.
  Cells operator+(const Cells& other) const;
  // One selection per cell.
  std::vector<Cells> one_by_one() const;
  // A selection for every combination of values that the cells have in these columns, in the order of the cells. Throws
  // std::logic_error when a cell lacks one of the columns.
  struct Part;
  std::vector<Part> by(const std::vector<std::string>& columns) const;
  // Whether some cell has that column.
  bool has(const std::string& column) const;
  // Throws std::logic_error with the nearest names if columns are named and no cell has any of them.
  void require_any(const std::vector<std::string>& columns) const;
  // The number that all of these cells have in that column.
  std::optional<double> number(const std::string& column) const;

  size_t size() const { return rows_.size(); }
  std::vector<std::string> keys() const;  // of the cells that run
  std::vector<RecipeCell> all() const;

  // Measurements of the only cell. Throws std::logic_error when there are several cells. Empty when the cell ended
  // without a number.
  Samples scalar(const std::string& metric) const;
  // One number per block of turns (timing experiments).
  std::vector<double> turns(const std::string& metric) const;
  // One array per replicate, such as one number per layer or row. Throws std::logic_error when an array has another
  // length.
  std::vector<std::vector<double>> arrays(const std::string& metric, size_t length) const;
  // One element of these arrays, by replicate.
  Samples element(const std::string& metric, size_t length, size_t place) const;
  // The same of arrays of any length; -1: the last. Throws std::logic_error for an array without that element.
  Samples element(const std::string& metric, long place) const;

 private:
  friend class CellTable;
  Cells(std::shared_ptr<const Table> table, std::vector<size_t> rows)
      : table_(std::move(table)), rows_(std::move(rows)) {}
  size_t only() const;
  std::vector<const nlohmann::json*> all_columns() const;  // of each cell

  std::shared_ptr<const Table> table_;
  std::vector<size_t> rows_;
};

struct Cells::Part {
  std::string name;                  // "n = 128, m = 16"; methods, inputs and experiments by their specs alone
  std::vector<Condition> shared;     // by all of its cells, one a column
  std::optional<double> coordinate;  // the value of the only column, if that is a number
  Cells cells;
};

// Owns the cells that handles refer to, and supplies their measurements once they exist.
class CellTable {
 public:
  CellTable();
  // Returns the handle of these cells. A cell that the table has already is not added again; it keeps the larger number
  // of replicates.
  Cells add(const std::vector<RecipeCell>& cells);
  Cells all() const;
  void name_inputs(std::map<std::string, std::string> names);
  // `measurements` must outlive all reading from the handles.
  void read(const Measurements& measurements);

 private:
  std::shared_ptr<Cells::Table> table_;
};

// The cells of one request with their measurements.
Cells cells_of(const RunRequest& request, const Measurements& measurements);

}  // namespace attnbench
