// Parameters: what an entry declares, and the checked values of one spec.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/core/spec.hpp"
#include "harness/linalg/matrix.hpp"

namespace attnbench {

// One declared parameter. The default stands as it would be typed.
struct Parameter {
  enum class Kind { integer, real, flag, choice, text, entry, specs };

  Kind kind;
  std::string name;
  std::string default_value;
  std::string help;
  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::infinity();
  std::vector<std::string> choices = {};  // Kind::choice
  std::string catalogue = {};  // Kind::entry and specs: the plural of what is named ("features", "methods", ...)
  std::string family = {};     // Kind::entry: only entries of this family, when not empty
  std::string word = {};       // Kind::integer and real: a word that may stand in place of a number ("auto")
  bool published = false;      // what some library does instead of the method: no claim holds for it
  bool budget = false;         // what a method spends: more of it costs more, and should err less

  static Parameter integer(std::string name, long value, std::string help, double minimum, double maximum = 1e9);
  // An integer, or `word`, which is the default and whose integer() is 0.
  static Parameter integer_or(std::string name, std::string word, std::string help, double minimum,
                              double maximum = 1e9);
  static Parameter real(std::string name, double value, std::string help, double minimum, double maximum);
  // A number below `bound` (exclusive), or `word`, which is the default.
  static Parameter real_or(std::string name, std::string word, std::string help, double minimum, double bound);
  static Parameter flag(std::string name, bool value, std::string help);
  static Parameter choice(std::string name, std::string value, std::string help, std::vector<std::string> choices);
  static Parameter text(std::string name, std::string value, std::string help);
  // A parameter whose value names another entry; that entry's own parameters then belong to the spec as well.
  static Parameter entry(std::string name, std::string value, std::string help, std::string catalogue,
                         std::string family = "");
  // Specs of other entries, one or more: every value of the spec that has no key, as in per-head:[local:window=8],[vq].
  // Only the first parameter of an entry can be of this kind. The default as it would be typed: "[local],[performer]".
  static Parameter specs(std::string name, std::string value, std::string help, std::string catalogue);
  // The same, marked as what a published library does.
  Parameter as_published() &&;
  // The same, marked as the one number that says how much the method may spend (integers only).
  Parameter as_budget() &&;
};

// The values of one spec: every declared parameter, given or default, checked. Unknown, duplicate and out-of-range
// arguments throw Misuse naming what is known.
class Params {
 public:
  // plural: the catalogue that holds spec.name.
  Params(const std::string& plural, const Spec& spec);
  Params(const std::string& plural, const std::string& spec) : Params(plural, parse_spec(spec)) {}

  const std::string& name() const { return content_->name; }
  Index integer(const std::string& parameter) const;
  double real(const std::string& parameter) const;
  bool flag(const std::string& parameter) const;
  const std::string& text(const std::string& parameter) const;  // choices, texts and names of entries
  bool has(const std::string& parameter) const { return content_->place_of(parameter).has_value(); }

  // The same configuration with one parameter changed. Throws Misuse as the constructor does.
  Params with(const std::string& parameter, const std::string& value) const;
  // The same with another entry under an entry parameter; what only the old entry takes is left behind.
  Params with_entry(const std::string& parameter, const std::string& value) const;
  // The configuration of the entry that this spec's entry parameter names: truncated's base, say.
  Params nested(const std::string& parameter) const;
  // The configurations that a parameter of kind specs holds, in order.
  std::vector<Params> all_nested(const std::string& parameter) const;

  // The one spelling of this configuration: name and the values that differ from their defaults, in declared order.
  std::string spec() const;
  // All values, in declared order.
  const std::vector<std::pair<std::string, std::string>>& values() const { return content_->values; }
  const std::vector<Parameter>& declared() const { return *content_->declared; }
  // The plural of the catalogue that the value of a parameter of kind entry or specs is looked up in.
  const std::string& catalogue_of(const std::string& parameter) const;
  // Source files of the entry and of every entry that its parameters name.
  std::vector<std::string> source_files() const;

 private:
  // Never changed once it is made, so that copies share it: a sweep has a hundred thousand of them. Those that differ
  // in values alone share what is declared.
  struct Content {
    std::string plural, name;
    std::shared_ptr<const std::vector<Parameter>> declared;
    std::vector<std::pair<std::string, std::string>> values;  // of each that is declared

    std::optional<size_t> place_of(const std::string& parameter) const;
  };
  explicit Params(Content content) : content_(std::make_shared<const Content>(std::move(content))) {}
  static void declare(Content& content, std::vector<Parameter>& declared, const std::string& plural,
                      const std::string& name, const Spec& spec);

  std::shared_ptr<const Content> content_;
};

}  // namespace attnbench
