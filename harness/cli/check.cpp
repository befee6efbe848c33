// attnbench check: tests whether a method does what it claims.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <iostream>
#include <optional>

#include "harness/claims/print.hpp"
#include "harness/cli/command.hpp"
#include "harness/cli/terminal.hpp"
#include "harness/cli/torch_options.hpp"
#include "harness/machine/crash_note.hpp"
#include "harness/machine/resources.hpp"

namespace attnbench::check_command {
namespace {

std::string claims() {
  const size_t width = terminal_width();
  std::string text = bold("claims") + "\n";
  for (const auto& [claim, meaning] : claim_meanings())
    text += fmt::format("  {:<14}{}\n", claim, wrapped(meaning, width, 16, 16));
  return text + "\n" +
         wrapped(
             "Every claim passes, fails, is undecided (more draws would decide), implied (it holds by construction, "
             "and no "
             "test of it fits) or skipped with the reason. Effects "
             "are in units of sqrt(K(q,q) K(k,k)) (unbiased) and of the closed form (variance), with intervals that "
             "hold for all tests together. A bias that fails is also given as a share of K(q,k), as describe gives "
             "biases. Exit codes: 0 none fails, 1 one fails, 2 misuse, 3 some are undecided and none fails.",
             width, 0) +
         "\n";
}

std::vector<Subject> named_subjects(const std::vector<std::string>& specs, std::uint64_t seed) {
  std::vector<Subject> subjects;
  for (const auto& spec : specs) {
    subjects.push_back(subject_of(Params("methods", spec)));
    probes_of(subjects.back(), seed);  // refuse a spec that cannot be drawn before anything is tested
  }
  return subjects;
}

// Python runs one thread at a time. A second thread would only wait for its lock, which costs system time.
int useful_threads(const std::vector<Subject>& subjects) {
  return std::all_of(subjects.begin(), subjects.end(), std::mem_fn(&Subject::interpreted)) ? 1 : allowed_cores();
}

std::string coloured(Outcome outcome) {
  const std::string name = name_of(outcome);
  switch (outcome) {
    case Outcome::pass:
      return styled(Style::green, name);
    case Outcome::undecided:
      return styled(Style::yellow, name);
    case Outcome::fail:
      return styled(Style::red, name);
    default:
      return name;
  }
}

// The text as wide as a terminal; elsewhere, one line a claim. Continued lines begin below the numbers.
void print(const std::string& text) {
  constexpr size_t numbers = 27;
  std::cout << wrapped_lines(text, text_width(), numbers) << std::flush;
}

int run(const std::vector<std::string>& words) {
  CheckSettings settings;
  std::optional<int> threads;
  std::vector<std::string> specs;
  bool all = false, as_json = false;
  TorchOptions torch;
  options::options_description visible("options");
  visible.add_options()("spec", options::value(&specs), "method specs")(
      "all", options::bool_switch(&all),
      "every method, every random feature map with projection=iid, every ensemble with positive and with trig")(
      "json", options::bool_switch(&as_json), "every result, as JSON")(
      "error-rate", options::value(&settings.error_rate)->value_name("P")->default_value(settings.error_rate, "1e-6"),
      "chance that any statistical test fails when all claims hold")(
      "seed", options::value(&settings.seed)->value_name("N")->default_value(settings.seed), "base seed")(
      "threads", options::value<int>()->value_name("N")->notifier([&](int given) { threads = given; }),
      "the results do not depend on it [all cores of the allowed set; 1 for methods in Python]");
  add_torch_options(visible, torch);
  if (!parse_arguments("check", visible, words, {{"spec", -1}})) return 0;
  if (specs.empty() == !all) throw Misuse("check: give method specs or --all; see attnbench list methods");
  if (!(settings.error_rate > 0 && settings.error_rate < 1))
    throw Misuse(fmt::format("--error-rate {}: expected a number between 0 and 1", settings.error_rate));
  if (threads && *threads < 1) throw Misuse(fmt::format("--threads {}: expected at least 1", *threads));

  settings.asked_budget = !all;
  specs = with_torch_options(specs, torch);

  const auto start = std::chrono::steady_clock::now();
  const auto subjects = all ? all_subjects() : named_subjects(specs, settings.seed);
  settings.threads = threads.value_or(useful_threads(subjects));
  print_crash_notes();
  const auto report = check(subjects, settings, [&](const SubjectReport& subject) {
    if (!as_json) print(text_of(subject, coloured) + "\n");
  });
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (as_json)
    std::cout << json_of(report, seconds);
  else
    print(summary_of(report, seconds, coloured));
  return report.exit_code();
}

const bool registered = add(CommandEntry{
    .text = {.name = "check",
             .summary = "does it do what it claims? Every claim tested, at a stated error rate",
             .formula = "check SPEC...|--all [--json] [--error-rate P] [--seed S] [--threads T]"},
    .run = run,
    .makes_methods = true,
    .examples = {"check performer", "check performer:sign_fix=false", "check soft-cap --plugin softcap.py"},
    .details = claims,
    .names = {"methods"}});

}  // namespace
}  // namespace attnbench::check_command
