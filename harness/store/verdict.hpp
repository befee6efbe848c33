// Statements about the literature, and what a recipe's measurements say of them.
#pragma once

#include <string>
#include <vector>

namespace attnbench {

// measured: the source gives no threshold, so the value is reported and nothing is decided.
enum class Ruling { pass, fail, ambiguous, conditional, measured };
std::string to_string(Ruling ruling);

// One statement, as it is written down before anything runs.
struct Statement {
  std::string text;                // what is judged, one sentence
  std::string source = {};         // paper and section; empty: a finding of this project that no paper claims
  std::string quotation = {};      // the source's own words, verbatim
  std::string paraphrase = {};     // what the source says, where its words could not be verified
  std::string definition = {};     // which number of which measurement is compared with which
  std::string threshold = {};      // the bound and the reason for it
  Ruling expected = Ruling::pass;  // ambiguous: nothing is known beforehand
  std::string because = {};        // why that outcome is expected
};

// One of the numbers that a finding rests on.
struct Compared {
  std::string what;  // "layer 0, head 1"
  std::string side;  // "holds", "fails", "undecided" or, where nothing is decided, empty
  double value = 0, low = 0, high = 0;
  long count = 0;  // replicates or blocks of turns; 1: computed, nothing was drawn
};

struct Finding {
  Ruling ruling = Ruling::ambiguous;
  std::string numbers = {};             // what decided, in one sentence
  std::string region = {};              // where the statement holds and where it fails; empty: everywhere, or nowhere
  std::vector<Compared> compared = {};  // every comparison
};

struct Verdict {
  Statement statement;
  Finding finding;
};

// The verdict is decided, and not as expected.
bool contradicts_expectation(const Verdict& verdict);

}  // namespace attnbench
