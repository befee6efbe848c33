// attnbench compare: what differs between two results files beyond error?
#include "harness/store/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "harness/cli/command.hpp"

namespace attnbench {
namespace {

using Outcome = ComparedMetric::Outcome;

const char* word(Outcome outcome) {
  switch (outcome) {
    case Outcome::equal:
      return "equal";
    case Outcome::within_error:
      return "within error";
    case Outcome::differs:
      return "DIFFERS";
    case Outcome::undecided:
      return "UNDECIDED";
  }
  throw std::logic_error("an outcome of no known kind");
}

void print(const ComparedMetric& m) {
  const std::string change = m.outcome == Outcome::undecided
                                 ? fmt::format("{:.4g}", m.change)
                                 : fmt::format("{:.4g} ({:.4g} to {:.4g})", m.change, m.interval.low, m.interval.high);
  std::cout << fmt::format("  {:<13}{:<32}{:<9}{:>12.5g}{:>12.5g}  {} {}{}\n", word(m.outcome), m.metric, m.unit, m.a,
                           m.b, m.timing ? "ratio" : "difference", change,
                           m.timing || m.pairs > 0 ? "" : ", not paired");
}

void print(const char* title, const std::vector<std::string>& lines) {
  constexpr size_t most = 10;
  if (lines.empty()) return;
  std::cout << fmt::format("{} ({}):\n", title, lines.size());
  for (size_t i = 0; i < std::min(lines.size(), most); ++i) std::cout << "  " << lines[i] << "\n";
  if (lines.size() > most) std::cout << fmt::format("  and {} more\n", lines.size() - most);
}

int run(const std::vector<std::string>& arguments) {
  std::string a, b, metric;
  options::options_description visible("options");
  visible.add_options()("a", options::value(&a), "results file")("b", options::value(&b), "another one")(
      "metric", options::value(&metric), "only this metric, with the cells where it does not differ");
  if (!parse_arguments("compare", visible, arguments, {{"a", 1}, {"b", 1}})) return 0;
  if (b.empty()) throw Misuse("compare: expected two results files, such as: attnbench compare before.db after.db");
  const Comparison comparison = compare(a, b, metric);
  std::map<Outcome, size_t> counts;
  std::string cell;
  for (const auto& m : comparison.metrics) {
    ++counts[m.outcome];
    if (metric.empty() && (m.outcome == Outcome::equal || m.outcome == Outcome::within_error)) continue;
    if (m.cell != cell) std::cout << (cell = m.cell) << "\n";
    print(m);
  }
  print("ended otherwise", comparison.endings);
  print("only in A", comparison.only_a);
  print("only in B", comparison.only_b);
  std::cout << fmt::format(
      "{} metrics of cells in both: {} equal, {} within error, {} differ, {} undecided (family-wise error rate {})\n",
      comparison.metrics.size(), counts[Outcome::equal], counts[Outcome::within_error], counts[Outcome::differs],
      counts[Outcome::undecided], comparison.error_rate);
  if (counts[Outcome::differs] > 0 || !comparison.endings.empty()) return 1;
  return counts[Outcome::undecided] > 0 || comparison.metrics.empty() ? 3 : 0;
}

const bool registered = add(CommandEntry{
    .text = {.name = "compare",
             .summary = "what differs between two results files beyond error; exit code 1 if something does",
             .formula = "compare A B [--metric NAME]"},
    .run = run});

}  // namespace
}  // namespace attnbench
