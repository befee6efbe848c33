// attnbench report: figures, tables and one page from results files.
#include "harness/cli/command.hpp"
#include "harness/cli/script.hpp"

namespace attnbench {
namespace {

int run(const std::vector<std::string>& words) {
  std::vector<std::string> files;
  std::string output;
  options::options_description visible("options");
  visible.add_options()("file", options::value(&files), "results files")(
      "output,o", options::value(&output)->default_value("results/report"), "folder for the page and the figures");
  if (!parse_arguments("report", visible, words, {{"file", -1}})) return 0;
  if (files.empty()) files = {"results/attnbench.db"};
  files.insert(files.end(), {"-o", output});
  return run_script("report.py", files);
}

const bool registered =
    add(CommandEntry{.text = {.name = "report",
                              .summary = "figures (SVG, PDF), tables (CSV) and one page from results files",
                              .formula = "report [FILE...] [-o DIR]"},
                     .run = run});

}  // namespace
}  // namespace attnbench
