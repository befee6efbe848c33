#include "harness/figures/draw_figures.hpp"

#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/Transaction.h>
#include <fmt/format.h>
#include <unistd.h>

#include <set>

#include "harness/figures/looks.hpp"
#include "harness/figures/panel_drawing.hpp"
#include "harness/figures/run_figure.hpp"
#include "harness/store/database.hpp"
#include "harness/store/merge.hpp"
#include "harness/store/store.hpp"
#include "harness/store/text.hpp"
#include "harness/store/verify.hpp"

namespace attnbench {

namespace {

using nlohmann::json;

struct StoredFigure {
  std::string recipe, name;
  std::vector<DescribedPanel> panels;
};

// The panels of a description, whose text may be of another program.
std::vector<DescribedPanel> panels_in(const std::string& where, const std::string& text) {
  static const std::set<std::string> kinds{"curve", "profile", "histogram", "image", "map", "table", "trade"};
  try {
    std::vector<DescribedPanel> panels;
    const json description = json::parse(text);
    for (const auto& one : description.at("panels")) {
      panels.push_back(described_panel(one));
      const DescribedPanel& panel = panels.back();
      const bool map = panel.kind == "map";
      if (!kinds.contains(panel.kind) || panel.y.empty() || (panel.kind == "trade" && panel.x_metric.empty()) ||
          (map && (panel.x.empty() || panel.y_axis.empty() || (!panel.ratio.empty() && panel.ratio.size() != 2))))
        throw Misuse("");
    }
    if (!panels.empty()) return panels;
  } catch (const json::exception&) {
  } catch (const Misuse&) {
  }
  throw Misuse(fmt::format(
      "{} is not a figure description; expected a JSON object with panels, each with its y and a kind, one of curve, "
      "profile, histogram, image, map, table, trade (a map with x, y_axis and a ratio of two or none, a trade with "
      "x_metric); "
      "correct the recipe",
      where));
}

std::vector<StoredFigure> figures_in(const std::filesystem::path& file) {
  return explained(file, [&] {
    const SQLite::Database database = open_for_reading(file);
    SQLite::Statement rows(database, "SELECT recipe, name, json FROM figure ORDER BY recipe, name");
    std::vector<StoredFigure> figures;
    while (rows.executeStep()) {
      StoredFigure figure{rows.getColumn(0).getString(), rows.getColumn(1).getString(), {}};
      figure.panels = panels_in(fmt::format("{}: figure {}/{}", file.string(), figure.recipe, figure.name),
                                rows.getColumn(2).getString());
      figures.push_back(std::move(figure));
    }
    return figures;
  });
}

json described(const SeriesLook& look) {
  return {{"name", look.name},
          {"family", look.family},
          {"shade", look.shade},
          {"marker", look.marker},
          {"line", look.line}};
}

std::string written(const json& text) { return text.dump(-1, ' ', false, json::error_handler_t::replace); }

std::string json_of(const DrawnPanel& panel, const std::map<std::string, SeriesLook>& looks) {
  json series = json::object();
  for (const auto& [name, look] : looks) series[name] = described(look);
  json all{{"missing", panel.missing},
           {"notes", panel.notes},
           {"unit", panel.unit},
           {"more_is_better", panel.more_is_better},
           {"series", std::move(series)}};
  if (panel.image) all["image"] = {{"key", panel.image->key}, {"replicate", panel.image->replicate}};
  return written(all);
}

class Writer {
 public:
  explicit Writer(SQLite::Database& database)
      : panel_(database, "INSERT INTO panel VALUES(?,?,?,?)"),
        point_(database, "INSERT INTO point VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)") {}

  void write(const StoredFigure& figure, size_t number, const std::string& text,
             const std::vector<DrawnPoint>& points) {
    const auto panel = static_cast<std::int64_t>(number);
    panel_.bind(1, as_text(figure.recipe));
    panel_.bind(2, as_text(figure.name));
    panel_.bind(3, panel);
    panel_.bind(4, as_text(text));
    panel_.exec();
    panel_.reset();
    for (size_t i = 0; i < points.size(); ++i) {
      const DrawnPoint& point = points[i];
      point_.bind(1, as_text(figure.recipe));
      point_.bind(2, as_text(figure.name));
      point_.bind(3, panel);
      point_.bind(4, static_cast<std::int64_t>(i));
      point_.bind(5, as_text(point.series));
      point_.bind(6, point.role);
      int column = 7;
      for (const double value :
           {point.x, point.x_low, point.x_high, point.y, point.low, point.high, point.theory, point.value})
        point_.bind(column++, value);  // SQLite stores NaN as NULL
      point_.bind(column++, std::int64_t{point.replicates});
      point_.bind(column++, std::int64_t{point.samples});
      for (const double value : {point.exponent, point.exponent_low, point.exponent_high, point.crossing,
                                 point.crossing_low, point.crossing_high})
        point_.bind(column++, value);
      point_.bind(column, as_text(point.note));
      point_.exec();
      point_.reset();
    }
  }

 private:
  SQLite::Statement panel_, point_;
};

void summarise(const MeasuredResults& results, SQLite::Database& database) {
  database.exec("DELETE FROM summary");
  if (results.cells().size() > most_summarised) return;
  SQLite::Statement insert(database, "INSERT INTO summary VALUES(?,?,?,?,?,?,?,?,?,?,?)");
  for (const auto& metric : results.metrics())
    for (size_t i = 0; i < results.cells().size(); ++i) {
      std::vector<double> means, samples;
      std::string unit;
      for (const auto& [replicate, values] : results.values(i, metric)) {
        unit = values.unit;
        if (values.values.empty()) continue;  // an empty array has no centre
        means.push_back(values.mean());
        samples.insert(samples.end(), values.values.begin(), values.values.end());
      }
      if (means.empty()) continue;
      const Centre mean = mean_of(means), median = median_of_all(samples);
      insert.bind(1, results.cells()[i].id);
      insert.bind(2, as_text(metric));
      insert.bind(3, as_text(unit));
      int column = 4;
      for (const double value : {mean.value, mean.low, mean.high, median.value, median.low, median.high})
        insert.bind(column++, value);
      insert.bind(column++, static_cast<std::int64_t>(means.size()));
      insert.bind(column, static_cast<std::int64_t>(samples.size()));
      insert.exec();
      insert.reset();
    }
}

void list_looks(const MeasuredResults& results, SQLite::Database& database) {
  database.exec("DELETE FROM look");
  std::set<std::string> methods;
  for (const StoredCell& cell : results.cells()) methods.insert(cell.column("method"));
  SQLite::Statement insert(database, "INSERT INTO look VALUES(?,?)");
  for (const auto& method : methods) {
    insert.bind(1, as_text(method));
    insert.bind(2, written(described(look_of_method(method))));
    insert.exec();
    insert.reset();
  }
}

// Gives the figures of runs all cells of their experiments that the file has now.
void describe_runs(const MeasuredResults& results, const std::filesystem::path& file) {
  std::vector<std::pair<std::string, std::string>> changed;  // name, JSON
  explained(file, [&] {
    const SQLite::Database database = open_for_reading(file);
    SQLite::Statement rows(database, "SELECT name, json FROM figure WHERE recipe = ?");
    rows.bind(1, as_text(recipe_of_runs));
    while (rows.executeStep()) {
      const json stored = json::parse(rows.getColumn(1).getString());
      if (const json described = figure_of_cells(results, stored); described != stored)
        changed.emplace_back(rows.getColumn(0).getString(), written(described));
    }
  });
  if (changed.empty()) return;
  Store store(file);
  for (const auto& [name, text] : changed) store.put_figure(recipe_of_runs, name, 0, text);
}

// Draws the figures with the cells of `results` into the file that they are of. Returns why the last panel is empty.
std::string draw(const MeasuredResults& results, const std::vector<StoredFigure>& figures,
                 const std::filesystem::path& file, bool summaries, const WhichIsBetter& which) {
  return explained(file, [&] {
    SQLite::Database database = open_for_writing(file);
    SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
    database.exec("DELETE FROM point; DELETE FROM panel;");
    Writer writer(database);
    std::string missing;
    for (const StoredFigure& figure : figures)
      for (size_t i = 0; i < figure.panels.size(); ++i) {
        const DrawnPanel panel = drawn_panel(results, figure.panels[i], which);
        writer.write(figure, i + 1, json_of(panel, series_looks(results, figure.panels[i], panel.points)),
                     panel.points);
        missing = panel.missing;
      }
    if (summaries) {
      summarise(results, database);
      list_looks(results, database);
    }
    transaction.commit();
    return missing;
  });
}

}  // namespace

UnitedResults::UnitedResults(const std::vector<std::string>& files, bool to_write) {
  if (files.size() == 1 && (!to_write || access(files[0].c_str(), F_OK) != 0 || access(files[0].c_str(), W_OK) == 0)) {
    file_ = files[0];
    require_whole(file_);
    return;
  }
  scratch_ = std::make_unique<ScratchFolder>();
  file_ = scratch_->path / "merged.db";
  merge(file_, {files.begin(), files.end()});
}

void draw_figures(const std::filesystem::path& file, const WhichIsBetter& which) {
  figures_in(file);  // refuses a damaged description
  const MeasuredResults results(file);
  describe_runs(results, file);
  draw(results, figures_in(file), file, true, which);
}

std::string draw_figure(const std::filesystem::path& measured, const std::string& name, const std::string& description,
                        const std::filesystem::path& drawn, const WhichIsBetter& which) {
  Store(drawn).put_figure("plot", name, 0, description);
  return draw(MeasuredResults(measured), figures_in(drawn), drawn, false, which);
}

}  // namespace attnbench
