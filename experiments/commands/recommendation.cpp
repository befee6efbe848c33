#include "experiments/commands/recommendation.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "harness/machine/memory_limit.hpp"

namespace attnbench {

namespace {

Fit fit_of_memory(const Candidate& candidate, const Needs& needs) {
  if (!needs.bytes) return Fit::meets;
  if (!candidate.bytes) return Fit::ambiguous;
  return *candidate.bytes <= *needs.bytes ? Fit::meets : Fit::misses;
}

bool is_faster(const Candidate& x, const Candidate& y) { return x.seconds < y.seconds; }

std::string limits_text(const Needs& needs) {
  return fmt::format("an error of at most {:g}{}", needs.error,
                     needs.bytes ? fmt::format(" and at most {} of memory", memory_size(*needs.bytes)) : "");
}

std::string names_of(const std::vector<Candidate>& candidates) {
  constexpr size_t most = 5;
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(most, candidates.size()); ++i) names.push_back(candidates[i].method);
  return fmt::format("{}{}", fmt::join(names, ", "),
                     candidates.size() > most ? fmt::format(" and {} more", candidates.size() - most) : "");
}

std::string praise(const Candidate& best, const std::vector<Candidate>& rivals) {
  std::vector<Candidate> others = rivals;
  std::erase_if(others, [&](const Candidate& c) { return c.method == best.method; });
  return fmt::format("{} is the best answer: {} of exact softmax's time at an error of {}{}{}", best.method,
                     best.time.text(), best.error.text(), best.bytes ? ", with " + memory_size(*best.bytes) : "",
                     others.empty() ? "" : "; as fast within the noise, with no smaller error: " + names_of(others));
}

}  // namespace

Fit fit_of_error(const Estimate& error, const Needs& needs) {
  if (error.interval.high <= needs.error) return Fit::meets;
  return error.interval.low > needs.error ? Fit::misses : Fit::ambiguous;
}

Fit fit_of(const Candidate& candidate, const Needs& needs) {
  return std::max(fit_of_error(candidate.error, needs), fit_of_memory(candidate, needs));
}

Recommendation recommend(const std::vector<Candidate>& candidates, const Candidate& exact, const Needs& needs) {
  Recommendation answer;
  answer.ranked = candidates;
  answer.ranked.push_back(exact);
  std::stable_sort(answer.ranked.begin(), answer.ranked.end(), [&](const Candidate& x, const Candidate& y) {
    const Fit of_x = fit_of(x, needs), of_y = fit_of(y, needs);
    return of_x != of_y ? of_x < of_y : is_faster(x, y);
  });
  const bool exact_fits = fit_of(exact, needs) == Fit::meets;
  std::vector<Candidate> eligible, perhaps;
  for (const Candidate& c : candidates) {
    const Fit fit = fit_of(c, needs);
    const bool surely_faster = c.time.below(1);
    if (fit == Fit::meets && (surely_faster || !exact_fits))
      eligible.push_back(c);
    else if (fit != Fit::misses && !c.time.above(1))
      perhaps.push_back(c);
  }
  if (!eligible.empty()) {
    const Candidate fastest = *std::min_element(eligible.begin(), eligible.end(), is_faster);
    std::erase_if(eligible, [&](const Candidate& c) { return c.time.interval.low > fastest.time.interval.high; });
    answer.best = *std::min_element(eligible.begin(), eligible.end(), [](const Candidate& x, const Candidate& y) {
      return std::pair(x.error.value, x.seconds) < std::pair(y.error.value, y.seconds);
    });
    answer.sentence = praise(*answer.best, eligible);
    return answer;
  }
  const std::string doubt = perhaps.empty() ? "" : "; not decided: " + names_of(perhaps);
  if (exact_fits) {
    answer.best = exact;
    answer.sentence = fmt::format(
        "exact softmax is the best answer: no method is significantly faster and has, with its whole interval, {}{}",
        limits_text(needs), doubt);
  } else {
    answer.sentence =
        fmt::format("no method has, with its whole interval, {}; exact softmax takes {}{}", limits_text(needs),
                    exact.bytes ? memory_size(*exact.bytes) : "memory that could not be measured", doubt);
  }
  return answer;
}

}  // namespace attnbench
