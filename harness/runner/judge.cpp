#include "harness/runner/judge.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>

namespace attnbench {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr size_t longest_list = 600;   // characters of a text that gives every number
constexpr size_t most_names = 4;       // regions named in a sentence without a count
constexpr size_t most_in_a_group = 6;  // names listed beside the count of a group

enum class Side { below, above, open };

Side side_of(const Estimate& e, double bound) {
  return e.below(bound) ? Side::below : e.above(bound) ? Side::above : Side::open;
}

Compared compared_of(const std::string& what, const Estimate& e, const std::string& side) {
  return {what, side, e.value, e.interval.low, e.interval.high, static_cast<long>(e.count)};
}

std::vector<Compared> compared_of(double bound, const std::vector<Comparison>& comparisons, bool below_holds) {
  std::vector<Compared> all;
  for (const Comparison& c : comparisons) {
    const Side side = side_of(c.estimate, bound);
    const bool holds = side == (below_holds ? Side::below : Side::above);
    all.push_back(compared_of(c.what, c.estimate, side == Side::open ? "undecided" : holds ? "holds" : "fails"));
  }
  return all;
}

std::string of(size_t comparisons) { return comparisons > 1 ? fmt::format(", of {} comparisons", comparisons) : ""; }

std::string named(const Comparison& c) {
  return c.what.empty() ? c.estimate.text() : fmt::format("{}: {}", c.what, c.estimate.text());
}

// How many replicates would narrow the interval until it excludes the bound, if value and scatter stay the same.
std::string what_would_decide(const Estimate& e, double bound) {
  if (!e.measured()) return "";
  const double half = (e.interval.high - e.interval.low) / 2, distance = std::abs(e.value - bound);
  const double times = half / distance;
  if (!(times < 30)) return fmt::format("; the value is too near {:g} for any number of replicates", bound);
  return fmt::format("; about {:.0f} replicates would decide",
                     std::ceil(static_cast<double>(e.count) * std::max(1.0, times * times)));
}

const Comparison& greatest(const std::vector<Comparison>& all, double (*number)(const Estimate&)) {
  return *std::max_element(all.begin(), all.end(), [&](const Comparison& x, const Comparison& y) {
    return number(x.estimate) < number(y.estimate);
  });
}
double low_end(const Estimate& e) { return e.interval.low; }
double high_end(const Estimate& e) { return e.interval.high; }

const Finding nothing_measured{Ruling::open, "nothing was measured"};

Estimate negative(const Estimate& e) { return {-e.value, {-e.interval.high, -e.interval.low}, e.count}; }

// The rules for "above" are the rules for "below", applied to negated estimates.
std::vector<Comparison> negative(const std::vector<Comparison>& all) {
  std::vector<Comparison> negatives = all;
  for (auto& [what, e] : negatives) e = negative(e);
  return negatives;
}

// decides: receives the index of the comparison that decides.
Ruling ruling_of_all_below(double bound, const std::vector<Comparison>& all, size_t& decides) {
  const auto place = [&](const Comparison& c) { return static_cast<size_t>(&c - all.data()); };
  const Comparison& failed = greatest(all, low_end);
  decides = place(failed);
  if (failed.estimate.above(bound)) return Ruling::refuted;
  const Comparison& closest = greatest(all, high_end);
  decides = place(closest);
  return closest.estimate.below(bound) ? Ruling::holds : Ruling::open;
}

Finding found(double bound, const std::vector<Comparison>& comparisons, bool below) {
  if (comparisons.empty()) return nothing_measured;
  size_t decides = 0;
  const Ruling ruling = below ? ruling_of_all_below(bound, comparisons, decides)
                              : ruling_of_all_below(-bound, negative(comparisons), decides);
  const Comparison& decided = comparisons[decides];
  std::string numbers = named(decided) + of(comparisons.size());
  if (ruling == Ruling::holds && comparisons.size() > 1) numbers = "nearest to the bound, " + numbers;
  if (ruling == Ruling::open) numbers += what_would_decide(decided.estimate, bound);
  return {ruling, numbers, "", compared_of(bound, comparisons, below)};
}

enum class Judged { holds, equal, fails, mixed, undecided };

// The bound that ratios must stay below, and the factor within which both sides count as equal.
struct Bound {
  double value, equal_within = 1;
};

bool equals(const Estimate& e, const Bound& bound) {
  const double size = std::abs(bound.value);
  const double low = bound.value > 0 ? size / bound.equal_within : -size * bound.equal_within,
               high = bound.value > 0 ? size * bound.equal_within : -size / bound.equal_within;
  return bound.equal_within > 1 && e.measured() && e.interval.low >= low && e.interval.high <= high;
}

Judged judged(const Region& region, const Bound& wanted) {
  const double bound = wanted.value;
  size_t below = 0, above = 0, equal = 0;
  for (const Comparison& c : region.comparisons) {
    below += c.estimate.below(bound);
    above += c.estimate.above(bound);
    equal += side_of(c.estimate, bound) == Side::open && equals(c.estimate, wanted);
  }
  const size_t all = region.comparisons.size();
  if (all == 0) return Judged::undecided;
  if (region.rule == Region::Rule::some)
    return below > 0 ? Judged::holds : above == all ? Judged::fails : Judged::undecided;
  if (below == all) return Judged::holds;
  if (above == all) return Judged::fails;
  if (equal == all) return Judged::equal;
  if (above + equal == 0) return Judged::undecided;
  return below > 0 ? Judged::mixed : Judged::fails;  // "all lie below" is false once one lies above
}

// The value of a region on an axis: its least if some comparison must hold, otherwise its greatest.
double value_of(const Region& region) {
  double value = region.rule == Region::Rule::some ? infinity : -infinity;
  for (const Comparison& c : region.comparisons)
    value = region.rule == Region::Rule::some ? std::min(value, c.estimate.value) : std::max(value, c.estimate.value);
  return value;
}

// The coordinate at which the value crosses the bound between two neighbours: on logarithmic scales if everything is
// positive, otherwise linearly. NaN if it does not cross between them.
double crossing(const Region& a, const Region& b, double bound) {
  const double x = *a.coordinate, y = *b.coordinate, sign = bound < 0 ? -1 : 1;
  const double u = sign * value_of(a), v = sign * value_of(b);
  bound *= sign;
  const bool logarithmic = x > 0 && y > 0 && u > 0 && v > 0 && bound > 0;
  const double share = logarithmic ? std::log(bound / u) / std::log(v / u) : (bound - u) / (v - u);
  if (!(share >= 0 && share <= 1)) return std::numeric_limits<double>::quiet_NaN();
  return logarithmic ? x * std::pow(y / x, share) : x + share * (y - x);
}

// A sentence such as "holds up to scale = 0.4, fails from 0.5 on", if one place separates the regions that hold from
// those that fail.
std::optional<std::string> boundary(const std::vector<Region>& regions, const Bound& bound, const std::string& axis) {
  if (axis.empty()) return std::nullopt;
  std::vector<const Region*> ordered;
  for (const Region& region : regions) {
    if (!region.coordinate) return std::nullopt;
    ordered.push_back(&region);
  }
  std::sort(ordered.begin(), ordered.end(), [](auto* a, auto* b) { return *a->coordinate < *b->coordinate; });
  std::vector<Judged> sides;
  for (const Region* region : ordered) sides.push_back(judged(*region, bound));
  const Judged first = sides.front(), last = sides.back();
  const bool opposite =
      (first == Judged::holds && last == Judged::fails) || (first == Judged::fails && last == Judged::holds);
  if (!opposite) return std::nullopt;
  size_t before = 0, after = sides.size() - 1;
  while (sides[before + 1] == first) ++before;
  while (sides[after - 1] == last) --after;
  for (size_t i = before + 1; i < after; ++i)
    if (sides[i] != Judged::undecided) return std::nullopt;
  // Interpolate only between two neighbours that are both decided: an undecided region between them leaves the place
  // open.
  const bool neighbours = after == before + 1;
  const double at =
      neighbours ? crossing(*ordered[before], *ordered[after], bound.value) : std::numeric_limits<double>::quiet_NaN();
  const char* words = first == Judged::holds ? "holds up to" : "fails up to";
  std::string sentence = fmt::format("{} {} = {:g}, {} from {:g} on", words, axis, *ordered[before]->coordinate,
                                     first == Judged::holds ? "fails" : "holds", *ordered[after]->coordinate);
  if (!neighbours) sentence += "; undecided in between";
  if (!std::isnan(at)) sentence += fmt::format("; the boundary is at about {:.3g}", at);
  return sentence;
}

// Puts names with a comma in brackets, so that a list of names can be read.
std::vector<std::string> apart(std::vector<std::string> names) {
  for (auto& name : names)
    if (name.find(',') != std::string::npos) name = "(" + name + ")";
  return names;
}

std::string group_of(const std::vector<Region>& regions, const Bound& bound) {
  std::map<Judged, std::vector<std::string>> groups;
  for (const Region& region : regions) groups[judged(region, bound)].push_back(region.name);
  const bool counts = regions.size() > most_names;
  std::vector<std::string> words;
  const std::string tie = fmt::format("equal within a factor of {:g}", bound.equal_within);
  for (const auto& [side, word] : {std::pair<Judged, std::string>{Judged::holds, "holds"},
                                   {Judged::mixed, "holds for some comparisons"},
                                   {Judged::equal, tie},
                                   {Judged::fails, "fails"},
                                   {Judged::undecided, "undecided"}}) {
    const auto group = groups.find(side);
    if (group == groups.end()) continue;
    const auto& [ruled, names] = *group;
    std::string at = counts ? fmt::format("{} at {} of {}", word, names.size(), regions.size()) : word + " at";
    if (names.size() <= (counts ? most_in_a_group : most_names))
      at += fmt::format("{} {}", counts ? ":" : "", fmt::join(apart(names), ", "));
    words.push_back(at);
  }
  return fmt::format("{}", fmt::join(words, "; "));
}

bool less(const Comparison& x, const Comparison& y) { return x.estimate.value < y.estimate.value; }

// The measured comparisons of a region. If some comparison must hold, only the one that holds most clearly.
std::vector<Comparison> telling(const Region& region) {
  std::vector<Comparison> all;
  for (const Comparison& c : region.comparisons)
    if (c.estimate.measured()) all.push_back(c);
  if (region.rule == Region::Rule::some && !all.empty()) all = {*std::min_element(all.begin(), all.end(), less)};
  return all;
}

// The numbers of every region with intervals: the one that decides, or the range of all. If that becomes longer than a
// reader follows, the range over all regions.
std::string numbers_of(const std::vector<Region>& regions, bool below) {
  std::vector<std::string> texts;
  std::vector<Comparison> all;
  size_t count = 0;
  for (const Region& region : regions) {
    std::vector<Comparison> here = telling(region);
    for (Comparison& c : here)
      if (!below) c.estimate = negative(c.estimate);
    count += region.comparisons.size();
    if (here.empty()) {
      texts.push_back(region.name + ": nothing was measured");
      continue;
    }
    const auto [least, greatest] = std::minmax_element(here.begin(), here.end(), less);
    texts.push_back(fmt::format(
        "{}{}{}", region.name, region.name.empty() ? "" : ": ",
        here.size() > 1 ? fmt::format("from {} to {}", least->estimate.text(), greatest->estimate.text())
        : region.rule == Region::Rule::some
            ? fmt::format("{} {} of {}", below ? "least" : "greatest", named(here[0]), region.comparisons.size())
            : here[0].estimate.text()));
    for (Comparison& c : here) {
      c.what = c.what.empty() ? region.name : fmt::format("{}: {}", region.name, c.what);
      all.push_back(c);
    }
  }
  std::string text = fmt::format("{}", fmt::join(texts, "; "));
  if (text.size() <= longest_list || all.empty()) return text;
  const auto [least, greatest] = std::minmax_element(all.begin(), all.end(), less);
  return fmt::format("from {} to {}, over {} settings with {} comparisons{}", named(*least), named(*greatest),
                     regions.size(), count,
                     regions[0].rule == Region::Rule::some ? ", of each setting the one that tells" : "");
}

Finding found_where(const Bound& bound, const std::vector<Region>& regions, const std::string& axis, bool below) {
  if (regions.empty()) return nothing_measured;
  std::map<Judged, size_t> count;
  Finding finding;
  for (const Region& region : regions) {
    ++count[judged(region, bound)];
    for (const Comparison& c : region.comparisons) {
      const Side side = side_of(c.estimate, bound.value);
      const Estimate shown = below ? c.estimate : negative(c.estimate);
      const std::string what = c.what.empty() ? region.name : fmt::format("{}: {}", region.name, c.what);
      finding.compared.push_back(compared_of(what, shown,
                                             side == Side::below         ? "holds"
                                             : side == Side::above       ? "fails"
                                             : equals(c.estimate, bound) ? "equal"
                                                                         : "undecided"));
    }
  }
  const size_t holds = count[Judged::holds], mixed = count[Judged::mixed],
               fails = count[Judged::fails] + count[Judged::equal];  // equal counts as not less
  finding.ruling = holds == regions.size()                 ? Ruling::holds
                   : fails == regions.size()               ? Ruling::refuted
                   : mixed > 0 || (holds > 0 && fails > 0) ? Ruling::depends
                                                           : Ruling::open;
  if (finding.ruling != Ruling::holds && count[Judged::fails] < regions.size())
    finding.region = boundary(regions, bound, axis).value_or(group_of(regions, bound));
  finding.numbers = numbers_of(regions, below);
  return finding;
}

}  // namespace

Finding all_below(double bound, const std::vector<Comparison>& comparisons) { return found(bound, comparisons, true); }
Finding all_above(double bound, const std::vector<Comparison>& comparisons) { return found(bound, comparisons, false); }

Finding all_between(double low, double high, const std::vector<Comparison>& comparisons) {
  const Finding below = all_below(high, comparisons), above = all_above(low, comparisons);
  if (below.ruling == Ruling::refuted) return below;
  if (above.ruling != Ruling::holds) return above;
  if (below.ruling != Ruling::holds) return below;
  Finding both = below;
  if (comparisons.size() > 1)
    both.numbers = fmt::format("upper bound: {}; lower bound: {}", below.numbers, above.numbers);
  return both;
}

Finding all_contain(double value, double resolution, const std::vector<Comparison>& comparisons) {
  if (comparisons.empty()) return nothing_measured;
  const auto half = [](const Comparison& c) { return (c.estimate.interval.high - c.estimate.interval.low) / 2; };
  const auto outside = [&](const Comparison& c) {  // in half widths; beyond 1 the interval excludes the value
    const double off = std::abs(c.estimate.value - value);
    return off == 0 ? 0 : off / half(c);
  };
  const auto holds = [&](const Comparison& c) {
    return c.estimate.interval.low <= value && value <= c.estimate.interval.high;
  };
  Finding finding;
  for (const Comparison& c : comparisons)
    finding.compared.push_back(compared_of(c.what, c.estimate,
                                           !holds(c)               ? "fails"
                                           : half(c) <= resolution ? "holds"
                                                                   : "undecided"));
  const auto farthest = *std::max_element(comparisons.begin(), comparisons.end(), [&](const auto& x, const auto& y) {
    return std::pair(!holds(x), outside(x)) < std::pair(!holds(y), outside(y));
  });
  const auto widest = *std::max_element(comparisons.begin(), comparisons.end(),
                                        [&](const auto& x, const auto& y) { return half(x) < half(y); });
  if (!holds(farthest)) {
    finding.ruling = Ruling::refuted;
    finding.numbers = named(farthest) + of(comparisons.size());
  } else if (!(half(widest) <= resolution)) {
    finding.numbers = fmt::format("all intervals hold it, but the widest is wider than +-{:g}: {}{}", resolution,
                                  named(widest), of(comparisons.size()));
  } else {
    finding.ruling = Ruling::holds;
    finding.numbers =
        fmt::format("farthest off, {}{}; widest interval, {}", named(farthest), of(comparisons.size()), named(widest));
  }
  return finding;
}

Finding all_at_most(const std::vector<Bounded>& all) {
  if (all.empty()) return nothing_measured;
  // Relative to the bound if it is positive, so that bounds of different sizes compare fairly.
  const auto excess = [](const Bounded& b) { return (b.value - b.bound) / (b.bound > 0 ? b.bound : 1); };
  const Bounded& worst =
      *std::max_element(all.begin(), all.end(), [&](const auto& x, const auto& y) { return excess(x) < excess(y); });
  const bool holds = std::all_of(all.begin(), all.end(), [](const Bounded& b) { return b.value <= b.bound; });
  const auto broken = std::count_if(all.begin(), all.end(), [](const Bounded& b) { return !(b.value <= b.bound); });
  Finding finding{holds ? Ruling::holds : Ruling::refuted,
                  fmt::format("{}, {}: {:.6g}, bound {:.6g}, of {} compared", holds ? "nearest to its bound" : "worst",
                              worst.what, worst.value, worst.bound, all.size())};
  if (!holds && all.size() > 1) finding.numbers += fmt::format("; {} beyond their bounds", broken);
  finding.compared.push_back(compared_of(worst.what, certain(worst.value), holds ? "holds" : "fails"));
  return finding;
}

Finding below_where(double bound, const std::vector<Region>& regions, const std::string& axis, double equal_within) {
  return found_where({bound, equal_within}, regions, axis, true);
}

Finding above_where(double bound, const std::vector<Region>& regions, const std::string& axis, double equal_within) {
  std::vector<Region> negatives = regions;
  for (Region& region : negatives) region.comparisons = negative(region.comparisons);
  return found_where({-bound, equal_within}, negatives, axis, false);
}

Finding values_of(const std::vector<Comparison>& comparisons, const std::vector<double>& thresholds) {
  if (comparisons.empty()) return nothing_measured;
  Finding finding{.ruling = Ruling::measured};
  std::vector<double> values;
  for (const Comparison& c : comparisons) {
    finding.compared.push_back(compared_of(c.what, c.estimate, ""));
    if (c.estimate.measured()) values.push_back(c.estimate.value);
  }
  if (values.empty()) return nothing_measured;
  if (comparisons.size() <= most_names) {
    std::vector<std::string> words;
    for (const Comparison& c : comparisons) words.push_back(named(c));
    finding.numbers = fmt::format("{}", fmt::join(words, "; "));
  } else {
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    finding.numbers = fmt::format("{:.3g} to {:.3g}, median {:.3g}, of {} settings", *least, *most, median(values),
                                  comparisons.size());
  }
  const auto count = [&](auto&& side) { return std::count_if(comparisons.begin(), comparisons.end(), side); };
  for (const double threshold : thresholds)
    finding.numbers +=
        fmt::format("; significantly below {:g}: {} of {}, above: {}", threshold,
                    count([&](const Comparison& c) { return c.estimate.below(threshold); }), comparisons.size(),
                    count([&](const Comparison& c) { return c.estimate.above(threshold); }));
  return finding;
}

std::vector<Verdict> agreed(const std::vector<std::vector<Verdict>>& by_seed) {
  std::vector<Verdict> all = by_seed.at(0);
  if (by_seed.size() == 1) return all;
  for (size_t i = 0; i < all.size(); ++i) {
    std::map<Ruling, std::vector<size_t>> seeds;
    for (size_t s = 0; s < by_seed.size(); ++s) seeds[by_seed[s].at(i).finding.ruling].push_back(s + 1);
    Finding& finding = all[i].finding;
    if (seeds.size() == 1) {
      finding.numbers += fmt::format("; the same with {} seeds", by_seed.size());
      continue;
    }
    std::vector<std::string> words;
    for (const auto& [ruling, which] : seeds)
      words.push_back(
          fmt::format("{} with seed{} {}", to_string(ruling), which.size() > 1 ? "s" : "", fmt::join(which, ", ")));
    finding.ruling = Ruling::open;
    finding.numbers = fmt::format("{}; with the first: {}", fmt::join(words, ", "), finding.numbers);
  }
  return all;
}

}  // namespace attnbench
