#include "harness/claims/print.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace attnbench {

namespace {

std::string numbers_of(const Result& result) {
  if (!tested(result.outcome) || (!result.evidence && result.tested.empty())) return "-";
  if (!result.evidence && result.limit == 0)
    return result.deviation == 0 ? "none" : fmt::format("{:.3g}", result.deviation);
  if (!result.evidence) return fmt::format("{:.1e}, at most {:.1e}", result.deviation, result.limit);
  const auto& e = *result.evidence;
  return fmt::format("z = {:+.1f}, {:+.2f} % [{:+.2f}, {:+.2f}], {:.0f} draws", e.z, 100 * e.effect,
                     100 * e.interval.low, 100 * e.interval.high, e.draws);
}

// The subject of the deciding test, then where else the claim fails or how many tests it passes, and the draws that
// would decide.
std::string words_of(const Result& decides, const ClaimResults& results) {
  std::string words = decides.tested;
  if (const auto& e = decides.evidence; e && decides.outcome == Outcome::fail && e->of_mean)
    words += fmt::format(": {:+.2f} % of K(q, k) itself", 100 * *e->of_mean);
  if (!decides.reason.empty()) words += (words.empty() ? "" : ": ") + decides.reason;
  const std::string implied = decides.implied.empty() ? "" : "implied by " + decides.implied;
  if (decides.outcome == Outcome::implied) return implied + ", not tested: " + words;
  if (decides.outcome == Outcome::skipped) return words;
  if (decides.outcome == Outcome::undecided)
    words += fmt::format("; {:.3g} draws would decide", decides.evidence->draws_to_decide);
  std::string also;
  size_t like_it = 0;
  for (const Result& r : results) {
    if (r.outcome != decides.outcome) continue;
    if (++like_it <= 3 && &r != &decides && r.outcome == Outcome::fail) also += "; " + r.tested;
  }
  return words + also + (results.size() == 1 ? "" : fmt::format(" ({} of {} tests)", like_it, results.size())) +
         (implied.empty() ? "" : "; " + implied);
}

nlohmann::json json_of(const Result& result) {
  nlohmann::json json{{"claim", result.claim}, {"tested", result.tested}, {"outcome", name_of(result.outcome)}};
  if (!result.reason.empty()) json["reason"] = result.reason;
  if (!result.implied.empty()) json["implied"] = result.implied;
  if (result.evidence) {
    const auto& e = *result.evidence;
    json["z"] = e.z;
    json["effect"] = e.effect;
    json["interval"] = {e.interval.low, e.interval.high};
    json["draws"] = e.draws;
    if (result.outcome == Outcome::undecided) json["draws_to_decide"] = e.draws_to_decide;
  } else if (tested(result.outcome)) {
    json["deviation"] = result.deviation;
    json["limit"] = result.limit;
  }
  return json;
}

}  // namespace

std::string text_of(const SubjectReport& subject, const OutcomeWord& word) {
  struct Line {
    std::string claim;
    Outcome outcome;
    std::string numbers, words;
  };
  constexpr size_t outcome_width = 9;
  std::vector<Line> lines;
  size_t width = 0;
  for (const auto& [claim, meaning] : claim_meanings()) {
    const ClaimResults results = of_claim(subject.results, claim);
    const Result& decides = deciding(results);
    lines.push_back({claim, decides.outcome, numbers_of(decides), words_of(decides, results)});
    width = std::max(width, lines.back().numbers.size());
  }
  std::string text = subject.spec + "\n";
  for (const Line& line : lines)
    text += fmt::format("  {:<13} {}{}  {:<{}}  {}\n", line.claim, word(line.outcome),
                        std::string(outcome_width - std::string_view(name_of(line.outcome)).size(), ' '), line.numbers,
                        width, line.words);
  for (const std::string& note : subject.notes) text += "  " + note + "\n";
  return text;
}

std::string summary_of(const Report& report, double seconds, const OutcomeWord& word) {
  double fixed = 0, claims_tested = 0, claims_skipped = 0;
  for (const SubjectReport& subject : report.subjects) {
    for (const auto& [claim, meaning] : claim_meanings())
      ++(tested(deciding(of_claim(subject.results, claim)).outcome) ? claims_tested : claims_skipped);
    fixed += static_cast<double>(std::count_if(subject.results.begin(), subject.results.end(),
                                               [](const Result& r) { return tested(r.outcome) && !r.evidence; }));
  }
  const std::string numbers = fmt::format(
      "{}: {} {}, {:.0f} claims tested and {:.0f} skipped, {:.0f} statistical tests at a family-wise error rate of "
      "{:g} (|z| <= {:.2f}), {:.0f} exact ones, "
      "{:.1f} s\n",
      word(report.outcome()), report.subjects.size(), report.subjects.size() == 1 ? "spec" : "specs", claims_tested,
      claims_skipped, report.tests, report.settings.error_rate, report.threshold, fixed, seconds);
  return numbers + (report.tests_every_subject() ? "" : "nothing of a spec was tested: the reasons are above\n") +
         (report.outcome() == Outcome::fail ? "docs/claims.md, \"Reading a FAIL\", lists the usual causes\n" : "");
}

std::string json_of(const Report& report, double seconds) {
  auto subjects = nlohmann::json::array();
  for (const SubjectReport& subject : report.subjects) {
    auto results = nlohmann::json::array();
    for (const Result& result : subject.results) results.push_back(json_of(result));
    nlohmann::json json{{"spec", subject.spec}, {"results", results}};
    if (!subject.notes.empty()) json["notes"] = subject.notes;
    subjects.push_back(std::move(json));
  }
  return nlohmann::json{{"outcome", name_of(report.outcome())},
                        {"seed", report.settings.seed},
                        {"error_rate", report.settings.error_rate},
                        {"tests", report.tests},
                        {"threshold", report.threshold},
                        {"seconds", seconds},
                        {"subjects", std::move(subjects)}}
             .dump(2) +
         "\n";
}

}  // namespace attnbench
