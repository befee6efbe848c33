// attnbench merge: unites several results files into one.
#include "harness/store/merge.hpp"

#include <fmt/format.h>

#include <iostream>

#include "harness/cli/command.hpp"

namespace attnbench::merge_command {
namespace {

int run(const std::vector<std::string>& arguments) {
  std::string out;
  std::vector<std::string> files;
  options::options_description visible("options");
  visible.add_options()("out", options::value(&out), "results file to write; what it already holds stays in it")(
      "file", options::value(&files), "results files to unite, in any order");
  if (!parse_arguments("merge", visible, arguments, {{"out", 1}, {"file", -1}})) return 0;
  if (files.empty())
    throw Misuse("merge: expected the file to write and the files to unite, such as: attnbench merge all.db 1.db 2.db");
  const Merged merged = merge(out, {files.begin(), files.end()});
  std::cout << fmt::format("{}: {} cells, {} replicates, {} of them new\n", out, merged.cells, merged.replicates,
                           merged.added);
  const auto note = [](Index number, const char* what) {
    if (number > 0) std::cout << fmt::format("{} {}\n", number, what);
  };
  note(merged.with_several_versions, "cells exist in several source versions; figures show the newest");
  note(merged.timed_on_several_machines, "timing cells exist for several machines");
  note(merged.timed_twice, "timings were in two files for one cell and machine; the earlier was kept");
  return 0;
}

const bool registered = add(CommandEntry{
    .text = {.name = "merge",
             .summary =
                 "several results files as one: replicates of the same cell unite, machines and sources stay apart",
             .formula = "merge OUT FILE..."},
    .run = run,
    .examples = {"merge all.db shard-1.db shard-2.db"}});

}  // namespace
}  // namespace attnbench::merge_command
