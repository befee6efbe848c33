// A statement with the numbers that it compares and the rule that judges them. Recipes in TOML and in C++ build the
// same. The recipe counts the numbers and divides the verdict's error rate among them, and the definition ends with the
// sizes and replicates that the cells have, so no text repeats either.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "harness/runner/cells.hpp"
#include "harness/runner/judge.hpp"

namespace attnbench {

// How samples become a number with an interval. Samples are replicates, or the blocks of turns where time is measured.
enum class Take {
  median,
  mean,          // each replicate is an average of many draws
  mean_of_logs,  // and its exponential: for ratios of estimates of positive expectations
  share,         // of the samples that are 1, where each is 0 or 1
  exact          // the only sample: nothing is drawn
};

struct Number {
  std::string what;                               // "m = 64, layer 2, head 0"
  std::function<Samples()> samples = {};          // read once the cells have run
  std::string region = {};                        // the part of the statement's settings that it belongs to
  std::optional<double> coordinate = {};          // the region's place on an axis
  std::optional<Take> take = {};                  // in place of the judgement's
  std::function<Samples()> bounds = {};           // at_most: of each sample, in place of the rule's bound
  std::function<Estimate(double)> estimate = {};  // at an error rate, in place of `take` and `samples`
};

struct Rule {
  enum class Kind { below, above, between, contains, at_most, report };

  Kind kind = Kind::report;
  double bound = 0;                     // between: the lower one
  double high = 0;                      // between: the upper one
  double resolution = 0;                // contains: no interval may be wider than +- this
  std::vector<double> thresholds = {};  // report: values that the reader may choose
  // below and above: the statement may hold in some regions only, which makes it DEPENDS.
  bool by_region = false;
  bool any = false;            // one number of a region is enough
  double equal_within = 1;     // see below_where
  std::string axis = {};       // what the regions' coordinates are
  bool measured_only = false;  // numbers without samples are left out and counted

  Rule where(std::string axis_of_regions = {}, double equal = 1) const;
};
Rule below(double bound);
Rule above(double bound);
Rule between(double low, double high);
Rule contains(double value, double resolution);
Rule at_most(double bound);  // every sample of every number; nothing is estimated
Rule report(std::vector<double> thresholds = {});

struct Judgement {
  Statement statement;
  Cells cells;  // whose sizes and replicates end the definition
  std::vector<Number> numbers;
  Rule rule;
  Take take = Take::median;
  bool by_code = false;                       // a NumbersFunction computes its numbers
  std::vector<Number> beside = {};            // reported at the same error rate and judged by nothing
  std::function<void(Finding&)> remark = {};  // may add to what the rule found
};

// The error rate of each of several intervals that share one. At an error rate of 1 (smoke sizes) intervals are the
// numbers themselves, and each has that rate.
double shared_rate(double error_rate, size_t intervals);

// The finding, with every interval at the verdict's error rate over the number of intervals.
Finding judged(const Judgement& judgement, double error_rate);

// "12 numbers in 3 regions; holds if all of a region lie, in every region, below 1": the rule as a person reads it.
std::string rule_in_words(const Judgement& judgement);

// "12 heads of the byte-level model (n = 512, d = 64, causal, 24 texts) and 6 of MiniLM (...)": what the definition
// ends with.
std::string settings_in_words(const Cells& cells);

// Numbers of C++ recipes: a metric of the only cell, and of one cell over another, replicate by replicate or, where
// time is measured, block by block.
Number number(std::string what, const Cells& one, const std::string& metric);
Number ratio(std::string what, const Cells& one, const Cells& other, const std::string& metric);
// Samples of one cell: replicates, or blocks of turns.
Samples samples_of(const Cells& one, const std::string& metric);

}  // namespace attnbench
