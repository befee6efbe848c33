// Measures of rows: streamed against the whole matrix, memory, rows that are not distributions, retrieval, and Gaussian
// logits, whose entropy is known.
#include <algorithm>
#include <cmath>
#include <map>

#include "harness/errors/error.hpp"
#include "harness/experiment/experiment.hpp"
#include "harness/machine/peak_memory.hpp"
#include "harness/measures/attention_matrix.hpp"
#include "harness/measures/retrieval.hpp"
#include "harness/measures/sparsity.hpp"
#include "harness/runner/plan.hpp"
#include "tests/cases.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/measured.hpp"
#include "tests/misuse.hpp"
#include "tests/scores.hpp"

namespace attnbench::rows_test {

namespace {

using Row = std::vector<double>;

Cell cell_of(const std::string& experiment, const std::string& method, const std::string& input, const Shape& shape) {
  return double_cell(experiment, method, shape, input);
}

constexpr double tolerance = 1e-12;

}  // namespace

TEST_CASE("the mean over the root mean square is 1 for the uniform row and n^-1/2 for a one-hot one", "[unit]") {
  for (const size_t n : {1u, 2u, 9u, 1000u}) {
    const auto size = static_cast<double>(n);
    Row hot(n, 0.0);
    hot[n / 2] = -3;
    CHECK(std::abs(mean_over_rms(Row(n, 0.25)) - 1) < size * 1e-15);
    CHECK(std::abs(mean_over_rms(hot) - 1 / std::sqrt(size)) < 1e-15);
    CHECK(mean_over_rms(Row(n, 0.0)) == 0);
    if (n == 1) continue;
    // Hoyer's sparsity is the same number on another scale.
    const Row p{0.5, 0.25, 0.125, 0.125};
    CHECK(std::abs(hoyer(p) - 2 * (1 - mean_over_rms(p)) / (2 - 1)) < 1e-15);
  }
}

TEST_CASE("a row looks as far as its keys are away", "[unit]") {
  CHECK(attention_distance(Row{0, 0, 1, 0}, 2) == 0);
  CHECK(attention_distance(Row{0.5, 0, 0, 0.5}, 1) == 1.5);
  CHECK(attention_distance(Row{0.25, 0.25, 0.25, 0.25}, 0) == 1.5);
  CHECK(attention_distance(Row{1, 0}, 5) == 5);  // a query beyond the last key
}

TEST_CASE("the top keys are the lowest of equal ones, and none without weight", "[unit]") {
  CHECK(top_key(Row{0.1, 0.4, 0.4, 0.1}) == 1);
  CHECK(top_key(Row{0, 0}) == -1);
  CHECK(top_key(Row{-1, -2}) == -1);
  CHECK(top_keys(Row{0.2, 0.3, 0.3, 0.2}, 3) == std::vector<Index>{0, 1, 2});
  CHECK(top_keys(Row{0.2, 0, 0.8, -1}, 3) == std::vector<Index>{0, 2});
  CHECK(top_recall(Row{0.7, 0.1, 0.2}, Row{0.1, 0.2, 0.7}, 1) == 0);
  CHECK(top_recall(Row{0.7, 0.1, 0.2}, Row{0.1, 0.2, 0.7}, 2) == 0.5);
  CHECK(top_recall(Row{0.7, 0.1, 0.2}, Row{0.5, 0.5, 0}, 3) == 1);  // a row that sees two keys
  CHECK(top_recall(Row{0, 0, 0}, Row{0.5, 0.5, 0}, 3) == 0);
}

// 3000 keys make blocks of 174 rows.
TEST_CASE("rows measured in blocks are those of the whole matrix, for any number of threads", "[methods]") {
  const Shape all{.nq = 230, .nk = 3000, .d = 8, .dv = 3};
  for (const std::string spec : {"softmax", "linear", "performer:m=16", "local:window=9", "top-k:k=5", "vq:codes=8",
                                 "uniform", "linformer:r=8", "nystrom:landmarks=6"})
    for (const bool causal : {false, true}) {
      Shape shape = all;
      if (causal) shape.mask = {.causal = true, .offset = 2770};
      const Cell cell = cell_of("sparsity", spec, "gaussian", shape);
      if (!find<MethodEntry>(cell.method.name()).claims(cell.method, shape).no_form.empty()) continue;
      INFO(spec << (causal ? ", causal" : ""));
      const Measured streamed = measured(cell);
      CHECK(streamed.values == measured(cell, 0, 3).values);

      Context context;
      ExactCache exact;
      const auto method = Task{cell, 0, context, exact}.method<double>(0, 0);
      const auto head = draw_cell_head(cell, 0, 0, Purpose::measured);
      const Matrix<double> A = attention_matrix(*method, head.view(), shape.mask, context);
      size_t place = 0;
      double worst = 0, negative = 0;
      for (Index i = 0; i < shape.nq; ++i) {
        const std::span<const double> p(A.data() + i * shape.nk, static_cast<size_t>(shape.nk));
        const RowSparsity row = row_sparsity(p, i + shape.mask.offset, shape.mask.visible(i, shape.nk), 32, 0.1 / 3000);
        negative += row.kind == RowSparsity::Kind::negative;
        if (row.kind != RowSparsity::Kind::weights) continue;
        for (const auto& [name, value] : {std::pair{"entropy", row.entropy},
                                          {"inverse_participation", row.inverse_participation},
                                          {"top_mass", row.top_mass},
                                          {"sink_mass", row.sink_mass},
                                          {"gini", row.gini},
                                          {"attention_distance", row.attention_distance},
                                          {"hoyer", row.hoyer},
                                          {"mean_over_rms", row.mean_over_rms}})
          worst = std::max(worst, std::abs(streamed.values.at(name + std::string("_rows"))[place] - value) /
                                      std::max(1.0, std::abs(value)));
        CHECK(streamed.values.at("row_index")[place] == static_cast<double>(i));
        ++place;
      }
      CHECK(streamed["rows_with_negative_entries"] == negative / static_cast<double>(shape.nq));
      if (place > 0) CHECK(streamed.values.at("entropy_rows").size() == place);
      CHECK(worst < tolerance);
    }
  CHECK_THROWS_AS(measured(cell_of("sparsity", "linformer:r=8", "gaussian", {.nq = 2, .nk = 4097, .d = 4, .dv = 1})),
                  Skip);  // it gives no rows
}

TEST_CASE("rows of softmax at n = 65,536 take less than 64 MB beyond the inputs", "[methods]") {
  if (sanitized) return;
  const Shape shape{.nq = 128, .nk = 65536, .d = 64, .dv = 1};
  const Cell cell = cell_of("sparsity", "softmax", "gaussian", shape);
  CHECK(cell_bytes(cell) < 64e6 + 16.0 * 65536 * 130);
  const double inputs = 8.0 * static_cast<double>(shape.nq * shape.d + shape.nk * (shape.d + shape.dv));
  measured(cell_of("sparsity", "softmax", "gaussian", {.nq = 2, .nk = 8, .d = 4, .dv = 1}));
  for (const int threads : {1, 2}) {
    const auto taken = peak_bytes([&] { measured(cell, 0, threads); });
    if (!taken) return;  // a kernel that does not tell
    CHECK(*taken - inputs < 64e6);
    // Arrays of as many rows as keys, which this test has no time for.
    CHECK(*taken - inputs + 2 * 12 * 8.0 * 65536 < 64e6);
  }
}

TEST_CASE("rows that are no distribution are counted and left out", "[methods]") {
  const Shape shape{.nq = 40, .nk = 40, .d = 4, .dv = 2};
  const Measured zero = measured(cell_of("sparsity", "zero", "gaussian", shape));
  CHECK(zero["rows_with_zero_sum"] == 1);
  CHECK_FALSE(zero.values.contains("entropy"));
  CHECK_FALSE(zero.values.contains("hoyer"));

  Shape padded = shape;
  padded.mask.keys = 30;
  const Measured local = measured(cell_of("sparsity", "local:window=2", "gaussian", padded));
  CHECK(local["rows_with_zero_sum"] == 8.0 / 40);  // rows 32 to 39 see keys 30 and on alone
  CHECK(local.values.at("entropy_rows").size() == 32);

  const Measured trig = measured(cell_of("sparsity", "performer:features=trig,m=4", "gaussian:scale=3", shape));
  const double negative = trig["rows_with_negative_entries"];
  CHECK(negative > 0);
  REQUIRE(trig.notes.size() == 1);
  CHECK(contains(trig.notes[0], "negative entries"));
  if (negative < 1) CHECK(static_cast<double>(trig.values.at("row_index").size()) == std::round(40 * (1 - negative)));

  const Measured one = measured(cell_of("sparsity", "softmax", "gaussian", {.nq = 1, .nk = 1, .d = 4, .dv = 2}));
  CHECK(one["entropy"] == 0);
  CHECK(one["relative_entropy"] == 1);
  CHECK(one["effective_support"] == 1);
  CHECK(one["gini"] == 0);
  CHECK(one["hoyer"] == 0);
}

TEST_CASE("the first entry that is no number is named", "[methods]") {
  // Features are squares of entries of size 1e156: infinite, and no number once normalised.
  Cell cell = cell_of("sparsity", "polynomial", "gaussian:scale=1e6", {.nq = 9, .nk = 9, .d = 4, .dv = 2});
  cell.problem.logit_scale = 1e300;
  try {
    measured(cell, 0, 3);
    FAIL("not refused");
  } catch (const NumericallyInvalid& invalid) {
    CHECK(std::string(invalid.what()) == "attention matrix: not finite at row 0, column 0");
  }
}

TEST_CASE("a threshold below the rounding of the precision is refused with the floor", "[unit]") {
  RunRequest request{.experiment = "sparsity:threshold=1e-9", .methods = {"softmax"}, .inputs = {"gaussian"}, .n = {8}};
  CHECK(expand(request).size() == 1);  // in double
  request.precision = Precision::f32;
  CHECK(contains(misuse_of([&] { expand(request); }), "below the rounding floor of f32; expected at least 1.19e-07"));
  request.precision = Precision::f64;
  request.experiment = "sparsity:threshold=1e-17";
  CHECK(contains(misuse_of([&] { expand(request); }), "rounding floor of f64; expected at least 2.22e-16"));
  const Shape shape{.nq = 20, .nk = 20, .d = 4, .dv = 1};
  CHECK(measured(cell_of("sparsity:threshold=0.06", "uniform", "gaussian", shape))["fraction_below"] == 1);
  CHECK(measured(cell_of("sparsity:threshold=0.04", "uniform", "gaussian", shape))["fraction_below"] == 0);
}

TEST_CASE("an attention map is the matrix and its difference, and no larger than a page shows", "[methods]") {
  const Shape shape{.nq = 7, .nk = 9, .d = 4, .dv = 2};
  const Measured exact = measured(cell_of("attention-map", "softmax", "gaussian", shape));
  const Measured uniform = measured(cell_of("attention-map", "uniform", "gaussian", shape));
  REQUIRE(uniform.values.at("attention").size() == 63);
  for (size_t e = 0; e < 63; ++e) {
    CHECK(std::abs(exact.values.at("difference")[e]) < 1e-15);
    CHECK(std::abs(uniform.values.at("difference")[e] - (1.0 / 9 - exact.values.at("attention")[e])) < 1e-15);
  }
  const RunRequest request{.experiment = "attention-map", .methods = {"softmax"}, .inputs = {"gaussian"}, .n = {257}};
  CHECK(contains(misuse_of([&] { expand(request); }), "expected at most 256"));
}

TEST_CASE("needles are found where the weights are, and their share is known for some patterns", "[methods]") {
  const Shape shape{.nq = 60, .nk = 60, .d = 64, .dv = 2, .mask = {.causal = true}};
  const auto find_needles = [&](const std::string& method) {
    return measured(cell_of("attention-error:top=4", method, "needle:strength=30", shape));
  };
  const auto needles = needles_of(cell_of("attention-error", "softmax", "needle:strength=30", shape), 0);
  double own = 0, first = 0;
  for (Index i = 0; i < 60; ++i) {
    own += needles[static_cast<size_t>(i)] == i;
    first += needles[static_cast<size_t>(i)] == 0;
  }
  const Measured softmax = find_needles("softmax"), self = find_needles("local:window=0"),
                 uniform = find_needles("uniform");
  CHECK(softmax["needle_found"] == 1);
  CHECK(softmax["needle_weight"] > 0.99);
  CHECK(softmax["top_agreement"] == 1);
  CHECK(softmax["top_recall"] == 1);
  CHECK(std::abs(self["needle_found"] - own / 60) < tolerance);
  CHECK(std::abs(self["needle_weight"] - own / 60) < tolerance);
  CHECK(std::abs(uniform["needle_found"] - first / 60) < tolerance);  // the first of equal weights
  CHECK(find_needles("top-k:k=4")["top_recall"] == 1);
  const Cell another = cell_of("attention-error:top=4", "softmax", "needle:strength=30", shape);
  CHECK(needles_of(another, 1) != needles);
  CHECK(measured(another, 1)["needle_found"] == 1);  // each replicate has needles of its own
  CHECK(needles_of(cell_of("attention-error", "softmax", "gaussian", shape), 0).empty());
  CHECK_FALSE(measured(cell_of("attention-error", "softmax", "gaussian", shape)).values.contains("needle_found"));
}

TEST_CASE("attention-error draws its method once a replicate and in the cell's precision alone", "[methods]") {
  const MethodEntry original = find<MethodEntry>("performer");
  const auto files = catalogue("methods").source_files("performer");
  int in_float = 0, in_double = 0;
  MethodEntry counting = original;
  counting.f32 = [&](const Draw& draw) { return ++in_float, original.f32(draw); };
  counting.f64 = [&](const Draw& draw) { return ++in_double, original.f64(draw); };
  Registry<MethodEntry>::instance().replace(counting, files);
  const Shape shape{.nq = 12, .nk = 12, .d = 4, .dv = 2};
  for (const std::string experiment : {"attention-error", "attention-error:matrix=false"})
    for (const Precision precision : {Precision::f32, Precision::f64}) {
      Cell cell = cell_of(experiment, "performer:features=trig,m=4", "gaussian:scale=3", shape);
      cell.problem.shape.precision = precision;
      in_float = in_double = 0;
      const Measured found = measured(cell);
      CHECK(found.values.contains("fraction_nonpositive_normalisers"));
      CHECK(in_float == (precision == Precision::f32 ? 1 : 0));
      CHECK(in_double == (precision == Precision::f64 ? 1 : 0));
    }
  Registry<MethodEntry>::instance().replace(original, files);
}

TEST_CASE("divergences of rows are stored whole, infinite ones as such", "[methods]") {
  const Shape shape{.nq = 30, .nk = 30, .d = 4, .dv = 2};
  const Measured local = measured(cell_of("attention-error", "local:window=3", "gaussian", shape));
  for (const char* name : {"row_l1_rows", "kl_exact_to_estimate_rows", "kl_estimate_to_exact_rows", "kl_row_index"})
    CHECK(local.values.at(name).size() == 30);
  CHECK(local["kl_exact_to_estimate_infinite"] == 1);
  const auto& infinite = local.values.at("kl_exact_to_estimate_rows");
  CHECK(std::all_of(infinite.begin(), infinite.end(), [](double kl) { return std::isinf(kl); }));
  CHECK(local.notes.empty());
  const Measured trig = measured(cell_of("attention-error", "performer:features=trig,m=4", "gaussian:scale=3", shape));
  CHECK(trig["kl_exact_to_estimate_undefined"] > 0);
  REQUIRE(trig.notes.size() == 1);
  CHECK(contains(trig.notes[0], "no KL divergence"));
  for (size_t i = 0; i < 30; ++i) {  // a mask that keeps the mass p: L1 = 2 (1 - p), KL = -log p
    const double l1 = local.values.at("row_l1_rows")[i], kl = local.values.at("kl_estimate_to_exact_rows")[i];
    CHECK(std::abs(l1 - 2 * (1 - std::exp(-kl))) < tolerance);
    CHECK(l1 <= std::sqrt(2 * kl) + tolerance);  // Pinsker
  }
}

namespace {

// One row of a Gaussian head a replicate, as the experiments measure it: given q its logits are N(0, s^2) with
// s = scale |q| d^-1/4 (q as it is scaled), and in the limit of many keys exp(H)/n = exp(-s^2/2),
// 1/(n sum p^2) = exp(-s^2), and the relative error of the uniform row sqrt(1 - exp(-s^2)).  methods.md I, J 59
// At n = 2048 and s^2 of 0.24 the bias, of order 1/n, is a fifth of a standard error of 60 replicates. stretch: a bug,
// s as it would be were the scale wrong by that factor.
Scores gaussian_limits(double stretch, std::uint64_t seed) {
  constexpr double scale = 0.7;
  constexpr Index d = 16;
  const Shape shape{.nq = 1, .nk = 2048, .d = d, .dv = 1};
  Moments entropy, participation, baseline;
  for (Index replicate = 0; replicate < 60; ++replicate) {
    Cell rows = cell_of("sparsity", "softmax", "gaussian:scale=0.7", shape),
         errors = cell_of("attention-error", "uniform", "gaussian:scale=0.7", shape);
    rows.seed = errors.seed = seed;
    const double s = stretch * scale * draw_cell_head(rows, replicate, 0, Purpose::measured).Q.norm() /
                     std::pow(static_cast<double>(d), 0.25);
    const Measured row = measured(rows, replicate);
    entropy.add(row["entropy"] - std::log(2048.0) + s * s / 2);
    participation.add(row["inverse_participation"] / 2048 - std::exp(-s * s));
    baseline.add(measured(errors, replicate)["relative_frobenius"] - std::sqrt(1 - std::exp(-s * s)));
  }
  return {{"entropy", score(entropy, 0)}, {"participation", score(participation, 0)}, {"uniform", score(baseline, 0)}};
}

}  // namespace

// One family at an error rate of 1e-3 over the base seeds. Power: a scale that is wrong by a tenth changes s^2/2 by a
// fifth of it, more than ten standard errors.
TEST_CASE("Gaussian logits have the entropy, the participation and the distance to uniform that are known",
          "[statistics]") {
  Scores family;
  for (const auto seed : base_seeds) append(family, gaussian_limits(1, seed));
  check_family(family);
  for (const Score& planted : gaussian_limits(1.1, base_seeds[0]))
    check_found("scale 1.1", {planted}, threshold(family));
}

TEST_CASE("errors are relative to what is exact: that of nothing is 1", "[methods]") {
  const Shape shape{.nq = 30, .nk = 40, .d = 4, .dv = 3};
  for (const std::string option : {"true", "false"}) {
    const Measured none = measured(cell_of("attention-error:matrix=" + option, "zero", "gaussian", shape));
    CHECK(none["relative_output_error"] == 1);
    if (option == "true") CHECK(none["relative_frobenius"] == 1);
  }
  // One key alone has all of the weight; the mean of V over two, of which one is 0, is half of it.
  const Measured alone =
      measured(cell_of("attention-error", "uniform", "gaussian", {.nq = 5, .nk = 1, .d = 4, .dv = 3}));
  CHECK(alone["relative_output_error"] == 0);
}

TEST_CASE("arrays of rows, pairs and singular values are left out on request, and nothing else", "[methods]") {
  const Shape shape{.nq = 30, .nk = 30, .d = 4, .dv = 2};
  for (const auto& [experiment, option] : {std::pair{"sparsity:", "by_row"},
                                           {"attention-error:", "by_row"},
                                           {"rank:", "by_index"},
                                           {"kernel-error:draws=64,pairs=4,", "by_pair"}}) {
    const std::string spec = std::string(experiment) + option;
    INFO(spec);
    const auto with = [&](const char* value) {
      return measured(cell_of(spec + "=" + value, "performer:m=4", "gaussian", shape));
    };
    const Measured whole = with("true"), means = with("false");
    CHECK(means.values.size() < whole.values.size());
    for (const auto& [metric, values] : whole.values) {
      INFO(metric);
      REQUIRE(means.values.contains(metric) == (values.size() == 1));
      if (values.size() == 1) CHECK(means.values.at(metric) == values);
    }
  }
}

}  // namespace attnbench::rows_test
