// Shared by the kinds of panels: the replicates behind the points, and intervals. Private to harness/figures.
#pragma once

#include <set>

#include "harness/figures/drawn_panel.hpp"

namespace attnbench {

inline constexpr double drawn_error_rate = 0.05;  // of every drawn interval

// One replicate of a cell that is done. Without values the metric could not be estimated there, and the mean over the
// other replicates would be biased.
struct DrawnReplicate {
  const PlacedCell* place = nullptr;
  Index number = 0;
  const MeasuredValues* values = nullptr;
  double ratio = NAN;   // of values to those of another method, where a panel divides
  double theory = NAN;  // closed form, averaged over the elements of an array
};

class PanelDrawing {
 public:
  PanelDrawing(const MeasuredResults& results, const DescribedPanel& panel);

  const MeasuredResults& results;
  const DescribedPanel& panel;
  const std::vector<PlacedCell> placed;
  DrawnPanel drawn;

  const StoredCell& cell(const PlacedCell& place) const { return results.cells()[place.cell]; }
  // The done replicates in the order of cells and numbers; gaps: also those without the metric.
  std::vector<DrawnReplicate> replicates(const std::string& metric, bool gaps) const;
  // The name of a series in a note. Two series may share it.
  std::string printed(const std::string& series) const;
  void note(std::string sentence) { drawn.notes.push_back(std::move(sentence)); }
  // Remembers in which columns the cells behind one point differ.
  void pool(const std::vector<const PlacedCell*>& of_a_point);
  void say_what_is_pooled();

  void draw_curves();
  void draw_rows();
  void draw_profiles();
  void draw_histograms();
  void draw_image();
  void draw_tiles();
  void draw_trades();

 private:
  std::set<std::string> pooled_;
};

struct Centre {
  double value = NAN, low = NAN, high = NAN;  // NaN: too few samples for an interval
};

// The mean or the median of the samples with the interval that verdicts use; NaN if a sample is NaN.
Centre mean_of(const std::vector<double>& samples);
Centre median_of_all(const std::vector<double>& samples);
inline Centre centre_of(const std::string& interval, const std::vector<double>& samples) {
  return interval == "median" ? median_of_all(samples) : mean_of(samples);
}
// The geometric mean of numbers above 0: the exponential of the mean logarithm and of its interval.
Centre geometric_mean_of(const std::vector<double>& samples);

// "1 point", "3 points"
std::string counted(size_t count, const std::string& noun);

}  // namespace attnbench
