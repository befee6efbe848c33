// From a request (sets of methods, inputs, sizes, axes) to the cells that it means.
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
  std::vector<Index> n = {};  // empty: what the input has, or 1024
  std::vector<Index> d = {};  // empty: what the input has, or 64
  Index dv = 0;               // 0: what the input has, or d
  Index heads = 1;
  std::optional<bool> causal = {};  // empty: the input's default
  Precision precision = Precision::f64;
  double logit_scale = 1;
  Rounding rounding = Rounding::none;
  std::vector<Axis> sweep = {};
  std::vector<std::vector<std::string>> zip = {};  // axes of the sweep that move together
  std::optional<Match> match = {};  // each method's budget is chosen for that cost of one head, at each shape
  Index replicates = 1;             // with `until`: at most
  std::optional<Until> until = {};  // replicates are added until the headline metric is known so well
  Shard shard = {};                 // which of the request's units are meant
  bool retry = false;               // what failed, crashed, ran out of time or memory counts as missing
  std::uint64_t seed = 1;
  int threads = 1;

  bool timing() const;  // whether its experiment measures time
};

// How many replicates the request makes of that cell, with `until` at most: no more than its input has.
Index replicates_of(const RunRequest& request, const Cell& cell);

// Every cell of the request, of all its shards, sorted by input so that what is exact is computed once, without
// duplicates. An axis applies to each method, input and experiment that has the parameter; one that applies to nothing
// throws Misuse, as does any unknown name, a size that cannot be, or more replicates than an input has.
std::vector<Cell> expand(const RunRequest& request);

}  // namespace attnbench
