// The sizes of cells, and rules, in words.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "harness/experiment/experiment.hpp"
#include "harness/runner/judgement.hpp"

namespace attnbench {

namespace {

constexpr size_t most_listed = 3;

template <class T>
std::string list_or_range(const std::set<T>& values) {
  if (values.size() <= most_listed)
    return fmt::format("{:g}", fmt::join(std::vector<double>(values.begin(), values.end()), ", "));
  return fmt::format("{:g} to {:g}", static_cast<double>(*values.begin()), static_cast<double>(*values.rbegin()));
}

// Cells whose heads are of one model, or all others.
struct Group {
  std::set<std::string> heads;
  std::set<Index> n, d, replicates, draws, blocks;
  std::set<bool> causal, in_float;
  std::string replicate = "draw";
  Index texts = 1;
  bool whole_model = false;

  void add(const RecipeCell& cell) {
    const Shape& shape = cell.run.problem.shape;
    n.insert(shape.nk);
    d.insert(shape.d);
    causal.insert(shape.mask.causal);
    in_float.insert(attnbench::in_float(shape.precision));
    replicates.insert(cell.replicates);
    const Params& experiment = cell.run.experiment;
    if (experiment.has("draws")) draws.insert(experiment.integer("draws"));
    if (cell.run.timing()) blocks.insert(experiment.integer("blocks"));
  }

  std::string words() const {
    std::vector<std::string> all{fmt::format("d = {}", list_or_range(d))};
    if (*n.rbegin() > 1) {  // else a pair of one query and one key
      all.insert(all.begin(), fmt::format("n = {}", list_or_range(n)));
      all.emplace_back(causal.size() == 2 ? "causal and bidirectional" : *causal.begin() ? "causal" : "bidirectional");
    }
    if (in_float.contains(true)) all.emplace_back(in_float.size() == 2 ? "in float and in double" : "in float");
    if (!blocks.empty())
      all.push_back(fmt::format("{} blocks of turns", list_or_range(blocks)));
    else if (*replicates.rbegin() > 1 && !draws.empty())
      all.push_back(fmt::format("{} replicates of {} draws", list_or_range(replicates), list_or_range(draws)));
    else if (*replicates.rbegin() > 1)
      all.push_back(fmt::format("{} {}s{}", list_or_range(replicates), replicate, on_texts()));
    return fmt::format("{}", fmt::join(all, ", "));
  }

 private:
  std::string on_texts() const {
    if (heads.empty() || replicate != "draw") return "";
    return texts == 1 ? " of the method on one text" : fmt::format(" of the method, on {} texts in turn", texts);
  }
};

}  // namespace

std::string settings_in_words(const Cells& cells) {
  std::vector<std::string> order;  // of the groups
  std::map<std::string, Group> groups;
  for (const RecipeCell& cell : cells.all()) {
    const InputPlace place = place_of(cell.run.input);
    // Pairs of one query and one key are no sequences, and theory is not timed.
    const std::string key = place.group + (cell.run.problem.shape.nk == 1 ? "\n1" : "") +
                            (cell.run.timing() ? "\nt" : "") +
                            (find<ExperimentEntry>(cell.run.experiment.name()).whole_model ? "\nw" : "");
    if (!groups.contains(key)) order.push_back(key);
    Group& group = groups[key];
    group.add(cell);
    group.replicate = place.replicate;
    group.texts = place.texts;
    group.whole_model = !place.group.empty() && find<ExperimentEntry>(cell.run.experiment.name()).whole_model;
    if (!place.group.empty()) group.heads.insert(place.name);
  }
  std::vector<std::string> words;
  for (const auto& key : order) {
    const Group& group = groups[key];
    const std::string name = key.substr(0, key.find('\n'));
    const size_t count = group.heads.size();  // name: "heads of MiniLM"
    if (group.whole_model) {
      words.push_back(fmt::format("{} ({})", name.substr(name.find(" of ") + 4), group.words()));
      continue;
    }
    words.push_back(name.empty() ? group.words()
                                 : fmt::format("{} {}{} ({})", count, count == 1 ? "head" : "heads",
                                               name.substr(name.find(' ')), group.words()));
  }
  return fmt::format("{}", fmt::join(words, "; "));
}

std::string rule_in_words(const Judgement& judgement) {
  using Kind = Rule::Kind;
  const Rule& rule = judgement.rule;
  const size_t count = judgement.numbers.size();
  std::set<std::string> regions;
  for (const Number& one : judgement.numbers) regions.insert(one.region);
  const auto counted = [](size_t many, const char* what) {
    return fmt::format("{} {}{}", many, what, many == 1 ? "" : "s");
  };
  const std::string numbers =
      counted(count, "number") + (rule.by_region ? " in " + counted(regions.size(), "region") : "");
  const auto lie = [&](const std::string& where) {
    const char* which = count == 1 ? "it lies" : rule.any ? "one of each region lies" : "all lie";
    const std::string equal =
        rule.equal_within > 1 ? fmt::format("; within a factor of {:g} is equal", rule.equal_within) : "";
    return fmt::format("{}; holds if {} {}{}", numbers, which, where, equal);
  };
  switch (rule.kind) {
    case Kind::below:
      return lie(fmt::format("below {:g}", rule.bound));
    case Kind::above:
      return lie(fmt::format("above {:g}", rule.bound));
    case Kind::between:
      return lie(fmt::format("between {:g} and {:g}", rule.bound, rule.high));
    case Kind::contains:
      return fmt::format("{}; holds if every interval contains {:g} and reaches at most {:g} to either side", numbers,
                         rule.bound, rule.resolution);
    case Kind::at_most:
      return fmt::format("{}; holds if every sample is at most {}", numbers,
                         count > 0 && judgement.numbers[0].bounds ? "its bound" : fmt::format("{:g}", rule.bound));
    default:
      return numbers + (count == 1 ? ", which is" : ", which are") + " reported; nothing is decided";
  }
}

}  // namespace attnbench
