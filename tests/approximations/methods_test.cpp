// The conformance suite: every registered method, in every variant, against its transcription, against the second paths
// that it offers, and against each claim that it makes.
//
// The tolerance in double is 1e-12 times the size of V and the row's condition (1 without negative entries). Rounding
// gives less: a weight exp(L) with exponents up to 50 carries 50 eps and a few eps more for a dot product over d <= 16,
// about 2e-14, and sums over up to 2500 keys add at most 2500 eps = 6e-13.
#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "harness/core/feature_map.hpp"
#include "harness/linalg/lapack.hpp"
#include "harness/linalg/rounding.hpp"
#include "harness/measures/attention_matrix.hpp"
#include "tests/cases.hpp"
#include "tests/catch.hpp"
#include "tests/oracle/oracle.hpp"

using namespace attnbench;

namespace {

constexpr double tolerance = 1e-12;

double size_of(const Matrix<double>& V) { return std::max(1.0, V.cwiseAbs().maxCoeff()); }

// Rows of an out made from V = 1: the row sums. The largest deviation from 1 (0 where the row sees nothing).
// A pattern may leave a row empty although the mask leaves it keys: where it says so itself, or without one where the
// transcription has no weight either.
double worst_row_sum(const Case& one, const Matrix<double>& sums, const std::vector<double>& condition,
                     const Approximation<double>& method) {
  double worst = 0;
  std::optional<oracle::Answer> answer;
  const auto empty_in_pattern = [&](Index i) {
    if (method.pattern()) {
      std::vector<Index> keys;
      Context context;
      method.pattern()->keys_of_rows(one.problem.head.view(), one.shape.mask, i, context, {&keys, 1});
      return keys.empty();
    }
    if (!answer) answer = oracle::attention(one.params, method.state(), one.problem.head, one.shape.mask);
    return (answer->A.row(i).array() == 0).all();
  };
  for (Index i = 0; i < sums.rows(); ++i)
    for (Index l = 0; l < sums.cols(); ++l) {
      const double sum = sums(i, l);
      const bool empty = one.shape.mask.visible(i, one.shape.nk) == 0;
      if (sum == 0 && (empty || empty_in_pattern(i))) continue;
      const double error = std::abs(sum - (empty ? 0 : 1)) / condition[static_cast<size_t>(i)];
      if (!(error <= worst)) worst = std::isnan(error) ? INFINITY : error;
    }
  return worst;
}

Matrix<double> reordered_keys(const Matrix<double>& X, Index visible) {
  std::vector<Index> order(static_cast<size_t>(X.rows()));
  for (size_t j = 0; j < order.size(); ++j) order[j] = static_cast<Index>(j);
  Generator generator(test_seed);
  std::shuffle(order.begin(), order.begin() + visible, generator);
  Matrix<double> Y(X.rows(), X.cols());
  for (Index j = 0; j < X.rows(); ++j) Y.row(j) = X.row(order[static_cast<size_t>(j)]);
  return Y;
}

double error_after_reordering(const Case& one, const Approximation<double>& method) {
  const auto& head = one.problem.head;
  const Index visible = one.shape.mask.visible(0, one.shape.nk);
  const HeadData<double> other{head.Q, reordered_keys(head.K, visible), reordered_keys(head.V, visible)};
  return worst_error(attend(method, other, one.shape.mask), attend(method, head, one.shape.mask),
                     row_conditions(one, method), size_of(head.V));
}

// A row-normalised block of a kernel under the mask.
Matrix<double> normalised(const Matrix<double>& block, const std::vector<double>& log_columns, Mask mask) {
  Matrix<double> A = Matrix<double>::Zero(block.rows(), block.cols());
  for (Index i = 0; i < block.rows(); ++i) {
    const Index seen = mask.visible(i, block.cols());
    if (seen == 0) continue;
    const double largest = *std::max_element(log_columns.begin(), log_columns.begin() + seen);
    for (Index j = 0; j < seen; ++j) A(i, j) = block(i, j) * std::exp(log_columns[static_cast<size_t>(j)] - largest);
    const double sum = A.row(i).sum();
    A.row(i) /= sum == 0 ? INFINITY : sum;  // a row without weight is 0
  }
  return A;
}

// Rows of A in ragged blocks, so that `first` matters.
Matrix<double> all_rows(const Rows<double>& rows_of, const HeadData<double>& head, Mask mask) {
  Matrix<double> A = Matrix<double>::Constant(head.Q.rows(), head.K.rows(), NAN);
  Context context;
  for (Index first = 0; first < A.rows(); first += 37)
    rows_of.attention_rows(head.view(), mask, first, context,
                           row_block(A, first, std::min<Index>(37, A.rows() - first)));
  return A;
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

// What rounding may do in float to a weight relative to itself: its exponents, of magnitude up to L, are dot products
// of length d, each off by d eps of the product of the norms; then the sums over features and nk keys, in numerator and
// normaliser.
double float_rounding(const Case& one, const Tensors& state) {
  const auto& head = one.problem.head;
  const double q = head.Q.rowwise().norm().maxCoeff(), k = head.K.rowwise().norm().maxCoeff();
  double L = q * k;
  if (const auto W = state.find("projection"); W != state.end())
    L = W->second.rowwise().norm().maxCoeff() * (q + k) + (q * q + k * k) / 2;
  // Linformer's keys are sums over the sequence: |E k| is at most the norm of E times that of all of K.
  if (const auto E = state.find("E"); E != state.end()) L = q * E->second.rowwise().norm().maxCoeff() * head.K.norm();
  Index features = 64;
  if (one.params.has("features")) features = feature_map_entry(one.params).features(one.params, one.shape.d);
  return 2 * (static_cast<double>(one.shape.d) * L + static_cast<double>(features + one.shape.nk)) *
         static_cast<double>(std::numeric_limits<float>::epsilon());
}

}  // namespace

TEST_CASE("every registered method has a transcription", "[methods]") {
  for (const auto& name : catalogue("methods").names()) {
    INFO("'" << name << "' has none: write it as plain loops in a file of tests/oracle/");
    CHECK(oracle::transcribes(name));
  }
}

TEST_CASE("feature maps without a transcription are covered by their claims only", "[methods]") {
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
  for_each_case([](const Case& one) {
    INFO(to_string(one));
    const auto method = one.draw<double>();
    const auto& head = one.problem.head;
    const Mask mask = one.shape.mask;
    const Matrix<double> out = attend(*method, head, mask);
    const auto condition = row_conditions(one, *method);
    const double size = size_of(head.V);
    Context context;
    if (const auto* kernel = method->kernel()) {
      Matrix<double> block(one.shape.nq, one.shape.nk);
      std::vector<double> log_rows(static_cast<size_t>(one.shape.nq)), log_columns(static_cast<size_t>(one.shape.nk));
      kernel->kernel(head.view(), context, block, log_rows, log_columns);
      CHECK(std::all_of(log_rows.begin(), log_rows.end(), [](double s) { return std::isfinite(s); }));
      CHECK(worst_error(normalised(block, log_columns, mask) * head.V, out, condition, size) < tolerance);
    }
    if (const auto* rows_of = method->rows())
      CHECK(worst_error(all_rows(*rows_of, head, mask) * head.V, out, condition, size) < tolerance);
    if (const auto* factored = method->factored()) {
      Matrix<double> L, R;
      if (mask.causal)
        CHECK_THROWS_AS(factored->factors(head.view(), mask, context, L, R), Skip);
      else {
        factored->factors(head.view(), mask, context, L, R);
        CHECK(worst_error(L * (R.transpose() * head.V), out, condition, size) < tolerance);
      }
    }
  });
}

TEST_CASE("a sparse method gives weight to the keys of its pattern and to no others", "[methods]") {
  size_t tested = 0;
  for_each_case([&](const Case& one) {
    const auto method = one.draw<double>();
    if (!method->pattern() || !one.claims.no_attention_matrix.empty() || one.shape.nk > 300) return;
    INFO(to_string(one));
    ++tested;
    const auto head = one.problem.head.view();
    Context context;
    const Matrix<double> A = attention_matrix(*method, head, one.shape.mask, context);
    std::vector<std::vector<Index>> keys(static_cast<size_t>(one.shape.nq));
    method->pattern()->keys_of_rows(head, one.shape.mask, 0, context, keys);
    for (Index i = 0; i < A.rows(); ++i) {
      std::vector<Index> weighed;
      for (Index j = 0; j < A.cols(); ++j)
        if (A(i, j) != 0) weighed.push_back(j);
      const auto& of_row = keys[static_cast<size_t>(i)];
      if (one.params.has("features"))  // features may be 0, and weights with them
        CHECK(std::includes(of_row.begin(), of_row.end(), weighed.begin(), weighed.end()));
      else
        CHECK(of_row == weighed);
    }
  });
  CHECK((tested > 0 || !all_are_tested()));
}

TEST_CASE("the diagonal and the normalisers of a kernel are those of its matrix", "[methods]") {
  for_each_case([](const Case& one) {
    const auto method = one.draw<double>();
    const auto* kernel = method->kernel();
    if (!kernel || one.shape.nk > 300) return;
    INFO(to_string(one));
    const auto& head = one.problem.head;
    const auto nq = static_cast<size_t>(one.shape.nq);
    Matrix<double> block(one.shape.nq, one.shape.nk);
    std::vector<double> log_rows(nq), log_columns(static_cast<size_t>(one.shape.nk)), values(nq), log_scale(nq);
    Context context;
    kernel->kernel(head.view(), context, block, log_rows, log_columns);
    kernel->normalisers(head.view(), one.shape.mask, context, values, log_scale);
    const auto condition = row_conditions(one, *method);
    for (size_t i = 0; i < nq; ++i) {
      const auto row = static_cast<Index>(i);
      double sum = 0, magnitude = 0;
      for (Index j = 0; j < one.shape.mask.visible(row, one.shape.nk); ++j) {
        const double weight =
            block(row, j) * std::exp(log_rows[i] + log_columns[static_cast<size_t>(j)] - log_scale[i]);
        sum += weight;
        magnitude += std::abs(weight);
      }
      CHECK(std::abs(values[i] - sum) <= 100 * tolerance * condition[i] * std::max(magnitude, std::abs(values[i])));
    }
    if (one.shape.nq != one.shape.nk) return;
    kernel->diagonal(head.view(), context, values, log_scale);
    for (size_t i = 0; i < nq; ++i) {
      const auto row = static_cast<Index>(i);
      const double from_matrix = block(row, row) * std::exp(log_rows[i] + log_columns[i] - log_scale[i]);
      // Terms of any sign are of the size of the row's largest weight.
      const double size = std::max(std::abs(values[i]), block.row(row).cwiseAbs().maxCoeff());
      CHECK(std::abs(values[i] - from_matrix) <= 100 * tolerance * size);
    }
  });
}

// A feature that jumps where omega.x = 0 is another one when rounding takes omega.x across, and a token is evicted when
// its score falls below another's. Where a float's may, nothing is compared: such cases are counted, and must be few.
TEST_CASE("float agrees with double as far as float's rounding allows", "[methods]") {
  int jumping = 0, undecided = 0;
  for_each_case([&](const Case& one) {
    INFO(to_string(one));
    const auto single = one.draw<float>();
    const Tensors state = single->state();
    if (oracle::jumps(one.params)) {
      ++jumping;
      constexpr auto eps = static_cast<double>(std::numeric_limits<float>::epsilon());
      if (oracle::distance_to_jump(one.params, state, one.problem.head, one.shape.mask, eps) <= 1) {
        ++undecided;
        return;
      }
    }
    const auto exact = one.draw<double>(&state);  // the same draw, rounded to float
    const auto& head = one.problem.head;
    const Matrix<double> got = attend(*single, head.cast<float>(), one.shape.mask).cast<double>();
    const Matrix<double> want = attend(*exact, head, one.shape.mask);
    auto condition = row_conditions(one, *exact);
    const double rounding = float_rounding(one, state);
    // A normaliser that rounding may change by a tenth of itself is no longer known to first order.
    for (double& c : condition)
      if (c * rounding > 0.1) c = INFINITY;
    CHECK(got.allFinite());
    CHECK(worst_error(got, want, condition, size_of(head.V)) < rounding);
  });
  CAPTURE(jumping, undecided);
  CHECK((jumping > 0 || !all_are_tested()));
  CHECK(5 * undecided <= jumping);
}

TEST_CASE("threads and repetition change no bit, and inputs stay as they are", "[methods]") {
  for_each_case([](const Case& one) {
    INFO(to_string(one));
    const auto method = one.draw<double>();
    const HeadData<double> head = one.problem.head;
    const Matrix<double> first = attend(*method, head, one.shape.mask);
    for (const int threads : {1, 2, 5, 5}) CHECK(identical(attend(*method, head, one.shape.mask, threads), first));
    CHECK(identical(head.Q, one.problem.head.Q));
    CHECK(identical(head.K, one.problem.head.K));
    CHECK(identical(head.V, one.problem.head.V));
    const auto again = one.draw<double>();
    CHECK(identical(attend(*again, head, one.shape.mask), first));
  });
}

// Rounded sums depend on their order, which threads must not change.
TEST_CASE("threads change no bit in emulated half precision", "[methods]") {
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

namespace {

bool same_tensors(const Tensors& a, const Tensors& b, const std::string& name) {
  return a.contains(name) && b.contains(name) && identical(a.at(name), b.at(name));
}

}  // namespace

// A tensor is drawn, and then another one for another seed, head or replicate, or it is no random one and is the same
// for all of them. Who shares an ensemble says so.
TEST_CASE("whatever is drawn is drawn anew for every seed, head and replicate", "[methods]") {
  const TestHead problem = gaussian_problem({.nq = 40, .nk = 40, .d = 6, .dv = 4}, 0.8);
  size_t random = 0;
  for (const Params& variant : all_variants()) {
    const Params params = with_small_budgets(variant, problem.shape);
    if (!find<MethodEntry>(params.name()).claims(params, problem.shape).no_form.empty()) continue;
    INFO(params.spec());
    const Head<double> calibration = problem.calibration.view();
    const auto state_of = [&](std::uint64_t seed, Index head, Index replicate) {
      Shape shape = problem.shape;
      shape.precision = Precision::f64;
      return make_approximation<double>({.shape = shape,
                                         .params = params,
                                         .streams = Streams(seed),
                                         .head = head,
                                         .replicate = replicate,
                                         .calibration = &calibration})
          ->state();
    };
    const std::string share = params.has("share") ? params.text("share") : "";  // linformer shares E = F
    const bool heads_share = share == "layer" || share == "step", steps_share = share == "step";
    const Tensors first = state_of(1, 0, 0), of_seed = state_of(2, 0, 0), of_head = state_of(1, 1, 0),
                  of_replicate = state_of(1, 0, 1);
    for (const auto& [name, tensor] : first) {
      INFO(name);
      CHECK(same_tensors(first, state_of(1, 0, 0), name));
      if (same_tensors(first, of_seed, name)) {  // not drawn
        CHECK(same_tensors(first, of_head, name));
        CHECK(same_tensors(first, of_replicate, name));
        continue;
      }
      ++random;
      CHECK(same_tensors(first, of_head, name) == heads_share);
      CHECK(same_tensors(first, of_replicate, name) == steps_share);
    }
  }
  CHECK((random > 50 || !all_are_tested()));
}

TEST_CASE("a state given back makes the same instance", "[methods]") {
  for_each_case([](const Case& one) {
    INFO(to_string(one));
    const auto method = one.draw<double>();
    const Tensors state = method->state();
    if (state.empty()) return;
    const auto same = one.draw<double>(&state, 1);  // another replicate would be another draw
    CHECK(
        identical(attend(*same, one.problem.head, one.shape.mask), attend(*method, one.problem.head, one.shape.mask)));
    for (const auto& [name, tensor] : same->state()) CHECK(identical(tensor, state.at(name)));
    const auto single = one.draw<float>();
    const Tensors rounded = single->state();
    const auto same_single = one.draw<float>(&rounded, 1);
    const auto head = one.problem.head.cast<float>();
    CHECK(identical(attend(*same_single, head, one.shape.mask), attend(*single, head, one.shape.mask)));
  });
}

TEST_CASE("views into larger memory are read and written in place", "[methods]") {
  for_each_case([](const Case& one) {
    INFO(to_string(one));
    const auto method = one.draw<double>();
    const auto& head = one.problem.head;
    // Token i of one head in a [n, heads, d] tensor: three columns before, two behind.
    const auto widened = [](const Matrix<double>& X) {
      Matrix<double> wide = Matrix<double>::Constant(X.rows(), X.cols() + 5, 1e300);
      wide.middleCols(3, X.cols()) = X;
      return wide;
    };
    const auto inside = [](const Matrix<double>& wide) {
      return In<double>(wide.data() + 3, wide.rows(), wide.cols() - 5, wide.cols());
    };
    const Matrix<double> Q = widened(head.Q), K = widened(head.K), V = widened(head.V);
    Matrix<double> out = widened(Matrix<double>::Constant(one.shape.nq, one.shape.dv, NAN));
    Context context;
    method->attend({inside(Q), inside(K), inside(V)}, one.shape.mask, context,
                   {out.data() + 3, out.rows(), one.shape.dv, out.cols()});
    // Not bit for bit: where a view begins decides which terms a vector register adds together.
    CHECK(worst_error(out.middleCols(3, one.shape.dv), attend(*method, head, one.shape.mask),
                      row_conditions(one, *method), size_of(head.V)) < tolerance);
    CHECK((out.leftCols(3).array() == 1e300).all());
    CHECK((out.rightCols(2).array() == 1e300).all());
  });
}

TEST_CASE("padded keys and values change no bit", "[methods]") {
  for_each_case([](const Case& one) {
    const Index keys = one.shape.mask.keys;
    if (keys < 0) return;
    INFO(to_string(one));
    HeadData<double> head = one.problem.head;
    const auto method = one.draw<double>();
    const auto single = one.draw<float>();
    const Matrix<double> before = attend(*method, head, one.shape.mask);
    const Matrix<float> before_single = attend(*single, head.cast<float>(), one.shape.mask);
    head.K.bottomRows(one.shape.nk - keys) *= 1e6;
    head.V.bottomRows(one.shape.nk - keys).setConstant(-1e30);
    CHECK(identical(attend(*method, head, one.shape.mask), before));
    CHECK(identical(attend(*single, head.cast<float>(), one.shape.mask), before_single));
  });
}

TEST_CASE("rows that see no key are zero", "[methods]") {
  for_each_case([](const Case& one) {
    INFO(to_string(one));
    const auto method = one.draw<double>();
    const auto& head = one.problem.head;
    const Matrix<double> out = attend(*method, head, one.shape.mask);
    for (Index i = 0; i < one.shape.nq; ++i)
      if (one.shape.mask.visible(i, one.shape.nk) == 0) CHECK((out.row(i).array() == 0).all());
    Mask nothing = one.shape.mask;
    nothing.keys = 0;
    CHECK((attend(*method, head, nothing).array() == 0).all());
  });
}

TEST_CASE("a constant V comes out constant, and rows sum to one, where rows are claimed to be stochastic",
          "[methods]") {
  for_each_case([](const Case& one) {
    if (!one.claims.row_stochastic) return;
    INFO(to_string(one));
    const auto method = one.draw<double>();
    HeadData<double> head = one.problem.head;
    const auto condition = row_conditions(one, *method);
    head.V.setOnes();
    CHECK(worst_row_sum(one, attend(*method, head, one.shape.mask), condition, *method) < tolerance);
    if (one.shape.nk > 300) return;
    Context context;
    const Matrix<double> A = attention_matrix(*method, head.view(), one.shape.mask, context);
    CHECK(worst_row_sum(one, A.rowwise().sum(), condition, *method) < tolerance);
  });
}

TEST_CASE("no entry of the attention matrix is negative where that is claimed", "[methods]") {
  for_each_case([](const Case& one) {
    if (!one.claims.non_negative || one.shape.nk > 300) return;
    INFO(to_string(one));
    Context context;
    const auto& head = one.problem.head;
    CHECK(attention_matrix(*one.draw<double>(), head.view(), one.shape.mask, context).minCoeff() >= 0);
    const HeadData<float> rounded = head.cast<float>();
    CHECK(attention_matrix(*one.draw<float>(), rounded.view(), one.shape.mask, context).minCoeff() >= 0);
  });
}

TEST_CASE("reordering keys with their values changes nothing where that is claimed", "[methods]") {
  for_each_case([](const Case& one) {
    if (!one.claims.permutation_equivariant || one.shape.mask.causal) return;
    INFO(to_string(one));
    CHECK(error_after_reordering(one, *one.draw<double>()) < tolerance);
  });
}

TEST_CASE("the tests of claims see methods that do not make them", "[methods]") {
  const TestHead problem = gaussian_problem({.nq = 300, .nk = 300, .d = 8, .dv = 12}, 0.8);
  const auto make = [&](const char* spec) {
    const Params params = with_small_budgets(Params("methods", spec), problem.shape);
    return Case{params, find<MethodEntry>(params.name()).claims(params, problem.shape), problem.shape, problem};
  };
  const std::vector<double> one(300, 1);
  CHECK(error_after_reordering(make("local"), *make("local").draw<double>()) > 1e-2);
  HeadData<double> constant = problem.head;
  constant.V.setOnes();
  for (const char* spec : {"linformer", "truncated:renormalise=false"}) {
    INFO(spec);
    const auto method = make(spec).draw<double>();
    CHECK(worst_row_sum(make(spec), attend(*method, constant, {}), one, *method) > 1e-2);
  }
  Context context;
  for (const char* spec : {"linformer", "performer:features=trig"}) {
    INFO(spec);
    CHECK(attention_matrix(*make(spec).draw<double>(), problem.head.view(), {}, context).minCoeff() < -1e-3);
  }
}

// Bit for bit, the strictest there is: what the rows of a chunk share (sizes of blocks, scales, maxima) may depend on
// where tokens stand, but a number that a later token decides has no way into an earlier row, not even by rounding.
template <class T>
void check_causality(const Case& one) {
  const auto method = one.draw<T>();
  const HeadData<T> head = one.problem.head.template cast<T>();
  const Matrix<T> before = attend(*method, head, one.shape.mask);
  const Index nk = one.shape.nk, keys = Mask{.keys = one.shape.mask.keys}.visible(0, nk);
  for (const Index j : {Index(0), Index(1), keys / 2, Index(63), Index(64), keys - 1}) {
    if (j >= keys) continue;
    HeadData<T> moved = head;
    moved.K.row(j) *= T(-30);
    moved.V.row(j).array() += T(1e6);
    const Index own_row = j - one.shape.mask.offset;
    if (own_row >= 0 && own_row < one.shape.nq) moved.Q.row(own_row) *= T(-30);
    const Matrix<T> after = attend(*method, moved, one.shape.mask);
    const Index unmoved = std::clamp<Index>(own_row, 0, one.shape.nq);
    INFO("token " << j << " moved");
    CHECK(identical<T>(after.topRows(unmoved), before.topRows(unmoved)));
  }
}

TEST_CASE("with a causal mask no token moves the rows before it, by not one bit", "[methods]") {
  for_each_case([](const Case& one) {
    if (!one.claims.causal_exact || !one.shape.mask.causal || one.shape.nk > 300) return;
    INFO(to_string(one));
    check_causality<double>(one);
    check_causality<float>(one);
  });
}

TEST_CASE("a method without a form for a mask is skipped with its reason", "[methods]") {
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

TEST_CASE("the rank of the attention matrix is at most the claimed", "[methods]") {
  const TestHead problem = gaussian_problem({.nq = 140, .nk = 150, .d = 10, .dv = 1}, 0.8);
  for (const Params& variant : all_variants())
    for (const Mask& mask : {Mask{}, Mask{.keys = 100}}) {
      Shape shape = problem.shape;
      shape.mask = mask;
      const Params params = with_small_budgets(variant, shape);
      const Case one{params, find<MethodEntry>(params.name()).claims(params, shape), shape, problem};
      if (!one.claims.rank_at_most) continue;
      INFO(to_string(one));
      const auto method = one.draw<double>();
      Context context;
      Matrix<double> A = attention_matrix(*method, problem.head.view(), mask, context);
      // Rows are brought to equal rounding: an ill-conditioned one would lift the others' zeros.
      const auto condition = row_conditions(one, *method);
      for (Index i = 0; i < A.rows(); ++i) A.row(i) /= condition[static_cast<size_t>(i)];
      const auto sigma = singular_values(A);
      REQUIRE(*one.claims.rank_at_most < std::ssize(sigma));  // or the claim is not tested
      // A perturbation of every entry by 64 eps of its row's largest moves no singular value by more than this.
      const double noise = 64 * std::numeric_limits<double>::epsilon() * A.norm();
      CHECK(sigma[static_cast<size_t>(*one.claims.rank_at_most)] <= noise);
    }
}

TEST_CASE("a method is exact when it says that it is", "[methods]") {
  size_t tested = 0;
  for_each_case([&](const Case& one) {
    if (one.claims.exact_when.empty()) return;
    Params params = one.params;
    for (const auto& [key, value] : parse_spec("assignments:" + one.claims.exact_when).arguments)
      params = params.with(key, value);
    INFO(to_string(one) << " as " << params.spec());
    const auto exact = draw_method<double>(Params("methods", "softmax"), one.shape, one.problem);
    const auto method = draw_method<double>(params, one.shape, one.problem);
    const auto& head = one.problem.head;
    const std::vector<double> well(static_cast<size_t>(one.shape.nq), 1);
    CHECK(worst_error(attend(*method, head, one.shape.mask), attend(*exact, head, one.shape.mask), well,
                      size_of(head.V)) < tolerance);
    ++tested;
  });
  CHECK((tested > 0 || !all_are_tested()));
}

TEST_CASE("methods are linear in V where that is claimed", "[methods]") {
  for_each_case([](const Case& one) {
    if (!one.claims.linear_in_V) return;
    INFO(to_string(one));
    const auto method = one.draw<double>();
    const auto& head = one.problem.head;
    const HeadData<double> reversed{head.Q, head.K, head.V.colwise().reverse()};
    const HeadData<double> both{head.Q, head.K, head.V - 3 * reversed.V};
    const Matrix<double> want = attend(*method, head, one.shape.mask) - 3 * attend(*method, reversed, one.shape.mask);
    CHECK(worst_error(attend(*method, both, one.shape.mask), want, row_conditions(one, *method), 4 * size_of(head.V)) <
          tolerance);
  });
}

TEST_CASE("the work counted in attend is what the entry's cost says", "[methods]") {
  const TestHead problem = gaussian_problem({.nq = 512, .nk = 512, .d = 64, .dv = 64}, 0.5);
  for (const Params& params : all_variants()) {
    INFO(params.spec());
    const auto& entry = find<MethodEntry>(params.name());
    Shape shape = problem.shape;
    shape.mask.causal = !entry.claims(params, shape).no_form.empty();
    const auto method = draw_method<float>(params, shape, problem);
    const HeadData<float> head = problem.head.cast<float>();
    Matrix<float> out(512, 64);
    Context context;
    method->attend(head.view(), shape.mask, context, out);
    const Work cost = entry.cost(params, shape);
    // Leading terms only; patterns are gathered in blocks, which do more than the pattern has.
    const double margin = entry.text.family == "sparse" ? 2 : 1.3;
    for (const auto& [counted, said] :
         {std::pair(context.work.flops, cost.flops), std::pair(context.work.exps, cost.exps)})
      if (said == 0) {
        CHECK(counted == 0);
      } else {
        CHECK(counted / said < margin);
        CHECK(said / counted < margin);
      }
  }
}
