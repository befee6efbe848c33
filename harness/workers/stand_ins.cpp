#include "harness/workers/stand_ins.hpp"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>

#include "harness/core/key_score.hpp"
#include "harness/plugins/entry_message.hpp"
#include "harness/plugins/plugins.hpp"
#include "harness/workers/worker.hpp"

namespace attnbench {

namespace {

constexpr Allowance for_a_question{60, 8e9};

// A worker that has loaded some plugins. It caches its answers, because a sweep asks the same question for every cell.
class Informant {
 public:
  explicit Informant(PluginFiles plugins) : plugins_(std::move(plugins)) {}

  Message ask(const Message& question) {
    const std::lock_guard lock(mutex_);
    const auto [place, fresh] = known_.try_emplace(question.dump());
    if (fresh) {
      try {
        place->second = fresh_answer(question);
      } catch (...) {
        known_.erase(place);
        throw;
      }
    }
    return place->second;
  }

 private:
  Message fresh_answer(const Message& question) {
    const bool about_one = question.contains("name");
    const std::string about = about_one ? fmt::format("telling the {} of '{}'", question.at("what").get<std::string>(),
                                                      question.at("name").get<std::string>())
                                        : "loading plugins";
    auto reply = answer(worker_, question, for_a_question, about);
    if (!reply) throw std::runtime_error("interrupted while " + about);
    const Message* message = std::get_if<Message>(&*reply);
    if (message && message->contains("misuse")) throw Misuse(message->at("misuse").get<std::string>());
    if (message && (message->contains("entries") || message->contains("told"))) return *message;
    std::string files;
    for (const auto& file : plugins_) files += (files.empty() ? "" : ", ") + file.string();
    throw std::runtime_error(fmt::format("{} {}: {}", plugins_.size() == 1 ? "plugin" : "one of the plugins", files,
                                         worker_.outcome(std::move(*reply)).ending.reason));
  }

  PluginFiles plugins_;
  Worker worker_{for_a_question.bytes, plugins_};
  std::mutex mutex_;
  std::map<std::string, Message> known_;
};

// One informant for each set of plugins: code of one plugin then changes no answer about another's entries. Most sets
// are of one plugin. A spec such as truncated:base=[mine] may name entries of several.
class Informants {
 public:
  Informant& with(const PluginFiles& plugins) {
    const std::lock_guard lock(mutex_);
    auto& informant = by_plugins_[plugins];
    if (!informant) informant = std::make_unique<Informant>(plugins);
    return *informant;
  }

 private:
  std::mutex mutex_;
  std::map<PluginFiles, std::unique_ptr<Informant>> by_plugins_;
};

// Asks about one entry. `what` names the question, `arguments` hold the rest of it.
class Asking {
 public:
  Asking(std::shared_ptr<Informants> informants, std::string plural, std::string name)
      : informants_(std::move(informants)), plural_(std::move(plural)), name_(std::move(name)) {}

  template <class Result>
  Result of_params(const char* what, const Params& params, Message arguments = Message::object()) const {
    arguments["params"] = params.spec();
    return ask<Result>(what, plugins_among(params.source_files()), std::move(arguments));
  }

  template <class Result>
  Result of_shape(const char* what, const Params& params, const Shape& shape) const {
    return of_params<Result>(what, params, {{"shape", to_message(shape)}});
  }

  template <class Result>
  Result of_cell(const char* what, const Cell& cell) const {
    return ask<Result>(what, plugins_of(cell), {{"cell", to_message(cell)}});
  }

  // Replaces functions that only a worker may call.
  template <class... Arguments>
  auto elsewhere() const {
    return [name = name_](Arguments...) -> decltype(nullptr) {
      throw std::logic_error("'" + name + "' of a plugin was called outside a worker");
    };
  }

 private:
  template <class Result>
  Result ask(const char* what, const PluginFiles& plugins, Message arguments) const {
    arguments.update({{"do", "tell"}, {"of", plural_}, {"name", name_}, {"what", what}});
    return informants_->with(plugins).ask(arguments).at("told").template get<Result>();
  }

  std::shared_ptr<Informants> informants_;
  std::string plural_, name_;
};

template <class Entry>
void add_stand_in(Entry entry, const Message& plain) {
  entry.text = plain.at("text");
  entry.parameters = plain.at("parameters");
  Registry<Entry>::instance().add(std::move(entry), plain.at("files"));
}

void add_method(const Message& plain, const Asking& asking) {
  MethodEntry entry{
      .f32 = asking.elsewhere<const Draw&>(),
      .f64 = asking.elsewhere<const Draw&>(),
      .claims = [=](const Params& p, const Shape& s) { return asking.of_shape<Claims>("claims", p, s); },
      .memory = [=](const Params& p, const Shape& s) { return asking.of_shape<double>("memory", p, s); },
      .cost = [=](const Params& p, const Shape& s) { return asking.of_shape<Work>("cost", p, s); },
      .measured = [=](const std::string& what, const Params& p, const Shape& s) -> std::optional<double> {
        const auto measured = asking.of_shape<Message>(what.c_str(), p, s);
        return measured.is_null() ? std::nullopt : std::optional(measured.get<double>());
      },
      .fitted = [=](const Params& p) { return asking.of_params<bool>("fitted", p); },
      .needs = plain.at("needs"),
      .check = [=](const Params& p) { asking.of_params<bool>("check", p); },
      .caveats = [=](const Params& p,
                     const Shape& s) { return asking.of_shape<std::vector<std::string>>("caveats", p, s); },
  };
  add_stand_in(std::move(entry), plain);
}

template <class Entry>
void add_map(const Message& plain, const Asking& asking) {
  Entry entry;
  entry.f32 = asking.elsewhere<const Draw&>();
  entry.f64 = asking.elsewhere<const Draw&>();
  entry.features = [=](const Params& p, Index d) { return asking.of_params<Index>("features", p, {{"d", d}}); };
  entry.token_work = [=](const Params& p, Index d) { return asking.of_params<Work>("token_work", p, {{"d", d}}); };
  entry.fitted = [=](const Params& p) { return asking.of_params<bool>("fitted", p); };
  entry.non_negative = plain.at("non_negative");
  entry.may_vanish = plain.at("may_vanish");
  add_stand_in(std::move(entry), plain);
}

void add_projection(const Message& plain, const Asking& asking) {
  ProjectionEntry entry;
  entry.draw = [](const Draw&, Index, Index) -> Matrix<double> {
    throw std::logic_error("a plugin's projection was drawn outside a worker");
  };
  entry.law = [](const Params&, Index) { return EnsembleLaw{}; };  // workers compute everything that depends on it
  entry.caveats = [=](const Params& p, Index m, Index d) {
    return asking.of_params<std::vector<std::string>>("caveats", p, {{"m", m}, {"d", d}});
  };
  add_stand_in(std::move(entry), plain);
}

void add_key_score(const Message& plain, const Asking& asking) {
  KeyScoreEntry entry;
  entry.score = [](const Params&, const Head<double>&, Mask, Context&, const Matrix<double>&) -> std::vector<double> {
    throw std::logic_error("a plugin's key score was computed outside a worker");
  };
  entry.reads_values = plain.at("reads_values");
  entry.last_queries = [=](const Params& p) { return asking.of_params<Index>("last_queries", p); };
  entry.work = [=](const Params& p, const Shape& s) { return asking.of_shape<Work>("work", p, s); };
  entry.memory = [=](const Params& p, const Shape& s) { return asking.of_shape<double>("memory", p, s); };
  entry.check = [=](const Params& p) { asking.of_params<bool>("check", p); };
  add_stand_in(std::move(entry), plain);
}

void add_input(const Message& plain, const Asking& asking) {
  const auto nowhere = [](const Params&, const InputRequest&) -> HeadData<double> {
    throw std::logic_error("a plugin's input was drawn outside a worker");
  };
  InputEntry entry;
  entry.draw = nowhere;
  if (plain.at("needles"))
    entry.needles = [nowhere](const Params& p, const InputRequest& r) { return nowhere(p, r), std::vector<Index>(); };
  if (plain.at("transformer"))
    entry.transformer = [nowhere](const Params& p, const InputRequest& r) { return nowhere(p, r), EmbeddedTokens(); };
  if (plain.at("prediction"))
    entry.prediction = [nowhere](const Params& p, const InputRequest& r) { return nowhere(p, r), PredictionTask(); };
  entry.limits = [=](const Params& p) { return asking.of_params<InputLimits>("limits", p); };
  entry.content = [=](const Params& p) { return asking.of_params<std::string>("content", p); };
  entry.provides = plain.at("provides").get<std::vector<Need>>();
  entry.has_calibration = plain.at("has_calibration");
  entry.causal_by_default = plain.at("causal_by_default");
  add_stand_in(std::move(entry), plain);
}

void add_experiment(const Message& plain, const Asking& asking) {
  ExperimentEntry entry;
  entry.metrics = plain.at("metrics");
  entry.headline = plain.at("headline");
  entry.check = [=](const Cell& cell) { asking.of_cell<bool>("check", cell); };
  entry.bytes = [=](const Cell& cell) { return asking.of_cell<double>("bytes", cell); };
  entry.work = [=](const Cell& cell) { return asking.of_cell<Work>("work", cell); };
  if (plain.at("timed")) entry.timed = Timing{};
  add_stand_in(std::move(entry), plain);
}

void add_any(const Message& plain, const std::shared_ptr<Informants>& informants) {
  const std::string plural = plain.at("plural"), name = plain.at("text").at("name");
  const Asking asking(informants, plural, name);
  if (plural == MethodEntry::plural)
    add_method(plain, asking);
  else if (plural == FeatureMapEntry::plural)
    add_map<FeatureMapEntry>(plain, asking);
  else if (plural == DeterministicMapEntry::plural)
    add_map<DeterministicMapEntry>(plain, asking);
  else if (plural == ProjectionEntry::plural)
    add_projection(plain, asking);
  else if (plural == KeyScoreEntry::plural)
    add_key_score(plain, asking);
  else if (plural == InputEntry::plural)
    add_input(plain, asking);
  else
    add_experiment(plain, asking);
}

// Whether an earlier plugin has brought the same entry: the methods in PyTorch come with each plugin in PyTorch.
bool is_there(const Message& plain) {
  const Catalogue& all = catalogue(plain.at("plural").get<std::string>());
  const std::string name = plain.at("text").at("name"), file = plain.at("files").at(0);
  return all.has(name) && all.source_files(name).front() == file;
}

}  // namespace

void register_stand_ins() {
  const auto informants = std::make_shared<Informants>();
  const PluginFiles files = plugins().files;
  for (const auto& file : files) informants->with({file});  // they load their plugins at the same time
  for (const auto& file : files) {
    const Message all = informants->with({file}).ask({{"do", "entries"}});
    for (const Message& plain : all.at("entries"))
      if (!is_there(plain)) add_any(plain, informants);
    if (!duplicate_registrations().empty()) throw Misuse(fmt::format("plugin {}: {}", file.string(), taken_name()));
  }
}

}  // namespace attnbench
