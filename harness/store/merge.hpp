// Unites results files: what shards, machines and colleagues measured becomes one file.
#pragma once

#include <filesystem>
#include <vector>

#include "harness/core/problem.hpp"

namespace attnbench {

// What one file holds after a merge, and what the merge found.
struct Merged {
  Index cells = 0, replicates = 0;
  Index added = 0;                      // replicates that `out` did not have
  Index timed_twice = 0;                // of one timing cell on one machine: the earlier was kept
  Index with_several_versions = 0;      // cells that are there once for each of several source versions
  Index timed_on_several_machines = 0;  // timing cells that are there once for each of several machines
};

// Unites `files` into `out`, and with what `out` holds when it exists. In one transaction of an existing `out`; a new
// one is made beside and renamed: no reader sees half of it.
//
// Cells of one key are one cell. Statistics: replicates unite, and one that two files hold must have equal numbers.
// Timings: the machine is part of the key. What differs in source version has another key as well. Of a replicate that
// two files hold, what is settled goes before what is not, and then the earlier before the later, so that the order of
// the files does not matter. Of figures and of a recipe's verdicts the newest are kept.
//
// Throws Misuse when a file is no results file, and when two hold different numbers for one replicate, which it names.
Merged merge(const std::filesystem::path& out, const std::vector<std::filesystem::path>& files);

}  // namespace attnbench
