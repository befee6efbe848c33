#include "harness/workers/stand_ins.hpp"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>

#include "harness/plugins/entry_message.hpp"
#include "harness/plugins/plugins.hpp"
#include "harness/workers/worker.hpp"

namespace attnbench {

namespace {

constexpr Allowance for_a_question{60, 8e9};

// A worker that has loaded the plugins. It caches its answers, because a sweep asks the same question for every cell.
class Informant {
 public:
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
    if (message && !message->contains("ending")) return *message;
    std::string files;
    for (const auto& file : plugins().files) files += (files.empty() ? "" : ", ") + file.string();
    throw std::runtime_error(fmt::format("{} {}: {}", plugins().files.size() == 1 ? "plugin" : "one of the plugins",
                                         files, worker_.outcome(std::move(*reply)).ending.reason));
  }

  Worker worker_{for_a_question.bytes};
  std::mutex mutex_;
  std::map<std::string, Message> known_;
};

// Asks about one entry. `what` names the question, `arguments` hold the rest of it.
class Asking {
 public:
  Asking(std::shared_ptr<Informant> informant, std::string plural, std::string name)
      : informant_(std::move(informant)), plural_(std::move(plural)), name_(std::move(name)) {}

  template <class Result>
  Result ask(const char* what, Message arguments) const {
    arguments.update({{"do", "tell"}, {"of", plural_}, {"name", name_}, {"what", what}});
    return informant_->ask(arguments).at("told").template get<Result>();
  }

  template <class Result>
  Result of_shape(const char* what, const Params& params, const Shape& shape) const {
    return ask<Result>(what, {{"params", params.spec()}, {"shape", to_message(shape)}});
  }

  // Replaces functions that only a worker may call.
  template <class... Arguments>
  auto elsewhere() const {
    return [name = name_](Arguments...) -> decltype(nullptr) {
      throw std::logic_error("'" + name + "' of a plugin was called outside a worker");
    };
  }

 private:
  std::shared_ptr<Informant> informant_;
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
      .fitted =
          [=](const Params& p) {
            return asking.ask<bool>("fitted", {{"params", p.spec()}});
          },
      .check =
          [=](const Params& p) {
            asking.ask<bool>("check", {{"params", p.spec()}});
          },
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
  entry.features = [=](const Params& p, Index d) {
    return asking.ask<Index>("features", {{"params", p.spec()}, {"d", d}});
  };
  entry.token_work = [=](const Params& p, Index d) {
    return asking.ask<Work>("token_work", {{"params", p.spec()}, {"d", d}});
  };
  entry.fitted = [=](const Params& p) { return asking.ask<bool>("fitted", {{"params", p.spec()}}); };
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
    return asking.ask<std::vector<std::string>>("caveats", {{"params", p.spec()}, {"m", m}, {"d", d}});
  };
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
  entry.limits = [=](const Params& p) { return asking.ask<InputLimits>("limits", {{"params", p.spec()}}); };
  entry.content = [=](const Params& p) { return asking.ask<std::string>("content", {{"params", p.spec()}}); };
  entry.has_calibration = plain.at("has_calibration");
  entry.causal_by_default = plain.at("causal_by_default");
  add_stand_in(std::move(entry), plain);
}

void add_experiment(const Message& plain, const Asking& asking) {
  ExperimentEntry entry;
  entry.metrics = plain.at("metrics");
  entry.headline = plain.at("headline");
  entry.check = [=](const Cell& cell) { asking.ask<bool>("check", {{"cell", to_message(cell)}}); };
  entry.bytes = [=](const Cell& cell) { return asking.ask<double>("bytes", {{"cell", to_message(cell)}}); };
  entry.work = [=](const Cell& cell) { return asking.ask<Work>("work", {{"cell", to_message(cell)}}); };
  if (plain.at("timed")) entry.timed = Timing{};
  add_stand_in(std::move(entry), plain);
}

}  // namespace

void register_stand_ins() {
  const auto informant = std::make_shared<Informant>();
  const Message all = informant->ask({{"do", "entries"}});
  for (const Message& plain : all.at("entries")) {
    const std::string plural = plain.at("plural"), name = plain.at("text").at("name");
    const Asking asking(informant, plural, name);
    if (plural == MethodEntry::plural)
      add_method(plain, asking);
    else if (plural == FeatureMapEntry::plural)
      add_map<FeatureMapEntry>(plain, asking);
    else if (plural == DeterministicMapEntry::plural)
      add_map<DeterministicMapEntry>(plain, asking);
    else if (plural == ProjectionEntry::plural)
      add_projection(plain, asking);
    else if (plural == InputEntry::plural)
      add_input(plain, asking);
    else
      add_experiment(plain, asking);
  }
}

}  // namespace attnbench
