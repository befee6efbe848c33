// Shards of a request: disjoint parts that machines can do without knowing of each other.
#pragma once

#include <string>
#include <vector>

#include "harness/linalg/matrix.hpp"

namespace attnbench {

struct Cell;

// Part `index` of `count`, counted from 1. 1/1 is all of it.
struct Shard {
  Index index = 1, count = 1;
};

// "2/8". Throws Misuse.
Shard parse_shard(const std::string& text);

// Which of the units belong to that shard: element cell * replicates + replicate. Shards are disjoint, together they
// are all units, and they follow from the cells alone, so that every machine cuts alike. What is timed together (all
// methods and lengths of one session, harness/timing/session.hpp) stays together; units of statistics that share an
// input do so in parts of at most 1/4 of a shard, since what is exact for them is computed once a part. The parts go,
// the longest first, to the shard that has least by the cost model (Graham 1969, SIAM J. Appl. Math. 17:416).
std::vector<bool> units_of_shard(const std::vector<Cell>& cells, Index replicates, Shard shard);

}  // namespace attnbench
