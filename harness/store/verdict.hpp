// Statements about the literature, and the findings of a recipe's measurements about them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attnbench {

// measured: the source gives no threshold, so the value is reported and nothing is decided.
// open: the intervals do not decide. depends: it holds in some settings only. not_seen: it fails in a setting other
// than that of its source, which refutes no source.
enum class Ruling { holds, refuted, not_seen, open, depends, measured };
std::string to_string(Ruling ruling);
// The ruling that to_string writes like that; nothing for another text.
std::optional<Ruling> ruling_named(std::string_view name);
// "HOLDS, REFUTED, ... or MEASURED": all of them.
std::string all_rulings();

// paper: a claim of a source. own: a finding of this project. code: an identity or bound that tests this code, though a
// source may state it.
enum class StatementKind { paper, own, code };
std::string to_string(StatementKind kind);

// A statement, as written down before anything runs.
struct Statement {
  std::string text;                 // the claim that is judged, in one sentence
  std::string source = {};          // paper and section; empty: a finding of this project that no paper claims
  std::string quotation = {};       // the source's own words, verbatim
  std::string paraphrase = {};      // the source's meaning, if its words could not be verified
  std::string definition = {};      // which number of which measurement is compared with which
  std::string threshold = {};       // the bound and the reason for it
  Ruling expected = Ruling::holds;  // open: nothing is known in advance
  std::string because = {};         // why that outcome is expected
  std::string setting = {};         // how the setting departs from the source's, where it cannot refute the source
  bool conformance = false;         // an identity, or a bound that holds by construction

  StatementKind kind() const {
    return conformance ? StatementKind::code : source.empty() ? StatementKind::own : StatementKind::paper;
  }
};

// One of the numbers that a finding is based on.
struct Compared {
  std::string what;  // "layer 0, head 1"
  std::string side;  // "holds", "fails", "undecided"; empty if nothing is decided
  double value = 0, low = 0, high = 0;
  long count = 0;  // replicates or blocks of turns; 1: computed without any draw
};

struct Finding {
  Ruling ruling = Ruling::open;
  std::string numbers = {};             // the numbers that decided, in one sentence
  std::string region = {};              // where the statement holds and where it fails; empty: the same everywhere
  std::vector<Compared> compared = {};  // every comparison
};

struct Verdict {
  Statement statement;
  Finding finding;
};

// Whether the verdict is decided, and not as expected.
bool contradicts_expectation(const Verdict& verdict);

// One recipe, run and judged.
struct Reproduction {
  std::string recipe;
  std::string size;                // "smoke", "quick" or "full"
  std::string command;             // the command that reruns this recipe alone
  double seconds = 0;              // spent on running what was missing and on judging
  std::vector<std::string> cells;  // keys of the cells that it was judged by
  std::vector<Verdict> verdicts;
};

}  // namespace attnbench
