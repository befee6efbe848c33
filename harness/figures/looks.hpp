// How a series is called in print, and what its colour, marker and line stand for.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/figures/drawn_panel.hpp"

namespace attnbench {

// All but the name are empty or 0 for a method that is not registered here, such as that of a plugin.
struct SeriesLook {
  std::string name;    // printed: "Performer, trig., i.i.d."
  std::string family;  // the hue: of the feature map if that has one, else of the method
  size_t shade = 0;    // of the hue: the place of the feature map or the method in that family
  size_t marker = 0;   // the place of the feature map in its family, or of a method without one
  size_t line = 0;     // of the ensemble of projections: 0 is the default one
};

SeriesLook look_of_method(const std::string& spec);

using CellsOfSeries = std::map<std::string, size_t>;  // by series, the position of one of its cells
CellsOfSeries cells_of_series(const std::vector<PlacedCell>& placed);
// The look of one series of a panel. "performer (64 values)" and "local on that machine" begin with the name of their
// cells' series.
SeriesLook series_look(const MeasuredResults& results, const DescribedPanel& panel, const CellsOfSeries& cells,
                       const std::string& series);

// The looks of the series of a panel, by series. No two have the same printed name.
std::map<std::string, SeriesLook> series_looks(const MeasuredResults& results, const DescribedPanel& panel,
                                               const std::vector<DrawnPoint>& points);

// "performer:features=trig,m=64" in print: "Performer, trig., m = 64". A spec of an unknown method is printed as it is.
std::string printed_spec(const std::string& plural, const std::string& spec);

}  // namespace attnbench
