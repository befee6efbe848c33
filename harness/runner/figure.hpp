// Figures as data: the JSON of docs/figures.md, built with names instead of braces. scripts/plot.py draws them from the
// store and knows no recipe.
#pragma once

#include "harness/runner/cells.hpp"
#include "harness/runner/plan.hpp"

namespace attnbench {

struct Figure {
  std::string name;
  std::string json;
};

// One panel. Members are the fields of docs/figures.md; specs in any spelling.
struct Panel {
  std::string title;
  std::string kind = "curve";
  Cells cells = {};                 // all that is drawn, references included
  std::vector<std::string> x = {};  // a size or a parameter; of several, the one that a cell has
  std::string x_label, x_scale = "linear";
  std::string y, y_label, y_scale = "linear";
  std::vector<std::string> y_axis = {};  // map: as x, upwards
  std::string interval = "mean";
  std::string theory = {};
  std::vector<std::string> references = {};
  std::vector<std::string> series = {"method"};
  bool slope = false;
  bool crossing = false;
  bool normalise_x = false;
  Index first_index = 1;                   // profile: x of the array's first element
  std::string ratio_to = {};               // curve: every series divided by this method's value at the same x
  std::vector<std::string> ratio = {};     // map: the methods whose ratio is the colour ...
  bool winner = false;                     // ... or which method has the least value
  std::string value_label = {};            // map: of the colour bar; without ratio and winner, of y itself
  std::string x_metric = {};               // trade: the metric along x ...
  std::vector<std::string> points = {};    // trade: columns whose values are points of their own, not joined
  std::string area = {}, area_label = {};  // ... and the one that circles show; empty: points, joined along x
  std::vector<std::string> bound = {};     // trade: methods drawn as a bound, at the x of the metric bound_x
  std::string bound_x = {};
  std::vector<double> range = {};  // histogram: where bins begin and end; empty: at the least and the greatest
  double mark = 0;                 // histogram: a vertical line at a value known beforehand ...
  std::string mark_label = {};     // ... which says what it is; empty: none
  double floor = 0;                // image: colours are logarithmic from here to 1; 0: linear, around zero
  bool upside_down = false;        // trade: less is better, and better is above
  double y_most = 0;               // trade: what lies above is said in the footnote; 0: everything is drawn
};

// section: the description of what the figure belongs to, whose summary and formula head its section on the page.
Figure figure(std::string name, const Description& section, std::string title, std::string caption,
              const std::vector<Panel>& panels);

// The figure of a run that a user asked for: the experiment's headline metric against the first axis with several
// values, a panel for each input, with every method that the store has there.
Figure figure_of_run(const RunRequest& request);

}  // namespace attnbench
