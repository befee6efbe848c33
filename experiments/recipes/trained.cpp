#include "experiments/recipes/trained.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "experiments/trained_rows.hpp"

namespace attnbench {

namespace {

std::vector<std::pair<std::string, Index>> pairs_of(const std::vector<TrainedWith>& attentions) {
  std::vector<std::pair<std::string, Index>> pairs;
  for (const auto& [method, redraw] : attentions) pairs.emplace_back(method, redraw);
  return pairs;
}

constexpr Index grid_seeds = 3;  // of scripts/train/grid.json

std::string experiment_of(Index redraw) { return fmt::format("training:redraw={}", redraw); }

}  // namespace

TrainedModels::TrainedModels(Recipe& recipe, std::string task, bool causal, size_t texts,
                             const std::vector<TrainedWith>& attentions)
    : task_(std::move(task)), texts_(texts), seeds_(std::max<Index>(1, trained_seeds(task_, pairs_of(attentions)))) {
  std::set<Index> redraws;
  for (const TrainedWith& attention : attentions) redraws.insert(attention.redraw);
  for (const Index redraw : redraws) {
    RunRequest request{.experiment = experiment_of(redraw),
                       .methods = {},
                       .inputs = {"trained:task=" + task_},
                       .causal = causal,
                       .precision = Precision::f32,
                       .replicates = seeds_};
    for (const TrainedWith& attention : attentions)
      if (attention.redraw == redraw) request.methods.push_back(attention.method);
    const Cells ran = recipe.run(request);
    cells_ = cells_.size() == 0 ? ran : cells_ + ran;
  }
}

Cells TrainedModels::with(const TrainedWith& attention) const {
  return cells_.where({{"method", attention.method}, {"redraw", attention.redraw}});
}

std::vector<std::vector<double>> TrainedModels::by_text(const TrainedWith& attention, const std::string& metric) const {
  return with(attention).arrays(metric, texts_);
}

std::vector<Comparison> TrainedModels::lost(const TrainedWith& a, const TrainedWith& b, double rate) const {
  const auto first = by_text(a, "bits_by_text"), second = by_text(b, "bits_by_text");
  std::vector<Comparison> all;
  for (size_t seed = 0; seed < static_cast<size_t>(seeds_); ++seed)
    all.push_back(seed < first.size() && seed < second.size()
                      ? median_difference(fmt::format("seed {}", seed + 1), first[seed], second[seed], rate)
                      : Comparison{fmt::format("seed {}", seed + 1), unmeasured()});
  return all;
}

std::vector<Comparison> TrainedModels::each_lost(const std::vector<std::pair<std::string, TrainedWith>>& attentions,
                                                 const TrainedWith& than, double rate) const {
  std::vector<Comparison> all;
  for (const auto& [name, attention] : attentions)
    for (const Comparison& one : lost(attention, than, rate))
      all.push_back({fmt::format("{}, {}", name, one.what), one.estimate});
  return all;
}

std::vector<Comparison> TrainedModels::bits(const TrainedWith& a, const std::string& metric, double rate) const {
  std::vector<Comparison> all;
  const auto texts = by_text(a, metric);
  for (size_t seed = 0; seed < static_cast<size_t>(seeds_); ++seed)
    all.push_back(
        {fmt::format("seed {}", seed + 1), seed < texts.size() ? median_of(texts[seed], rate) : unmeasured()});
  return all;
}

Panel TrainedModels::curves(const std::string& title, const std::vector<std::string>& series) const {
  return {.title = title,
          .kind = "profile",
          .cells = cells_,
          .x_label = "training steps",
          .y = "curve",
          .y_label = "bits of a held-out byte",
          .interval = "mean",
          .series = series,
          .x_metric = "curve_steps"};
}

Comparison median_difference(const std::string& what, const std::vector<double>& first,
                             const std::vector<double>& second, double rate) {
  std::vector<double> differences(first.size());
  std::ranges::transform(first, second, differences.begin(), std::minus<>());
  return {what, median_of(differences, rate)};
}

Finding as_recorded(Finding finding, Index seeds, const std::vector<std::string>& tasks) {
  std::set<std::string> days, processors, versions;
  size_t rows = 0;
  for (const TrainedRow& row : trained_rows()) {
    if (std::ranges::find(tasks, row.task) == tasks.end()) continue;
    ++rows;
    days.insert(row.finished.substr(0, 10));
    processors.insert(row.processor);
    versions.insert(row.torch);
  }
  const std::string command = fmt::format("scripts/train/train.py --task {} --attention softmax trains one", tasks[0]);
  finding.numbers +=
      rows == 0
          ? fmt::format("; no row is recorded yet: not decided ({})", command)
          : fmt::format("; {} of {} seeds, {} recorded rows, trained {} on {} with PyTorch {} ({})", seeds, grid_seeds,
                        rows,
                        days.size() == 1 ? *days.begin() : fmt::format("from {} to {}", *days.begin(), *days.rbegin()),
                        fmt::join(processors, ", "), fmt::join(versions, ", "), command);
  return finding;
}

}  // namespace attnbench
