// Experiments record the metrics that they declare, each by its name and in its unit.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "harness/errors/error.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/measured.hpp"
#include "tests/inputs/language_model_cache.hpp"

namespace attnbench::declared_test {

namespace {

using Units = std::set<std::pair<std::string, std::string>>;  // metric, unit

// With small numbers of draws and so on, where defaults are meant for results, and in each way that records something
// else.
std::vector<std::string> small(const std::string& experiment) {
  const std::map<std::string, std::vector<std::string>> options{
      {"kernel-error", {":draws=64,pairs=2"}},
      {"collisions", {":draws=16"}},
      {"wide-codes", {":samples=8"}},
      {"depth", {":layers=3"}},
      {"rank", {":index=2", ":spectrum=randomised,values=2,probes=2"}},
      {"logits-of-rank", {":rank=2"}},
      {"speed", {":blocks=2,turn=0.01"}},
      {"decode", {":blocks=2,turn=0.01,from=4"}},
      {"training-step", {":blocks=2,turn=0.01"}}};
  const auto found = options.find(experiment);
  if (found == options.end()) return {experiment};
  std::vector<std::string> specs;
  for (const auto& given : found->second) specs.push_back(experiment + given);
  return specs;
}

// A name that begins with a star stands for all that end alike.
bool contains(const Units& declared, const std::string& metric, const std::string& unit) {
  return std::any_of(declared.begin(), declared.end(), [&](const auto& one) {
    const auto& [name, in] = one;
    return in == unit && (name == metric || (name.starts_with("*") && metric.ends_with(name.substr(1))));
  });
}

// The measurements of one replicate; nullopt if the experiment refuses or skips the cell.
std::optional<std::vector<Measurement>> recorded(const Cell& cell) {
  const auto& entry = find<ExperimentEntry>(cell.experiment.name());
  try {
    entry.check(cell);
    Context context;
    ExactCache exact;
    Recorder recorder;
    const Task task{cell, 0, context, exact};
    if (!entry.timing()) {
      entry.run(task, recorder);
      return recorder.take();
    }
    return measured_turns(task);
  } catch (const Misuse&) {
  } catch (const Skip&) {
  } catch (const NumericallyInvalid&) {
  }
  return std::nullopt;
}

// A prompt that asks for a fact: what is recorded of its answer.
Cell recalling_cell(const std::string& model, Precision precision) {
  return {
      .experiment = Params("experiments", "model-loss"),
      .method = Params("methods", "uniform"),
      .input = Params("inputs", "llm:" + model + ",facts=1"),
      .problem = {.shape = {.nq = 90, .nk = 90, .d = 4, .dv = 4, .mask = {.causal = true}, .precision = precision}}};
}

template <class Visit>
void for_small_cells(const std::string& experiment, Precision precision, const Visit& visit) {
  for (const auto& spec : small(experiment))
    for (const char* method : {"softmax", "linear", "performer:m=4", "performer:features=trig,m=4",
                               "performer:projection=iid,m=4", "vq:codes=4", "local:window=2", "top-k:k=3",
                               "sampled:s=3", "wildcat:r=3,clip=false", "fnet", "reformer:buckets=2,chunk=4",
                               "quest:page=2,keep=2", "retnet:slope=0.1", "mra:block=2,refine=1", "qjl:m=4", "uniform"})
      for (const std::string input : {"gaussian", "needle", "pair:angle=1", "model", "trained:task=bytes"})
        for (const bool causal : {false, true}) {
          const bool model = input == "model";
          const bool trained = input.starts_with("trained");  // whose sizes are those of the recorded models
          if ((model || trained) != find<ExperimentEntry>(experiment).whole_model) continue;
          const Index of_head = experiment == "gaussian-queries" ? 24 : 8;  // a covariance of 12 queries
          const Index n = trained ? 256 : input.starts_with("pair") ? 1 : of_head, d = model ? 64 : trained ? 32 : 4;
          visit(Cell{
              .experiment = Params("experiments", spec),
              .method = Params("methods", method),
              .input = Params("inputs", input),
              .problem = {
                  .shape = {.nq = n, .nk = n, .d = d, .dv = d, .mask = {.causal = causal}, .precision = precision}}});
        }
}

}  // namespace

TEST_CASE("every experiment records what it declares, in the units that it declares, and declares nothing else",
          "[methods]") {
  const LanguageModelCache cache;
  const std::string language_model = cache.gguf({});
  for (const auto& name : catalogue("experiments").names()) {
    const auto& entry = find<ExperimentEntry>(name);
    Units declared, seen;
    for (const Metric& metric : entry.metrics) declared.insert({metric.name, metric.unit});
    INFO(name);
    size_t cells = 0;
    const auto check = [&](const Cell& cell) {
      const auto measurements = recorded(cell);
      if (!measurements) return;
      ++cells;
      INFO(cell.method.spec() << " on " << cell.input.spec());
      for (const auto& [metric, unit, shape, values] : *measurements) {
        INFO(metric << " in " << unit);
        CHECK(contains(declared, metric, unit));
        seen.insert({metric, unit});
      }
    };
    for (const Precision precision : {Precision::f64, Precision::f32}) {
      for_small_cells(name, precision, check);
      if (name == "model-loss") check(recalling_cell(language_model, precision));
    }
    CHECK(cells > 0);
    if (entry.timing()) continue;  // peers, Python and the kernel's leave decide what else turns have
    for (const auto& [metric, unit] : declared) {
      INFO(metric << " is declared");
      CHECK(std::any_of(seen.begin(), seen.end(), [&, &name = metric, &in = unit](const auto& one) {
        return contains({{name, in}}, one.first, one.second);
      }));
    }
  }
}

}  // namespace attnbench::declared_test
