// Units of work: one replicate of one cell, with its limits and its outcome.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/experiment/cell.hpp"
#include "harness/store/store.hpp"

namespace attnbench {

// One replicate of one cell: it is done, fails and is resumed as a whole.
struct Unit {
  Cell cell;
  CellRow row;
  Index replicate;
};

// How a unit ended, with its measurements when it is done.
struct UnitOutcome {
  Ending ending;
  std::vector<Measurement> measurements = {};
  std::vector<std::string> notes = {};
};

// A unit ends when it exceeds these limits. wait_quiet: how long a session of timing waits for a quiet machine.
struct Limits {
  double seconds = 3600;
  std::optional<double> bytes = {};       // of one unit; nothing: its share of the machine
  std::optional<double> wait_quiet = {};  // seconds that timing waits, at most, for other work to end; nothing: none
};

}  // namespace attnbench
