// Expands a request (sets of methods, inputs, sizes, axes) into its cells.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/experiment/cell.hpp"
#include "harness/runner/axes.hpp"
#include "harness/runner/match.hpp"
#include "harness/runner/precision.hpp"
#include "harness/runner/shard.hpp"

namespace attnbench {

struct RunRequest {
  std::string experiment;
  std::vector<std::string> methods, inputs;
  std::vector<Index> n = {};  // empty: the input's, or 1024
  std::vector<Index> d = {};  // empty: the input's, or 64
  Index dv = 0;               // 0: the input's, or d
  Index heads = 1;
  std::optional<bool> causal = {};  // empty: the input's default
  Precision precision = Precision::f64;
  double logit_scale = 1;
  Rounding rounding = Rounding::none;
  std::vector<Axis> sweep = {};
  std::vector<std::vector<std::string>> zip = {};  // axes of the sweep that move together
  std::optional<Match> match = {};  // each method's budget is chosen for this cost of one head, at each shape
  Index replicates = 1;             // with `until`: the maximum
  std::optional<Until> until = {};  // replicates are added until the headline metric is this precise
  Shard shard = {};                 // the part of the request's units that runs
  bool retry = false;               // failed, crashed, timed out and out of memory count as missing
  std::uint64_t seed = 1;
  int threads = 1;

  bool timing() const;  // whether its experiment measures time
};

// How many replicates the request makes of that cell (with `until`, at most): never more than its input has.
Index replicates_of(const RunRequest& request, const Cell& cell);

// Every cell of the request, of all its shards, without duplicates. Cells are sorted by input, so that exact results
// are computed once. An axis applies to each method, input and experiment that has the parameter. Throws Misuse for an
// axis that applies to nothing, an unknown name, an impossible size, or more replicates than an input has.
std::vector<Cell> expand(const RunRequest& request);

}  // namespace attnbench
