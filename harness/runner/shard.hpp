// Shards of a request: disjoint parts that machines can run independently.
#pragma once

#include <string>
#include <vector>

#include "harness/linalg/matrix.hpp"

namespace attnbench {

struct Cell;

// Part `index` of `count`, counted from 1. 1/1 is everything.
struct Shard {
  Index index = 1, count = 1;
};

// "2/8". Throws Misuse.
Shard parse_shard(const std::string& text);

// Marks the units that belong to that shard, at element cell * replicates + replicate. Shards are disjoint and together
// contain all units. They depend on the cells alone, so that every machine cuts alike. Cells that are timed together
// (all methods and lengths of one session, harness/timing/session.hpp) stay together. Units of statistics that share an
// input stay together in parts of at most 1/4 of a shard, because exact results are computed once per part. The parts
// are assigned longest first, each to the shard with the least load by the cost model (Graham 1969, SIAM J. Appl. Math.
// 17:416).
std::vector<bool> units_of_shard(const std::vector<Cell>& cells, Index replicates, Shard shard);

}  // namespace attnbench
