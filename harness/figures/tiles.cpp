// Panels of tiles: a metric, the ratio of two methods, or the method with the least value, over two axes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>

#include "harness/figures/panel_drawing.hpp"
#include "harness/statistics/estimate.hpp"

namespace attnbench {

namespace {

using BySeries = std::map<std::string, Samples>;

double mean_of_samples(const Samples& samples) {
  double sum = 0;
  for (const auto& [replicate, value] : samples) sum += value;
  return sum / static_cast<double>(samples.size());
}

// log10 a / b in the replicates that both have. Closed forms may be 0: the mean is then infinite, or NaN if both are.
std::pair<Centre, Index> log10_ratio(const Samples& a, const Samples& b) {
  std::vector<double> logs;
  for (const auto& [replicate, value] : a)
    if (const auto other = b.find(replicate); other != b.end() && !(value == 0 && other->second == 0))
      logs.push_back(std::log10(value / other->second));
  return {mean_of(logs), std::ssize(logs)};
}

DrawnPoint tile(const std::string& series, const char* role, const Centre& centre, Index count) {
  return {.series = series,
          .role = role,
          .low = centre.low,
          .high = centre.high,
          .value = centre.value,
          .replicates = count,
          .samples = count};
}

std::optional<DrawnPoint> winner_of(const BySeries& all) {
  std::vector<std::pair<double, std::string>> order;
  for (const auto& [series, samples] : all) order.emplace_back(mean_of_samples(samples), series);
  if (order.empty()) return std::nullopt;
  std::sort(order.begin(), order.end());
  const std::string& best = order.front().second;
  if (order.size() == 1) {
    DrawnPoint alone = tile(best, "winner", {.value = HUGE_VAL}, std::ssize(all.at(best)));
    alone.samples = 0;
    return alone;
  }
  const auto [centre, count] = log10_ratio(all.at(order[1].second), all.at(best));
  return tile(best, "winner", centre, count);
}

std::optional<DrawnPoint> ratio_of(const BySeries& all, const std::vector<std::string>& methods) {
  const auto a = all.find(methods.at(0)), b = all.find(methods.at(1));
  if (a == all.end() || b == all.end()) return std::nullopt;
  const auto [centre, count] = log10_ratio(a->second, b->second);
  if (std::isnan(centre.value)) return std::nullopt;
  return tile(fmt::format("{}", fmt::join(methods, " / ")), "ratio", centre, count);
}

std::optional<DrawnPoint> value_of(const BySeries& all) {
  if (all.size() != 1) return std::nullopt;
  const auto& [series, samples] = *all.begin();
  std::vector<double> values;
  for (const auto& [replicate, value] : samples) values.push_back(value);
  return tile(series, "value", mean_of(values), std::ssize(values));
}

}  // namespace

void PanelDrawing::draw_tiles() {
  std::map<std::pair<double, double>, std::map<std::string, std::map<Index, std::vector<double>>>> tiles;
  std::set<std::tuple<double, double, std::string>> lacking;
  for (const DrawnReplicate& one : replicates(panel.y, true)) {
    const auto [x, y] = std::pair(one.place->x, one.place->upwards);
    if (std::isnan(x) || std::isnan(y)) continue;
    // The closed form where the panel names one that the cell has.
    const double number = !std::isnan(one.theory) ? one.theory : one.values ? one.values->mean() : NAN;
    if (std::isnan(number)) lacking.emplace(x, y, one.place->series);
    tiles[{x, y}][one.place->series][one.number].push_back(number);
  }
  for (const auto& [place, by_series] : tiles) {
    BySeries whole;
    for (const auto& [series, by_replicate] : by_series) {
      if (lacking.contains({place.first, place.second, series})) continue;
      for (const auto& [replicate, numbers] : by_replicate) whole[series][replicate] = mean_of(numbers).value;
    }
    auto point = panel.winner ? winner_of(whole) : panel.ratio.empty() ? value_of(whole) : ratio_of(whole, panel.ratio);
    if (!point) continue;
    point->x = place.first;
    point->y = place.second;
    drawn.points.push_back(std::move(*point));
  }
}

}  // namespace attnbench
