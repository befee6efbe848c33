// The numbers that a figure draws: points with intervals and closed forms, references, cells that were not done, and
// sentences about them. A picture of them is made elsewhere (scripts/, the page).
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "harness/figures/described_panel.hpp"
#include "harness/store/better.hpp"

namespace attnbench {

// role        "measured", "reference" (a level if x is NaN), "ending" (a cell that was not done: y is NaN, and the note
//             says why), of a map "value", "ratio" or "winner", of an image "image"
// note        a point with a note is not drawn; the note says why
// value       of a trade the metric of its circles; of a map the tile's: the metric, log10 of the ratio, or log10 of
//             the factor between the least and the next (low and high: its interval)
// x_low, ...  of a histogram the edges of a bin; of a trade the interval along x
// A number that does not exist is NaN.
struct DrawnPoint {
  std::string series, role;
  double x = NAN, x_low = NAN, x_high = NAN, y = NAN, low = NAN, high = NAN, theory = NAN, value = NAN;
  Index replicates = 0, samples = 0;
  double exponent = NAN, exponent_low = NAN, exponent_high = NAN;
  double crossing = NAN, crossing_low = NAN, crossing_high = NAN;
  std::string note;
};

struct DrawnPanel {
  std::vector<DrawnPoint> points;
  std::vector<std::string> notes;
  std::string missing;     // why there is nothing to draw; empty if there is something
  std::string unit = "1";  // of y
  bool more_is_better = false;
  // Of an image: the two-dimensional array that is drawn.
  struct Image {
    std::string key;
    Index replicate = 0;
  };
  std::optional<Image> image;
};

DrawnPanel drawn_panel(const MeasuredResults& results, const DescribedPanel& panel, const WhichIsBetter& which);

}  // namespace attnbench
