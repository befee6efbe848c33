// attnbench compare: finds differences beyond error between two results files, or between two methods in one file.
#include "harness/store/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <span>

#include "harness/cli/command.hpp"
#include "harness/experiment/experiment.hpp"
#include "harness/store/compare_claims.hpp"
#include "harness/store/compare_methods.hpp"

namespace attnbench::compare_command {
namespace {

using Outcome = ComparedMetric::Outcome;

std::string change_of(const ComparedMetric& m) {
  const std::string interval =
      m.interval.low == m.interval.high ? "" : fmt::format(" ({:.4g} to {:.4g})", m.interval.low, m.interval.high);
  return fmt::format("{:>12.5g}{:>12.5g}  {} {:.4g}{}{}", m.a, m.b, m.timing ? "ratio" : "difference", m.change,
                     interval, m.timing || m.pairs > 0 ? "" : ", not paired");
}

void print(const char* title, const std::vector<std::string>& lines) {
  constexpr size_t most = 10;
  if (lines.empty()) return;
  std::cout << fmt::format("{} ({}):\n", title, lines.size());
  for (size_t i = 0; i < std::min(lines.size(), most); ++i) std::cout << "  " << lines[i] << "\n";
  if (lines.size() > most) std::cout << fmt::format("  and {} more\n", lines.size() - most);
}

// SAME, BETTER, ...: for metrics and for claims.
template <class Of>
const char* word(Of outcome) {
  switch (outcome) {
    case Of::same:
      return "SAME";
    case Of::better:
      return "BETTER";
    case Of::worse:
      return "WORSE";
    case Of::differs:
      return "DIFFERS";
    case Of::ambiguous:
      return "UNDECIDED";
  }
  throw std::logic_error("an unknown outcome");
}

// "12 SAME, 0 BETTER, 1 WORSE, 0 DIFFERS, 2 UNDECIDED"
template <class Of>
std::string text_of(std::map<Of, size_t>& counts) {
  std::string text;
  for (const Of outcome : {Of::same, Of::better, Of::worse, Of::differs, Of::ambiguous})
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", counts[outcome], word(outcome));
  return text;
}

template <class Of>
bool any_changed(std::map<Of, size_t>& counts) {
  return counts[Of::better] + counts[Of::worse] + counts[Of::differs] > 0;
}

// The result of a comparison: whether anything changed (exit code 1), is undecided (3), or was compared at all.
struct Found {
  bool changed = false, ambiguous = false, anything = false;
};

Found print(const ComparedClaims& comparison) {
  std::map<ComparedClaim::Outcome, size_t> counts;
  for (const ComparedClaim& claim : comparison.claims) {
    ++counts[claim.outcome];
    if (claim.outcome == ComparedClaim::Outcome::same) continue;
    const bool sizes = claim.size_a != claim.size_b && !claim.size_a.empty() && !claim.size_b.empty();
    std::cout << fmt::format("  {:<11}{} -> {} (expected {})  {}: {}{}\n", word(claim.outcome), to_string(claim.a),
                             to_string(claim.b), to_string(claim.expected), claim.recipe, claim.statement,
                             sizes ? fmt::format(" [{} in A, {} in B]", claim.size_a, claim.size_b) : "");
  }
  print("claims only in A", comparison.only_a);
  print("claims only in B", comparison.only_b);
  if (comparison.claims.empty()) return {};
  std::cout << fmt::format("{} claims in both: {}\n", comparison.claims.size(), text_of(counts));
  return {any_changed(counts), counts[ComparedClaim::Outcome::ambiguous] > 0, true};
}

Found print(const ComparedFiles& comparison, bool all) {
  std::map<Outcome, size_t> counts;
  std::string cell;
  size_t equal = 0;
  bool timings = false;
  for (const auto& m : comparison.metrics) {
    ++counts[m.outcome];
    equal += m.equal;
    timings |= m.timing;
    if (!all && m.outcome == Outcome::same) continue;
    if (m.cell != cell) std::cout << (cell = m.cell) << "\n";
    std::cout << fmt::format("  {:<11}{:<32}{:<9}{}\n", word(m.outcome), m.metric, m.unit, change_of(m));
  }
  print("ended otherwise", comparison.endings);
  print("only in A", comparison.only_a);
  print("only in B", comparison.only_b);
  if (timings)
    std::cout << fmt::format(
        "timings: noise between sessions counts as a factor of up to {} of speedups and {} of seconds; "
        "intervals within are SAME\n",
        resolution_of_speedups, resolution_of_seconds);
  std::cout << fmt::format("{} metrics of cells in both: {}; {} bit for bit equal (family-wise error rate {})\n",
                           comparison.metrics.size(), text_of(counts), equal, comparison.error_rate);
  return {any_changed(counts) || !comparison.endings.empty(), counts[Outcome::ambiguous] > 0,
          !comparison.metrics.empty()};
}

int compare_two_files(const std::string& a, const std::string& b, const std::string& metric) {
  const ComparedClaims claims = metric.empty() ? compare_claims(a, b) : ComparedClaims{};
  const ComparedFiles files = compare(a, b, metric, better_of);
  const Found of_claims = print(claims), of_metrics = print(files, !metric.empty());
  if (of_claims.changed || of_metrics.changed) return 1;
  const bool decided = !of_claims.ambiguous && !of_metrics.ambiguous && (of_claims.anything || of_metrics.anything);
  return decided ? 0 : 3;
}

const char* winner(Outcome outcome) {
  return outcome == Outcome::better ? "B BETTER" : outcome == Outcome::worse ? "A BETTER" : word(outcome);
}

std::string direction(const ComparedMetric& m) {
  return m.better == Better::less ? ", less is better" : m.better == Better::more ? ", more is better" : "";
}

// One metric on all problems: how often each method wins, then where.
void print_metric(std::span<const ComparedMetric> problems, bool all) {
  std::map<Outcome, size_t> counts;
  for (const auto& m : problems) ++counts[m.outcome];
  const bool preferred = problems[0].better != Better::unstated;
  std::cout << fmt::format(
      "{} ({}{}): {}{} UNDECIDED, {} SAME\n", problems[0].metric, problems[0].unit, direction(problems[0]),
      preferred ? fmt::format("A wins at {} of {}, B at {}, ", counts[Outcome::worse], problems.size(),
                              counts[Outcome::better])
                : "",
      counts[Outcome::differs] > 0 || !preferred
          ? fmt::format("{} of {} DIFFERS, {}", counts[Outcome::differs], problems.size(), counts[Outcome::ambiguous])
          : std::to_string(counts[Outcome::ambiguous]),
      counts[Outcome::same]);
  for (const auto& m : problems)
    if (all || m.outcome != Outcome::same)
      std::cout << fmt::format("  {:<11}{}{}\n             {}\n", winner(m.outcome), m.cell,
                               m.timing && m.pairs == 0 ? " (timed in different sessions)" : "", change_of(m));
}

int compare_two_methods(const std::string& file, const std::vector<std::string>& methods, const std::string& metric) {
  const std::string a = Params("methods", methods[0]).spec(), b = Params("methods", methods[1]).spec();
  if (a == b) throw Misuse(fmt::format("compare: both methods are {}; expected two that differ", a));
  const ComparedMethods comparison = compare_methods(file, a, b, metric, better_of);
  std::cout << fmt::format("A = {}\nB = {}\n", a, b);
  bool decided = false;
  for (auto first = comparison.metrics.begin(); first != comparison.metrics.end();) {
    const auto last = std::find_if(first, comparison.metrics.end(),
                                   [&](const ComparedMetric& m) { return m.metric != first->metric; });
    print_metric({first, last}, !metric.empty());
    decided |= std::any_of(first, last, [](const auto& m) { return m.outcome != Outcome::ambiguous; });
    first = last;
  }
  print("not done everywhere", comparison.endings);
  std::cout << fmt::format("{} comparisons; differences are B - A, ratios B / A; family-wise error rate {}\n",
                           comparison.metrics.size(), comparison.error_rate);
  return decided ? 0 : 3;
}

int run(const std::vector<std::string>& arguments) {
  std::string a, b, metric;
  std::vector<std::string> methods;
  options::options_description visible("options");
  visible.add_options()("a", options::value(&a), "results file")("b", options::value(&b), "another one")(
      "method,m", options::value(&methods)->value_name("SPEC"),
      "twice: these two methods within the one file, where both were measured")(
      "metric", options::value(&metric)->value_name("NAME"),
      "only this metric, with the cells where it does not differ");
  if (!parse_arguments("compare", visible, arguments, {{"a", 1}, {"b", 1}})) return 0;
  if (methods.empty()) {
    if (b.empty())
      throw Misuse(
          "compare: expected two results files, such as: attnbench compare before.db after.db; or one and two methods, "
          "such as: attnbench compare results.db --method performer --method linear");
    return compare_two_files(a, b, metric);
  }
  if (methods.size() != 2 || a.empty() || !b.empty())
    throw Misuse(
        fmt::format("compare: {} results files and {} --method were given; expected one file and two methods, such "
                    "as: attnbench compare results.db --method performer --method linear",
                    !a.empty() + !b.empty(), methods.size()));
  return compare_two_methods(a, methods, metric);
}

const bool registered = add(CommandEntry{
    .text = {.name = "compare",
             .summary = "what differs between two results files beyond error, or between two methods in one; exit "
                        "code 1 if the files differ, 3 if that is not decided",
             .formula = "compare A B [--metric NAME] | compare FILE --method SPEC --method SPEC [--metric NAME]"},
    .run = run,
    .examples = {"compare before.db after.db",
                 "compare results.db --method performer:m=64 --method linear --metric relative_output_error"}});

}  // namespace
}  // namespace attnbench::compare_command
