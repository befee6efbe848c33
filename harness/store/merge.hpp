// Unites results files: the measurements of shards, machines and colleagues become one file.
#pragma once

#include <filesystem>
#include <vector>

#include "harness/core/problem.hpp"

namespace attnbench {

// The content of a file after a merge, and what the merge found.
struct Merged {
  Index cells = 0, replicates = 0;
  Index added = 0;        // replicates that `out` did not have
  Index timed_twice = 0;  // replicates of a timing cell on one machine that two files have; the earlier was kept
  Index with_several_versions = 0;      // cells that exist in several source versions
  Index timed_on_several_machines = 0;  // timing cells that exist for several machines
};

// Unites `files` into `out`, together with the content of `out` if it exists. An existing `out` changes in one
// transaction; a new one is written beside it and renamed. No reader sees a partial file.
//
// Cells with one key are one cell. Statistics: replicates unite, and a replicate that two files hold must have equal
// numbers in both. Timings: the machine is part of the key. Cells of different source versions have different keys. If
// two files hold a replicate, a settled one wins over an unsettled one, and then the earlier over the later, so that
// the order of the files does not matter. Of figures and of a recipe's verdicts the newest are kept.
//
// Throws Misuse when a file is not a results file, when `attnbench verify` finds a problem in it, and when two files
// hold different numbers for one replicate, or different cells under one key; the message names it.
Merged merge(const std::filesystem::path& out, const std::vector<std::filesystem::path>& files);

}  // namespace attnbench
