// The drawn points of a results file as its tables `panel`, `point`, `summary` and `look`, from which scripts/ and the
// page draw.
//
// panel   one row for each panel of a figure; panel counts from 1. json: {"missing": why there is nothing to draw,
//         "notes": [sentences], "unit": of y, "more_is_better": whether greater y are better,
//         "series": {name: {"name": printed, ...}} (harness/figures/looks.hpp),
//         "image": {"key": of the cell, "replicate": n} of the array that an image shows}
// point   one row for each DrawnPoint (harness/figures/drawn_panel.hpp); NULL is NaN
// summary one row for each cell and metric, for the page: the mean over replicates (an array counts as its mean), and
//         the median over all samples (the elements of arrays), with the intervals that figures draw. Empty for more
//         cells than most_summarised
// look    one row for each method of a cell: how it is called in print and drawn (JSON, harness/figures/looks.hpp)
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "harness/machine/scratch_folder.hpp"
#include "harness/store/better.hpp"

namespace attnbench {

// Several results files as one, and one that cannot be written as one that can: merged into a temporary file, which
// lives as long as this. A single file is used as it is.
class UnitedResults {
 public:
  // to_write: whether points will be written to it. Throws Misuse as merge does, for a file that is not whole as well.
  UnitedResults(const std::vector<std::string>& files, bool to_write);
  const std::string& file() const { return file_; }

 private:
  std::unique_ptr<ScratchFolder> scratch_;
  std::string file_;
};

inline constexpr size_t most_summarised = 100'000;  // cells: a browser holds about a kilobyte for each

// Computes the points of all figures of an existing results file and the summaries of its cells, and replaces those
// that it holds. Throws Misuse for a file that cannot be written, and for a figure that is not the description of one.
void draw_figures(const std::filesystem::path& file, const WhichIsBetter& which);

// Writes a new results file that holds one figure and its points only: that description (JSON), drawn from the cells of
// `measured`. Returns why there is nothing to draw; empty if there is something.
std::string draw_figure(const std::filesystem::path& measured, const std::string& name, const std::string& description,
                        const std::filesystem::path& drawn, const WhichIsBetter& which);

}  // namespace attnbench
