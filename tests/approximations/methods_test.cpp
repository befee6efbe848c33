// The conformance suite over every registered method, in every variant: its transcription (tests/oracle), and every
// claim that `check` tests (harness/claims), on heads and masks that a user would not wait for.
//
// The bound in double is that of the claims, double_tolerance (harness/claims/drawing.hpp).
#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "harness/claims/structural.hpp"
#include "harness/core/feature_map.hpp"
#include "harness/linalg/lapack.hpp"
#include "harness/linalg/rounding.hpp"
#include "harness/measures/attention_matrix.hpp"
#include "tests/cases.hpp"
#include "tests/catch.hpp"
#include "tests/oracle/oracle.hpp"

namespace attnbench::methods_test {

namespace {

constexpr double tolerance = double_tolerance;

const StructuralClaim& claim_called(const std::string& name) {
  const auto& claims = structural_claims();
  const auto claim = std::find_if(claims.begin(), claims.end(), [&](const auto& one) { return one.name == name; });
  REQUIRE(claim != claims.end());
  return *claim;
}

// Tests a claim for every variant, problem and mask. Returns the number of cases in which it was tested.
size_t holds_everywhere(const std::string& name) {
  const StructuralClaim& claim = claim_called(name);
  size_t tested = 0;
  for_each_case([&](const Case& one) {
    INFO(to_string(one));
    const Subject subject = subject_of(one.params);
    for (const Result& result : claim.test(subject, {{one.shape, one.problem.head}}, test_seed)) {
      INFO(result.tested << ": " << result.deviation << ", at most " << result.limit << "; " << result.reason);
      CHECK(result.outcome != Outcome::fail);
      tested += result.outcome == Outcome::pass;
    }
  });
  return tested;
}

// The same for claims that choose their own sizes, once for every variant.
size_t holds_for_all_variants(const std::string& name, bool small_budgets) {
  const StructuralClaim& claim = claim_called(name);
  size_t tested = 0;
  const TestHead problem = gaussian_problem({.nq = 140, .nk = 140, .d = 8, .dv = 5}, 0.8);
  for (const Params& variant : all_variants()) {
    const Subject subject = subject_of(small_budgets ? with_small_budgets(variant, problem.shape) : variant);
    INFO(subject.params.spec());
    Probes probes{{problem.shape, problem.head}};
    probes[0].shape.mask.causal = !subject.claims(subject.params, problem.shape).no_form.empty();
    for (const Result& result : claim.test(subject, probes, test_seed)) {
      INFO(result.tested << ": " << result.deviation << ", at most " << result.limit << "; " << result.reason);
      CHECK(result.outcome != Outcome::fail);
      tested += result.outcome == Outcome::pass;
      // A user's count may be rough; ours are the leading terms of what is counted.
      if (result.tested.starts_with("FLOPs") && result.tested.find("causal") == std::string::npos &&
          find<MethodEntry>(variant.name()).text.family != "sparse")
        CHECK(result.deviation < 1.3);
    }
  }
  return tested;
}

// |G| |G^-1| of a map's linear transform of its inputs: what rounding may do to G^-T, relative to itself. 1 without
// one.
double transform_condition(const Tensors& state) {
  for (const char* name : {"G", "transform"})
    if (const auto found = state.find(name); found != state.end()) {
      const auto sigma = singular_values(found->second);
      return sigma.front() / sigma.back();
    }
  return 1;
}

}  // namespace

TEST_CASE("every registered method has a transcription", "[methods][every-method]") {
  for (const auto& name : catalogue("methods").names()) {
    INFO("'" << name << "' has none: write it as plain loops in a file of tests/oracle/");
    CHECK(oracle::transcribes(name));
  }
}

TEST_CASE("feature maps without a transcription are covered by their claims only", "[methods][every-method]") {
  std::set<std::string> unknown;
  for (const Params& params : all_variants())
    if (const auto features = oracle::unknown_features(params)) unknown.insert(*features);
  for (const auto& name : unknown)
    WARN("features=" << name << " has no transcription: name its weights in the tables of tests/oracle/linear.cpp");
}

TEST_CASE("every method agrees with its transcription, at moderate logits and at logits of 50", "[second-paths]") {
  const auto compare = [](const Case& one) {
    INFO(to_string(one));
    if (oracle::unknown_features(one.params)) return;
    const auto method = one.draw<double>();
    const auto& head = one.problem.head;
    const auto want = oracle::attention(one.params, method->state(), head, one.shape.mask);
    CHECK(worst_error(attend(*method, head, one.shape.mask), want.out, want.condition, size_of(head.V)) < tolerance);
  };
  for_each_case([&](const Case& one) {
    if (oracle::transcribes(one.params.name())) compare(one);
  });
  const TestHead large = problem_with_logits({.nq = 70, .nk = 70, .d = 16, .dv = 3}, 50);
  for (const Params& variant : all_variants())
    for (const Mask& mask : masks(large.shape)) {
      Shape shape = large.shape;
      shape.mask = mask;
      const Params params = with_small_budgets(variant, shape);
      const Claims claims = find<MethodEntry>(params.name()).claims(params, shape);
      if (oracle::transcribes(params.name()) && claims.no_form.empty()) compare({params, claims, shape, large});
    }
}

TEST_CASE("kernel estimates are the transcription's weights, scale included", "[second-paths]") {
  for_each_case([](const Case& one) {
    if (one.shape.mask != Mask{} || !oracle::transcribes(one.params.name()) || oracle::unknown_features(one.params))
      return;
    INFO(to_string(one));
    const auto method = one.draw<double>();
    const auto& head = one.problem.head;
    if (!method->kernel()) return;
    const auto want = oracle::kernel(one.params, method->state(), head);
    REQUIRE(want);
    Matrix<double> K(one.shape.nq, one.shape.nk);
    std::vector<double> log_rows(static_cast<size_t>(one.shape.nq)), log_columns(static_cast<size_t>(one.shape.nk));
    Context context;
    method->kernel()->kernel(head.view(), context, K, log_rows, log_columns);
    const double transform = transform_condition(method->state());
    double worst = 0;
    for (Index i = 0; i < K.rows(); ++i)
      for (Index j = 0; j < K.cols(); ++j) {
        const double log_row = log_rows[static_cast<size_t>(i)], log_column = log_columns[static_cast<size_t>(j)];
        const double weight = K(i, j) * std::exp(log_row + log_column - want->log(i, j));
        // A transform fitted to a single token moves others far away: exponents beyond the 50 of the tolerance round in
        // proportion.
        const double exponent = std::max(1.0, transform * (std::abs(log_row) + std::abs(log_column)) / 50);
        const double difference = std::abs(weight - want->weight(i, j));
        if (difference == 0) continue;  // as is the magnitude where no feature is there
        const double error = difference / (want->magnitude(i, j) * exponent);
        if (!(error <= worst)) worst = std::isnan(error) ? INFINITY : error;
      }
    CHECK(worst < tolerance);
  });
}

TEST_CASE("kernel, rows and factors are second paths to what attend computes", "[second-paths]") {
  CHECK((holds_everywhere("second-paths") > 1000 || !all_are_tested()));
}

TEST_CASE("a method refuses to factor a causal matrix", "[methods][every-method]") {
  for_each_case([](const Case& one) {
    const auto method = one.draw<double>();
    if (!method->factored() || !one.shape.mask.causal) return;
    INFO(to_string(one));
    Matrix<double> L, R;
    Context context;
    CHECK_THROWS_AS(method->factored()->factors(one.problem.head.view(), one.shape.mask, context, L, R), Skip);
  });
}

// Each name is that of the claim; the words say what a failure means.
TEST_CASE("claim pattern: a sparse method gives weight to the keys of its pattern and to no others",
          "[methods][every-method]") {
  CHECK((holds_everywhere("pattern") > 0 || !all_are_tested()));
}

TEST_CASE("claim precision: float agrees with double as far as float's rounding allows",
          "[methods][every-method][numbers]") {
  CHECK((holds_everywhere("precision") > 0 || !all_are_tested()));
}

TEST_CASE("claim repeatable: threads and repetition change no bit", "[methods][every-method]") {
  CHECK((holds_everywhere("repeatable") > 0 || !all_are_tested()));
}

TEST_CASE("claim inputs-kept: inputs stay as they are", "[methods][every-method]") {
  CHECK((holds_everywhere("inputs-kept") > 0 || !all_are_tested()));
}

// Rounded sums depend on their order, which threads must not change.
TEST_CASE("threads change no bit in emulated half precision", "[methods][every-method]") {
  const TestHead problem = gaussian_problem({.nq = 200, .nk = 200, .d = 8, .dv = 5}, 0.8);
  for (const Params& variant : all_variants())
    for (const bool causal : {false, true}) {
      Shape shape = problem.shape;
      shape.mask.causal = causal;
      const Params params = with_small_budgets(variant, shape);
      const Claims claims = find<MethodEntry>(params.name()).claims(params, shape);
      if (!claims.no_form.empty()) continue;
      const Case one{params, claims, shape, problem};
      const auto method = one.draw<double>();
      for (const Rounding rounding : {Rounding::f16, Rounding::bf16}) {
        INFO(to_string(one) << ", " << attnbench::to_string(rounding));
        const auto attended = [&](int threads) {
          Matrix<double> out(shape.nq, shape.dv);
          Context context(threads, rounding);
          method->attend(problem.head.view(), shape.mask, context, out);
          return out;
        };
        CHECK(identical(attended(3), attended(1)));
      }
    }
}

TEST_CASE("claim draws: whatever is drawn is drawn anew for every seed, head and replicate",
          "[methods][every-method]") {
  CHECK((holds_for_all_variants("draws", true) > 100 || !all_are_tested()));
}

TEST_CASE("claim state: a state given back makes the same instance", "[methods][every-method]") {
  CHECK((holds_everywhere("state") > 0 || !all_are_tested()));
}

TEST_CASE("claim views: views into larger memory are read and written in place", "[methods][every-method]") {
  CHECK((holds_everywhere("views") > 0 || !all_are_tested()));
}

TEST_CASE("claim padding: padded keys and values change no bit", "[methods][every-method]") {
  CHECK((holds_everywhere("padding") > 0 || !all_are_tested()));
}

TEST_CASE("claim empty-rows: rows that see no key are zero", "[methods][every-method]") {
  CHECK((holds_everywhere("empty-rows") > 0 || !all_are_tested()));
}

TEST_CASE("claim row-sums: rows sum to one where rows are claimed to be stochastic",
          "[methods][every-method][numbers]") {
  CHECK((holds_everywhere("row-sums") > 0 || !all_are_tested()));
}

TEST_CASE("claim non-negative: no entry of the attention matrix is negative where that is claimed",
          "[methods][every-method][numbers]") {
  CHECK((holds_everywhere("non-negative") > 0 || !all_are_tested()));
}

TEST_CASE("claim permutation: reordering keys with their values changes nothing where that is claimed",
          "[methods][every-method][numbers]") {
  CHECK((holds_everywhere("permutation") > 0 || !all_are_tested()));
}

TEST_CASE("claim causal: with a causal mask no token moves the rows before it, by not one bit",
          "[methods][every-method]") {
  CHECK((holds_everywhere("causal") > 0 || !all_are_tested()));
}

TEST_CASE("claim decoder: a prompt and then step after step are the rows of causal attention",
          "[methods][every-method]") {
  CHECK((holds_everywhere("decoder") > 0 || !all_are_tested()));
}

TEST_CASE("claim gradients: they are the central differences of attend", "[methods][every-method]") {
  CHECK((holds_everywhere("gradients") > 0 || !all_are_tested()));
}

TEST_CASE("claim exact-when: a method is exact when it says that it is", "[methods][every-method]") {
  CHECK((holds_everywhere("exact-when") > 0 || !all_are_tested()));
}

TEST_CASE("claim linear: methods are linear in V where that is claimed", "[methods][every-method][numbers]") {
  CHECK((holds_everywhere("linear") > 0 || !all_are_tested()));
}

TEST_CASE("claim equal-keys: rows of equal keys are the means of their values", "[methods][every-method][numbers]") {
  CHECK((holds_everywhere("equal-keys") > 0 || !all_are_tested()));
}

TEST_CASE("claim rank: the rank of the attention matrix is at most the claimed", "[methods][every-method][numbers]") {
  CHECK((holds_for_all_variants("rank", true) > 0 || !all_are_tested()));
}

TEST_CASE("claims geometry and nested: ensembles have their angles, and fewer vectors are the first of more",
          "[methods][every-method]") {
  CHECK((holds_for_all_variants("geometry", false) > 0 || !all_are_tested()));
  CHECK((holds_for_all_variants("nested", false) > 0 || !all_are_tested()));
}

TEST_CASE("claims work and budget: the work counted in attend is what the entry's cost says",
          "[methods][every-method][numbers]") {
  CHECK((holds_for_all_variants("work", false) > 0 || !all_are_tested()));
  CHECK((holds_for_all_variants("budget", false) > 0 || !all_are_tested()));
}

TEST_CASE("claim memory: a call takes the memory that the entry says", "[methods][every-method]") {
  if (sanitized) return;  // shadow memory, and memory that is kept after it was freed, counts as the program's
  CHECK((holds_for_all_variants("memory", false) > 0 || !all_are_tested()));
}

TEST_CASE(
    "claims finite, lengths, threads, effect, differs and state-bytes: no method does nothing, or fails at the ends",
    "[methods][every-method][numbers]") {
  size_t tested = 0;
  for (const Params& variant : all_variants()) {
    if (variant.spec() != variant.name())
      continue;  // lengths and effect take other values of each parameter themselves
    const Subject subject = subject_of(variant);
    const Probes probes = probes_of(subject, test_seed);
    for (const char* name : {"finite", "lengths", "threads", "effect", "differs", "state-bytes"})
      for (const Result& result : claim_called(name).test(subject, probes, test_seed)) {
        INFO(variant.spec() << ": " << name << ", " << result.tested << ": " << result.deviation << ", at most "
                            << result.limit << "; " << result.reason);
        CHECK(result.outcome != Outcome::fail);
        tested += result.outcome == Outcome::pass;
      }
  }
  CHECK((tested > 1000 || !all_are_tested()));
}

TEST_CASE("a method without a form for a mask is skipped with its reason", "[methods][every-method]") {
  for (const Params& variant : all_variants())
    for (const bool causal : {false, true}) {
      const TestHead& problem = problems()[2];
      Shape shape = problem.shape;
      shape.mask.causal = causal;
      const Params params = with_small_budgets(variant, shape);
      const std::string reason = find<MethodEntry>(params.name()).claims(params, shape).no_form;
      INFO(params.spec());
      if (reason.empty())
        CHECK_NOTHROW(draw_method<double>(params, shape, problem));
      else
        CHECK_THROWS_WITH(draw_method<double>(params, shape, problem),
                          ContainsSubstring(reason) && ContainsSubstring(causal ? "no causal" : "no bidirectional"));
    }
}

}  // namespace attnbench::methods_test
