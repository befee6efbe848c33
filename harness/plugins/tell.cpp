#include "harness/plugins/tell.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "harness/core/key_score.hpp"
#include "harness/experiment/measured_cost.hpp"
#include "harness/plugins/entry_message.hpp"

namespace attnbench {

namespace {

const FeatureMapEntry& map_entry(const std::string& plural, const std::string& name) {
  if (plural == FeatureMapEntry::plural) return find<FeatureMapEntry>(name);
  return find<DeterministicMapEntry>(name);
}

void add_what_is_plain(Message& message, const std::string& plural, const std::string& name) {
  if (plural == FeatureMapEntry::plural || plural == DeterministicMapEntry::plural) {
    const auto& entry = map_entry(plural, name);
    message["non_negative"] = entry.non_negative;
    message["may_vanish"] = entry.may_vanish;
  } else if (plural == MethodEntry::plural) {
    message["needs"] = find<MethodEntry>(name).needs;
  } else if (plural == KeyScoreEntry::plural) {
    message["reads_values"] = find<KeyScoreEntry>(name).reads_values;
  } else if (plural == InputEntry::plural) {
    const auto& entry = find<InputEntry>(name);
    message["provides"] = entry.provides;
    message["needles"] = !!entry.needles;
    message["transformer"] = !!entry.transformer;
    message["prediction"] = !!entry.prediction;
    message["has_calibration"] = entry.has_calibration;
    message["causal_by_default"] = entry.causal_by_default;
  } else if (plural == ExperimentEntry::plural) {
    const auto& entry = find<ExperimentEntry>(name);
    message["metrics"] = entry.metrics;
    message["headline"] = entry.headline;
    message["timed"] = entry.timing();
  }
}

Message told_of_method(const std::string& name, const std::string& what, const Message& question) {
  const auto& entry = find<MethodEntry>(name);
  const Params params("methods", question.at("params").get<std::string>());
  if (what == "fitted") return entry.fitted(params);
  if (what == "check") return entry.check(params), Message(true);
  const Shape shape = shape_of(question.at("shape"));
  if (what == "claims") return entry.claims(params, shape);
  if (what == "memory") return entry.memory(params, shape);
  if (what == "cost") return entry.cost(params, shape);
  if (what == "caveats") return entry.caveats(params, shape);
  if (what == "keys" || what == "kv-bytes" || what == "seconds") {
    const auto measured = measured_cost(what, params, shape);
    return measured ? Message(*measured) : Message();
  }
  throw std::logic_error("a method cannot be asked for: " + what);
}

Message told_of_key_score(const std::string& name, const std::string& what, const Message& question) {
  const auto& entry = find<KeyScoreEntry>(name);
  const Params params("methods", question.at("params").get<std::string>());
  if (what == "last_queries") return entry.last_queries(params);
  if (what == "check") return entry.check(params), Message(true);
  const Shape shape = shape_of(question.at("shape"));
  if (what == "work") return entry.work(params, shape);
  if (what == "memory") return entry.memory(params, shape);
  throw std::logic_error("a key score cannot be asked for: " + what);
}

Message told_of_map(const std::string& plural, const std::string& name, const std::string& what,
                    const Message& question) {
  const auto& entry = map_entry(plural, name);
  const Params params("methods", question.at("params").get<std::string>());
  if (what == "fitted") return entry.fitted(params);
  if (what == "features") return entry.features(params, question.at("d"));
  if (what == "token_work") return entry.token_work(params, question.at("d"));
  throw std::logic_error("a feature map cannot be asked for: " + what);
}

}  // namespace

Message entries_message(std::span<const PluginEntry> entries) {
  auto all = Message::array();
  for (const auto& [plural, name, file] : entries) {
    const Catalogue& in = catalogue(plural);
    Message message{{"plural", plural},
                    {"files", in.source_files(name)},
                    {"text", in.description(name)},
                    {"parameters", in.parameters(name)}};
    add_what_is_plain(message, plural, name);
    all.push_back(std::move(message));
  }
  return {{"entries", std::move(all)}};
}

Message told(const Message& question) {
  const std::string plural = question.at("of"), name = question.at("name"), what = question.at("what");
  if (plural == MethodEntry::plural) return told_of_method(name, what, question);
  if (plural == FeatureMapEntry::plural || plural == DeterministicMapEntry::plural)
    return told_of_map(plural, name, what, question);
  if (plural == ProjectionEntry::plural) {
    const Params params("methods", question.at("params").get<std::string>());
    return find<ProjectionEntry>(name).caveats(params, question.at("m"), question.at("d"));
  }
  if (plural == KeyScoreEntry::plural) return told_of_key_score(name, what, question);
  if (plural == InputEntry::plural) {
    const Params params("inputs", question.at("params").get<std::string>());
    const auto& entry = find<InputEntry>(name);
    if (what == "limits") return entry.limits(params);
    return entry.content(params);
  }
  const auto& entry = find<ExperimentEntry>(name);
  const Cell cell = cell_of(question.at("cell"));
  if (what == "bytes") return entry.bytes(cell);
  if (what == "work") return entry.work(cell);
  return entry.check(cell), Message(true);
}

}  // namespace attnbench
