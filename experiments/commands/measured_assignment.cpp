#include "experiments/commands/measured_assignment.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "experiments/commands/measured_candidates.hpp"
#include "harness/experiment/experiment.hpp"
#include "harness/machine/resources.hpp"
#include "harness/runner/cells.hpp"

namespace attnbench {

namespace {

constexpr const char* of_times = "speed:blocks=41,turn=5";
constexpr Index first_look = 2;
constexpr double clearly = 2;  // times the limit

Estimate mean_over(const Samples& samples, Index first, double error_rate) {
  Moments all;
  for (const auto& [replicate, value] : samples)
    if (replicate >= first) all.add(value);
  if (all.count == 0) return unmeasured();
  return {all.mean, mean_interval(all, error_rate), static_cast<Index>(all.count)};
}

Index texts_of(const RunRequest& model) {
  const Params input("inputs", model.inputs.at(0));
  return std::max<Index>(1, find<InputEntry>(input.name()).limits(input).replicates);
}

class Measuring {
 public:
  Measuring(const RunRequest& model, const ModelNeeds& needs, Store& store, std::int64_t run_id)
      : model_(model), needs_(needs), store_(store), run_id_(run_id), input_("inputs", model.inputs.at(0)) {
    const auto& entry = find<InputEntry>(input_.name());
    const Shape shape = shape_of(model);
    const auto transformer =
        entry.transformer(input_, {.nq = 1, .nk = 1, .d = shape.d, .dv = shape.dv, .streams = Streams(1)}).transformer;
    found_.layers = transformer.layers();
    found_.heads = transformer.heads();
    texts_ = texts_of(model);
  }

  std::optional<MeasuredAssignment> operator()(const std::vector<Params>& candidates) {
    found_.candidates = candidates.size();
    const auto costs = costs_of(candidates);
    if (!costs) return std::nullopt;
    found_.cheaper = costs->size();
    auto options = measured_options(*costs);
    if (!options) return std::nullopt;
    if (!choose(greedy_path(*options))) return std::nullopt;
    if (!measure_cost()) return std::nullopt;
    return std::move(found_);
  }

 private:
  // Runs the missing cells; false if the user interrupted.
  bool run_all(const RunRequest& request) {
    const RunSummary summary = run(request, store_, run_id_);
    if (found_.first_reason.empty()) found_.first_reason = summary.first_reason;
    return !summary.interrupted;
  }

  RunRequest times_of(const std::string& input, std::vector<std::string> methods, Index heads) const {
    RunRequest request = model_;
    request.experiment = of_times;
    request.inputs = {input};
    request.methods = std::move(methods);
    request.methods.insert(request.methods.begin(), "softmax");
    request.heads = heads;
    request.replicates = 1;
    request.threads = 1;
    return request;
  }

  RunRequest losses_of(const std::string& experiment, std::vector<std::string> methods, Index texts) const {
    RunRequest request = model_;
    request.experiment = experiment;
    request.methods = std::move(methods);
    request.replicates = texts;
    request.threads = allowed_cores();
    return request;
  }

  // A cell's cost over that of softmax. Memory is read from one call and does not vary.
  Estimate cost_of(const Cells& cells, const std::string& method, double error_rate) const {
    if (needs_.saved == Saved::memory) {
      const Samples bytes = cells.method(method).scalar("peak_bytes"),
                    exact = cells.method("softmax").scalar("peak_bytes");
      if (bytes.empty() || exact.empty() || exact.begin()->second <= 0) return unmeasured();
      return certain(bytes.begin()->second / exact.begin()->second);
    }
    std::vector<double> shares;
    for (const double speedup : cells.method(method).turns("speedup")) shares.push_back(1 / speedup);
    return shares.empty() ? unmeasured() : median_of(shares, error_rate);
  }

  // The candidates that cost significantly less than softmax, with their costs on the model's first head.
  std::optional<std::map<std::string, double>> costs_of(const std::vector<Params>& candidates) {
    std::map<std::string, double> costs;
    std::vector<std::string> methods;
    for (const Params& one : candidates) methods.push_back(one.spec());
    const RunRequest request = times_of(head_of_layer(0), methods, 1);
    if (!run_all(request)) return std::nullopt;
    const Cells cells = cells_of(request, measurements_);
    for (const std::string& method : methods) {
      const Estimate cost = cost_of(cells, method, recommendation_error_rate / static_cast<double>(methods.size()));
      if (!cost.measured()) ++found_.unmeasured;
      if (cost.measured() && cost.below(1)) costs[method] = cost.value;
    }
    return costs;
  }

  std::string head_of_layer(Index layer) const {
    return input_.with("layer", std::to_string(layer)).with("head", "0").spec();
  }

  std::vector<std::string> places() const {
    std::vector<std::string> all;
    for (Index l = 0; l < found_.layers; ++l)
      for (Index h = 0; h < found_.heads; ++h) all.push_back(fmt::format("{}.{}", l, h));
    return all;
  }

  // The options of each head: the candidates that lose at most twice the limit on some text of the first look.
  std::optional<std::vector<std::vector<HeadOption>>> measured_options(const std::map<std::string, double>& costs) {
    std::vector<std::vector<HeadOption>> options(places().size());
    if (costs.empty()) return options;
    std::vector<std::string> methods;
    for (const auto& [method, cost] : costs) methods.push_back(method);
    RunRequest all = losses_of("model-loss", methods, first_look);
    all.sweep = {{"replaced", places()}};
    if (!run_all(all)) return std::nullopt;
    for (size_t place = 0; place < options.size(); ++place) {
      const std::string experiment = "model-loss:replaced=" + places()[place];
      std::vector<std::string> hopeful;
      const Cells looked = cells_of(losses_of(experiment, methods, first_look), measurements_);
      for (const std::string& method : methods) {
        const Samples losses = looked.method(method).scalar("excess_bits");
        if (losses.empty()) ++found_.unmeasured;
        if (std::any_of(losses.begin(), losses.end(),
                        [&](const auto& loss) { return loss.second <= clearly * needs_.loss; }))
          hopeful.push_back(method);
      }
      if (hopeful.empty()) continue;
      const RunRequest request = losses_of(experiment, hopeful, choosing_texts);
      if (!run_all(request)) return std::nullopt;
      const Cells cells = cells_of(request, measurements_);
      for (const std::string& method : hopeful) {
        const Samples losses = cells.method(method).scalar("excess_bits");
        if (losses.empty()) {
          ++found_.unmeasured;
          continue;
        }
        Moments mean;
        for (const auto& [text, loss] : losses) mean.add(loss);
        options[place].push_back({method, mean.mean, costs.at(method)});
      }
    }
    return options;
  }

  // The last assignment of the greedy order that loses no more than the limit with its whole interval.
  bool choose(const std::vector<Assignment>& path) {
    found_.chosen = path.front();
    found_.loss = certain(0);
    size_t fits = 0, fails = path.size();
    const double looks = 1 + std::ceil(std::log2(static_cast<double>(path.size())));
    // The first look is where the losses of single heads add up to the limit.
    size_t next = 0;
    while (next + 1 < path.size() && path[next + 1].loss() <= needs_.loss) ++next;
    if (next == 0) next = std::min<size_t>(1, path.size() - 1);
    while (next > fits && next < fails) {
      const RunRequest request = losses_of("model-loss", {spec_of(path[next])}, texts_);
      if (!run_all(request)) return false;
      const Samples losses = cells_of(request, measurements_).scalar("excess_bits");
      const Estimate loss = mean_over(losses, choosing_texts, recommendation_error_rate / looks);
      if (fit_of_error(loss, {.error = needs_.loss}) == Fit::meets) {
        fits = next;
        found_.chosen = path[next];
        found_.loss = loss;
      } else {
        fails = next;
        found_.refused = path[next];
        found_.refused_loss = loss;
      }
      next = (fits + fails) / 2;
    }
    return true;
  }

  // Layer by layer, since a call takes the heads of one. Softmax costs the same in each, so the whole costs the mean.
  bool measure_cost() {
    const auto layers = static_cast<double>(found_.layers);
    found_.cost = {.value = 0, .interval = {0, 0}, .count = 1};
    for (Index layer = 0; layer < found_.layers; ++layer) {
      const std::string method =
          spec_of_layer(found_.chosen, static_cast<size_t>(layer), static_cast<size_t>(found_.heads));
      Estimate cost = certain(1);
      if (method != "softmax") {
        const RunRequest request = times_of(head_of_layer(layer), {method}, found_.heads);
        if (!run_all(request)) return false;
        cost = cost_of(cells_of(request, measurements_), method, recommendation_error_rate / layers);
        if (!cost.measured()) {
          found_.cost = unmeasured();
          return true;
        }
      }
      found_.cost.value += cost.value / layers;
      found_.cost.interval.low += cost.interval.low / layers;
      found_.cost.interval.high += cost.interval.high / layers;
    }
    return true;
  }

  const RunRequest& model_;
  const ModelNeeds& needs_;
  Store& store_;
  StoredMeasurements measurements_{store_};
  std::int64_t run_id_;
  Params input_;
  Index texts_ = 0;
  MeasuredAssignment found_ = {};
};

}  // namespace

void refuse_few_texts(const RunRequest& model) {
  if (const Index texts = texts_of(model); texts < choosing_texts + least_judging_texts)
    throw Misuse(
        fmt::format("recommend --model: {} has {} text{}; {} choose and at least {} others judge: give a model with "
                    "more texts, and leave out text=",
                    model.inputs.at(0), texts, texts == 1 ? "" : "s", choosing_texts, least_judging_texts));
}

std::optional<MeasuredAssignment> measure_assignment(const RunRequest& model, const std::vector<Params>& candidates,
                                                     const ModelNeeds& needs, Store& store, std::int64_t run_id) {
  return Measuring(model, needs, store, run_id)(candidates);
}

}  // namespace attnbench
