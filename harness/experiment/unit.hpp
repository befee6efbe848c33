// Units of work, with their limits and outcomes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/experiment/cell.hpp"
#include "harness/store/ending.hpp"
#include "harness/store/measurement.hpp"
#include "harness/store/row.hpp"

namespace attnbench {

// One replicate of one cell. It runs, fails and is resumed as a whole.
struct Unit {
  Cell cell;
  CellRow row;
  Index replicate;
};

// How a unit ended, with its measurements if it ended `done`.
struct UnitOutcome {
  Ending ending;
  std::vector<Measurement> measurements = {};
  std::vector<std::string> notes = {};
};

// A unit that exceeds these limits is ended.
struct Limits {
  double seconds = 3600;
  std::optional<double> bytes = {};       // of one unit; nullopt: its share of the machine's memory
  std::optional<double> wait_quiet = {};  // seconds that timing waits for other work to end; nullopt: no wait
};

}  // namespace attnbench
