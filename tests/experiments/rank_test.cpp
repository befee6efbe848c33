// The experiment `rank` on methods: its three ways agree, and what theory says of ranks is what it records
// (methods.md J 38, 54, 56, 57, 62).
#include <Eigen/Eigenvalues>
#include <cmath>
#include <map>

#include "harness/experiment/experiment.hpp"
#include "harness/linalg/lapack.hpp"
#include "harness/measures/attention_matrix.hpp"
#include "harness/measures/linear_map.hpp"
#include "harness/measures/spectrum.hpp"
#include "harness/runner/plan.hpp"
#include "tests/cases.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/measured.hpp"
#include "tests/misuse.hpp"

namespace attnbench::rank_test {

namespace {

struct Setting {
  Index n = 48, d = 8;
  bool causal = false;
  Precision precision = Precision::f64;
  double logit_scale = 1;
};

Measured measured(const std::string& experiment, const std::string& method, const Setting& s = {}) {
  const Cell cell{
      .experiment = Params("experiments", experiment),
      .method = Params("methods", method),
      .input = Params("inputs", "gaussian"),
      .problem = {
          .shape = {.nq = s.n, .nk = s.n, .d = s.d, .dv = s.d, .mask = {.causal = s.causal}, .precision = s.precision},
          .logit_scale = s.logit_scale}};
  return measured(cell, 0, 2);
}

const std::vector<double>& sigma(const Measured& found) { return found.values.at("singular_values"); }

template <class Exception>
std::string reason_of(const std::string& experiment, const std::string& method, const Setting& setting = {}) {
  try {
    measured(experiment, method, setting);
  } catch (const Exception& reason) {
    return reason.what();
  }
  return "";
}

std::string misuse_of_run(const std::string& experiment, const std::string& method, Index n, Precision precision) {
  return misuse_of([&] {
    expand({.experiment = experiment, .methods = {method}, .inputs = {"gaussian"}, .n = {n}, .precision = precision});
  });
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double worst = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
  return worst;
}

constexpr double epsilon = std::numeric_limits<double>::epsilon();

}  // namespace

TEST_CASE("factors and the dense matrix have the same spectrum", "[methods]") {
  for (const char* spec : {"linear", "linear:features=exp", "performer:m=24", "performer:m=12,features=trig",
                           "polynomial", "efficient", "nystrom:landmarks=12", "clustered:clusters=10"})
    for (const Index n : {48, 67}) {
      INFO(spec << " at n=" << n);
      const Setting setting{.n = n, .logit_scale = 0.5};
      const auto dense = measured("rank:spectrum=dense", spec, setting),
                 factored = measured("rank:spectrum=factored", spec, setting);
      if (dense["spectrum_from"] == factored["spectrum_from"]) {
        CHECK(std::string(spec) == "polynomial");  // d^2 features, more than n: A is formed
        continue;
      }
      REQUIRE(sigma(factored).size() < sigma(dense).size());
      CHECK(largest_difference(sigma(dense), sigma(factored)) <= 1e-12 * dense["spectral_norm"]);
      CHECK(sigma(dense)[sigma(factored).size()] <= 1e-12 * dense["spectral_norm"]);
      CHECK(dense["numerical_rank"] == factored["numerical_rank"]);
      for (const char* metric : {"stable_rank", "participation_ratio", "effective_rank_squared", "frobenius_norm"})
        CHECK(std::abs(dense[metric] - factored[metric]) <= 1e-12 * dense[metric]);
      CHECK(!factored.has("condition"));  // infinite
      if (factored.has("structural_rank")) CHECK(factored["structural_rank"] == factored["numerical_rank"]);
    }
}

TEST_CASE("the logits have rank d at most, softmax of them more, and they are no method's", "[methods]") {
  for (const char* way : {"dense", "factored"}) {
    const auto logits = measured(std::string("rank:of=logits,spectrum=") + way, "softmax", {.causal = true});
    CHECK(logits["rank_of"] == 2);
    CHECK(logits["numerical_rank"] == 8);
    CHECK(logits["structural_rank"] == 8);
  }
  CHECK(measured("rank:of=logits", "softmax", {.n = 5, .d = 8})["structural_rank"] == 5);
  CHECK(measured("rank", "softmax")["numerical_rank"] == 48);
  CHECK(contains(misuse_of_run("rank:of=logits", "performer", 32, Precision::f64), "expected --method softmax"));
}

TEST_CASE("the spectrum of keys is that of K^T K, without a mask, and no method's", "[methods]") {
  const Cell cell{.experiment = Params("experiments", "rank:of=keys,share=0.6"),
                  .method = Params("methods", "softmax"),
                  .input = Params("inputs", "gaussian"),
                  .problem = {.shape = {.nq = 40, .nk = 40, .d = 8, .dv = 8, .mask = {.causal = true}}}};
  const Measured keys = measured(cell, 0, 1);
  const Matrix<double> K = draw_cell_head(cell, 0, 0, Purpose::measured).K;
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(K.transpose() * K);
  const Eigen::VectorXd squares = solver.eigenvalues().reverse();
  for (Index i = 0; i < 8; ++i)
    CHECK(std::abs(std::pow(keys.values.at("singular_values")[static_cast<size_t>(i)], 2) / squares[i] - 1) < 1e-10);
  Index count = 0;
  for (double sum = 0; sum < 0.6 * squares.sum(); ++count) sum += squares[count];
  CHECK(keys["principal_dimensions"] == static_cast<double>(count));
  CHECK((keys["rank_of"] == 3 && keys["structural_rank"] == 8));
  CHECK(contains(misuse_of_run("rank:of=keys", "performer", 32, Precision::f64), "keys are the same for every method"));
  CHECK(contains(misuse_of_run("rank:of=keys,spectrum=randomised", "softmax", 32, Precision::f64), "spectrum=auto"));
}

TEST_CASE("a threshold below what rounding makes of zero is refused, with that floor", "[methods]") {
  CHECK(contains(misuse_of_run("rank:threshold=1e-14", "linear", 1024, Precision::f64), "floor 2.27e-13 of n=1024"));
  CHECK(contains(misuse_of_run("rank:threshold=1e-6", "linear", 1024, Precision::f32), "floor 0.000122 of n=1024"));
  CHECK_NOTHROW(expand({.experiment = "rank:threshold=1e-6", .methods = {"linear"}, .inputs = {"gaussian"}}));
  const auto half = measured("rank:threshold=0.5", "identity");
  CHECK((half["numerical_rank"] == 48 && half["rank_tolerance"] == 0.5));
  CHECK(measured("rank:threshold=0.9999", "softmax")["numerical_rank"] == 1);
}

TEST_CASE("a float matrix has its rank with a threshold that knows its rounding", "[methods]") {
  for (const char* spec : {"linear", "softmax"})
    for (const char* way : {"dense", "auto"}) {
      const auto single = measured(std::string("rank:spectrum=") + way, spec, {.precision = Precision::f32});
      CHECK(single["rank_tolerance"] == single["spectral_norm"] * 48 * 0x1p-23);
      CHECK(single["numerical_rank"] <= measured("rank", spec)["numerical_rank"]);
    }
  // With the threshold of a double matrix the float one would be of full rank: what is left of zero is 1e-8.
  const auto single = measured("rank", "linear", {.precision = Precision::f32});
  CHECK(single["numerical_rank"] == 8);
  CHECK(sigma(single).back() > 48 * epsilon * single["spectral_norm"]);
  CHECK(contains(reason_of<Skip>("rank:spectrum=randomised", "softmax", {.precision = Precision::f32}), "f64"));
}

TEST_CASE("structural rank is recorded where theory gives it", "[methods]") {
  for (const char* spec : {"softmax", "linear", "performer:m=16", "local:window=3", "uniform", "identity"}) {
    INFO(spec);
    CHECK(measured("rank", spec, {.causal = true})["structural_rank"] == 48);
  }
  CHECK(measured("rank", "uniform")["structural_rank"] == 1);
  CHECK(measured("rank", "linear")["structural_rank"] == 8);
  CHECK(measured("rank", "performer:m=100")["structural_rank"] == 48);
  CHECK(!measured("rank", "softmax").has("structural_rank"));
}

TEST_CASE("rows that sum to one make sigma_1 at least 1, and ranks keep their order", "[methods]") {
  for (const char* spec : {"softmax", "linear", "performer:m=16", "local:window=3", "uniform", "identity", "top-k:k=5"})
    for (const bool causal : {false, true}) {
      INFO(spec << (causal ? " causal" : ""));
      const auto found = measured("rank", spec, {.causal = causal});
      constexpr double slack = 1 + 1e-11;  // 48 singular values of rounding size add 48 eps log eps to the entropy
      CHECK(found["spectral_norm"] * slack >= 1);
      double before = 1;
      for (const char* metric :
           {"stable_rank", "participation_ratio", "effective_rank_squared", "effective_rank", "numerical_rank"}) {
        CHECK(before <= found[metric] * slack);
        before = found[metric];
      }
    }
}

TEST_CASE("zero has rank 0 and one token rank 1", "[methods]") {
  const auto zero = measured("rank", "zero");
  for (const char* metric : {"numerical_rank", "stable_rank", "participation_ratio", "effective_rank", "trace_norm",
                             "spectral_norm", "cumulative_at", "structural_rank"})
    CHECK(zero[metric] == 0);
  CHECK(!zero.has("condition"));
  for (const char* spec : {"softmax", "linear", "performer:m=4", "local:window=2"})
    for (const char* way : {"dense", "auto", "randomised"}) {
      INFO(spec << " " << way);
      const auto one = measured(std::string("rank:spectrum=") + way, spec, {.n = 1, .d = 2});
      for (const char* metric : {"stable_rank", "participation_ratio", "effective_rank", "trace_norm"})
        CHECK(std::abs(one[metric] - 1) <= 1e-12);
    }
}

TEST_CASE("products of a matrix that is not formed are those of its rows", "[methods]") {
  for (const char* spec : {"softmax", "local:window=3", "top-k:k=5", "linear", "performer:m=8"})
    for (const Mask mask : {Mask{}, Mask{.causal = true}, Mask{.keys = 250}}) {
      INFO(spec << ", " << to_string(mask));
      const TestHead problem = gaussian_problem({.nq = 301, .nk = 301, .d = 6, .dv = 5, .mask = mask}, 0.8);
      const auto method = draw_method<double>(Params("methods", spec), problem.shape, problem);
      Context one, two(2);
      const Matrix<double> A = attention_matrix(*method, problem.head.view(), mask, one), G = problem.head.V;
      const auto streamed = stream_attention(*method, problem.head.view(), mask, two);
      Matrix<double> forward(301, 5), back(301, 5), again(301, 5);
      streamed.map.times(one, G, forward);
      streamed.map.transposed_times(one, G, back);
      CHECK((forward - A * G).cwiseAbs().maxCoeff() <= 1e-12);
      CHECK((back - A.transpose() * G).cwiseAbs().maxCoeff() <= 1e-12 * A.colwise().sum().maxCoeff());
      CHECK(std::abs(streamed.map.frobenius_squared / A.squaredNorm() - 1) <= 1e-12);
      CHECK(streamed.regular_triangle == (mask.causal && std::string(spec) != "top-k:k=5"));
      streamed.map.transposed_times(two, G, again);
      CHECK(identical(back, again));
    }
}

TEST_CASE("random products find what the dense spectrum has", "[methods]") {
  // A 95 % interval of 16 probes that is widened to three times its width misses with probability 1e-5; 16 of them.
  for (const char* spec : {"softmax", "local:window=4", "linear"})
    for (const bool causal : {false, true}) {
      if (std::string(spec) == "linear" && !causal) continue;  // of rank 8: probes have nothing left
      INFO(spec << (causal ? " causal" : ""));
      const Setting setting{.n = 200, .causal = causal};
      const auto dense = measured("rank:spectrum=dense,index=10", spec, setting),
                 random = measured("rank:spectrum=randomised,index=10", spec, setting);
      CHECK(random["spectrum_from"] == 2);
      CHECK((sigma(random).size() == 16 && !random.has("numerical_rank") && random.notes.size() == 1));
      CHECK(std::abs(random["frobenius_norm"] - dense["frobenius_norm"]) <= 1e-12 * dense["frobenius_norm"]);
      CHECK(random.has("structural_rank") == causal);
      for (size_t i = 0; i < 16; ++i) {
        double nearest = 1;
        for (const double s : sigma(dense)) nearest = std::min(nearest, std::abs(s - sigma(random)[i]));
        CHECK(nearest <= random.values.at("singular_value_bounds")[i]);
      }
      for (const std::string metric : {"trace_norm", "effective_rank", "effective_rank_squared", "participation_ratio",
                                       "stable_rank", "cumulative_at"}) {
        const double low = random[metric + "_low"], high = random[metric + "_high"], width = high - low;
        CAPTURE(metric, low, high, dense[metric]);
        CHECK((low <= random[metric] && random[metric] <= high));
        CHECK((low - width <= dense[metric] * (1 + 1e-12) && dense[metric] * (1 - 1e-12) <= high + width));
        CHECK(width <= dense[metric] / 2);
      }
    }
}

namespace {

// Attention that is not a number from some place on.
class Broken final : public Approximation<double>, public Rows<double> {
 public:
  void attend(const Head<double>&, Mask, Context&, Out<double> out) const override { out.setZero(); }
  const Rows<double>* rows() const override { return this; }
  void attention_rows(const Head<double>&, Mask, Index first, Context&, Out<double> A) const override {
    A.setZero();
    for (const auto& [i, j] : {std::pair<Index, Index>{300, 7}, {390, 2}})
      if (i >= first && i < first + A.rows()) A(i - first, j) = std::nan("");
  }
};

}  // namespace

TEST_CASE("what is not a number ends the cell with the first place, in every way to a spectrum", "[methods]") {
  const Setting huge{.logit_scale = 1e308};
  CHECK(contains(reason_of<NumericallyInvalid>("rank:spectrum=dense", "taylor", huge), "attention matrix: "));
  CHECK(contains(reason_of<NumericallyInvalid>("rank:spectrum=factored", "taylor", huge), "factor: "));
  const TestHead problem = gaussian_problem({.nq = 400, .nk = 400, .d = 2, .dv = 2}, 1);
  for (const int threads : {1, 2}) {
    Context context(threads);
    try {
      stream_attention(Broken(), problem.head.view(), {}, context);
      FAIL("not refused");
    } catch (const NumericallyInvalid& invalid) {
      CHECK(contains(invalid.what(), "at row 300, column 7"));
    }
  }
}

TEST_CASE("the mean of all tokens so far has the inverse of Cesaro's matrix", "[methods]") {
  constexpr Index n = 20;
  const TestHead problem = gaussian_problem({.nq = n, .nk = n, .d = 2, .dv = 2}, 1);
  const Mask mask{.causal = true};
  Context context;
  Shape shape = problem.shape;
  shape.mask = mask;
  const auto uniform = draw_method<double>(Params("methods", "uniform"), shape, problem);
  const Matrix<double> A = attention_matrix(*uniform, problem.head.view(), mask, context);
  Matrix<double> inverse = Matrix<double>::Zero(n, n);
  for (Index i = 0; i < n; ++i) {
    inverse(i, i) = static_cast<double>(i + 1);
    if (i > 0) inverse(i, i - 1) = -static_cast<double>(i);
  }
  CHECK((inverse * A).isIdentity(n * epsilon));
}

TEST_CASE("softmax with keys of one dimension is of full rank, which numbers do not show", "[methods]") {
  // exp(q_i k_j) with q_i = log(i + 1), k_j = j is Vandermonde's matrix of 1..n: its determinant is the product of the
  // first n - 1 factorials, 1! 2! 3! 4! 5! = 34560 for n = 6, and is not 0 for any distinct q and k.
  constexpr Index n = 6;
  TestHead problem = gaussian_problem({.nq = n, .nk = n, .d = 1, .dv = 1}, 1);
  double row_sums = 1;
  for (Index i = 0; i < n; ++i) {
    problem.head.Q(i, 0) = std::log(static_cast<double>(i + 1));
    problem.head.K(i, 0) = static_cast<double>(i);
    double sum = 0;
    for (Index j = 0; j < n; ++j) sum += std::pow(static_cast<double>(i + 1), static_cast<double>(j));
    row_sums *= sum;
  }
  Context context;
  const auto softmax = draw_method<double>(Params("methods", "softmax"), problem.shape, problem);
  const auto sigma = singular_values(attention_matrix(*softmax, problem.head.view(), {}, context));
  double determinant = row_sums;
  for (const double s : sigma) determinant *= s;
  // The least of them is known to n epsilon sigma_1.
  CHECK(std::abs(determinant / 34560 - 1) <= 2 * n * epsilon * sigma.front() / sigma.back());
  CHECK(numerical_rank(sigma, rank_tolerance(sigma, n, n)) == n);
  CHECK(measured("rank", "softmax", {.n = 40, .d = 1})["numerical_rank"] < 20);
}

}  // namespace attnbench::rank_test
