// Parameters: the declarations of an entry, and the checked values of one spec.
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

// One declared parameter. The default is written as a user would type it.
struct Parameter {
  enum class Kind { integer, real, flag, choice, text, entry, specs };

  Kind kind;
  std::string name;
  std::string default_value;
  std::string help;
  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::infinity();
  std::vector<std::string> choices = {};  // Kind::choice
  std::string catalogue = {};  // Kind::entry and specs: the plural of the named entries ("features", "methods", ...)
  std::string word = {};       // Kind::integer and real: a word allowed instead of a number ("auto")
  bool published = false;      // a published library's deviation from the method: no claim holds for it
  bool numerics = false;       // it changes how numbers are computed, and the output by rounding only
  bool budget = false;         // the method's budget: more costs more, and should lower the error

  static Parameter integer(std::string name, long value, std::string help, double minimum, double maximum = 1e9);
  // An integer or `word`. The word is the default, and integer() returns 0 for it.
  static Parameter integer_or(std::string name, std::string word, std::string help, double minimum,
                              double maximum = 1e9);
  static Parameter real(std::string name, double value, std::string help, double minimum, double maximum);
  // A number below `bound` (exclusive), or `word`, which is the default.
  static Parameter real_or(std::string name, std::string word, std::string help, double minimum, double bound);
  static Parameter flag(std::string name, bool value, std::string help);
  static Parameter choice(std::string name, std::string value, std::string help, std::vector<std::string> choices);
  static Parameter text(std::string name, std::string value, std::string help);
  // A parameter whose value names another entry. That entry's own parameters then belong to the spec as well.
  static Parameter entry(std::string name, std::string value, std::string help, std::string catalogue);
  // Specs of one or more other entries: every value of the spec without a key, as in per-head:[local:window=8],[vq].
  // Only the first parameter of an entry can be of this kind. The default is written as a user would type it:
  // "[local],[performer]".
  static Parameter specs(std::string name, std::string value, std::string help, std::string catalogue);
  // Marks the parameter as a published library's deviation.
  Parameter as_published() &&;
  // Marks the parameter as one that changes rounding only.
  Parameter as_numerics() &&;
  // Marks the parameter as the one number that limits what the method may spend (integers only).
  Parameter as_budget() &&;
};

}  // namespace attnbench

extern template class std::vector<attnbench::Parameter>;  // compiled once, in parameters.cpp

namespace attnbench {

// The checked values of one spec: every declared parameter, given or default. Throws Misuse for unknown, duplicate and
// out-of-range arguments; the message lists the known ones.
class Params {
 public:
  // plural: the catalogue that holds spec.name.
  Params(const std::string& plural, const Spec& spec);
  Params(const std::string& plural, const std::string& spec) : Params(plural, parse_spec(spec)) {}

  const std::string& name() const { return content_->name; }
  Index integer(const std::string& parameter) const;
  double real(const std::string& parameter) const;
  bool flag(const std::string& parameter) const;
  const std::string& text(const std::string& parameter) const;  // also for choices and names of entries
  bool has(const std::string& parameter) const { return content_->place_of(parameter).has_value(); }

  // The same configuration with one parameter changed. Throws Misuse like the constructor.
  Params with(const std::string& parameter, const std::string& value) const;
  // The same with another entry for an entry parameter. Drops parameters that only the old entry has.
  Params with_entry(const std::string& parameter, const std::string& value) const;
  // The configuration of the entry that an entry parameter names, such as the base of truncated.
  Params nested(const std::string& parameter) const;
  // The configurations that a parameter of kind specs holds, in order.
  std::vector<Params> all_nested(const std::string& parameter) const;

  // The canonical spelling of this configuration: name and non-default values, in declared order.
  std::string spec() const;
  // All values, in declared order.
  const std::vector<std::pair<std::string, std::string>>& values() const { return content_->values; }
  const std::vector<Parameter>& declared() const { return *content_->declared; }
  // The plural of the catalogue that a parameter of kind entry or specs refers to.
  const std::string& catalogue_of(const std::string& parameter) const;
  // Source files of the entry and of every entry that its parameters name.
  std::vector<std::string> source_files() const;

 private:
  // Immutable, so that copies share it: a sweep has a hundred thousand of them. Configurations that differ only in
  // values share their declarations.
  struct Content {
    std::string plural, name;
    std::shared_ptr<const std::vector<Parameter>> declared;
    std::vector<std::pair<std::string, std::string>> values;  // of each declared parameter

    std::optional<size_t> place_of(const std::string& parameter) const;
  };
  explicit Params(Content content) : content_(std::make_shared<const Content>(std::move(content))) {}
  static void declare(Content& content, std::vector<Parameter>& declared, const std::string& plural,
                      const std::string& name, const Spec& spec);

  std::shared_ptr<const Content> content_;
};

}  // namespace attnbench
