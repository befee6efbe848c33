// Figures as data: builds the JSON of docs/figures.md from named fields. scripts/plot.py draws it from the store and
// knows no recipe.
#pragma once

#include "harness/runner/cells.hpp"
#include "harness/runner/plan.hpp"

namespace attnbench {

struct Figure {
  std::string name;
  std::string json;
};

// One panel. Its members are the fields of docs/figures.md. Specs may have any spelling.
struct Panel {
  std::string title;
  std::string kind = "curve";
  Cells cells = {};                 // everything that is drawn, references included
  std::vector<std::string> x = {};  // a size or a parameter; if several are given, the one that a cell has
  std::string x_label, x_scale = "linear";
  std::string y, y_label, y_scale = "linear";
  std::vector<std::string> y_axis = {};  // map: like x, but upwards
  std::string interval = "mean";
  std::string theory = {};
  std::vector<std::string> references = {};
  std::vector<std::string> series = {"method"};
  bool slope = false;
  bool crossing = false;
  bool normalise_x = false;
  Index first_index = 1;                // profile: x of the array's first element
  std::string ratio_to = {};            // curve: every series divided by this method's value at the same x
  std::vector<std::string> ratio = {};  // map: the colour is the ratio of these methods ...
  bool winner = false;                  // ... or shows which method has the least value
  std::string value_label = {};         // map: label of the colour bar; without ratio and winner, colour shows y itself
  std::string x_metric = {};            // trade: the metric along x; profile: an array metric, x of each element
  std::vector<std::string> points = {};    // trade: columns whose values are separate points, not joined
  std::string area = {}, area_label = {};  // trade: the metric that circles show; empty: points, joined along x
  std::vector<std::string> bound = {};     // trade: methods drawn as a bound, at the x of the metric bound_x
  std::string bound_x = {};
  std::vector<double> range = {};  // histogram: first and last bin edge; empty: the least and the greatest value
  double mark = 0;                 // histogram: a vertical line at a value known in advance
  std::string mark_label = {};     // histogram: label of that line; empty: no line
  double floor = 0;                // image: colours are logarithmic from here to 1; 0: linear, around zero
  bool upside_down = false;        // trade: less is better, so the axis points down
  double y_most = 0;               // trade: values above this are listed in the footnote; 0: everything is drawn
};

// A question of the report's first screen, which has room for the four with the lowest places.
struct HeadlineQuestion {
  int place = 0;
  std::string words;  // empty: no question
};

// section: the description of the recipe or run that the figure belongs to. Its summary and formula head a section of
// the page. asked: the question that the figure answers.
Figure figure(std::string name, const Description& section, const std::string& title, const std::string& caption,
              const std::vector<Panel>& panels, const HeadlineQuestion& asked = {});

// The figure of all runs of an experiment, which every run of it stores: its headline metric. draw_figures gives it the
// cells of the file, axes and panels (harness/figures/run_figure.hpp).
Figure figure_of_run(const std::string& experiment);

}  // namespace attnbench
