// The identity of dropped keys, o - o_S = (1 - p_S) (o_rest - o_S), for every pattern that is a softmax over its keys,
// and the measures of dropped-keys on heads where they are known. Nothing here is statistical.
#include <algorithm>
#include <cmath>

#include "tests/cases.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/measured.hpp"

namespace attnbench::dropped_keys_test {

namespace {

constexpr double tolerance = 1e-12;

const std::vector<std::string> softmax_patterns{"local:window=3",
                                                "sink-window:window=3,sinks=2",
                                                "dilated:stride=4",
                                                "strided:stride=5",
                                                "top-k:k=4",
                                                "heavy-hitter:heavy=3,recent=3",
                                                "bigbird:block=4,random=1",
                                                "longformer:window=3,global=2",
                                                "sampled:replacement=false,s=7"};

}  // namespace

TEST_CASE("the error of a softmax over kept keys is the dropped weight times the distance to the rest", "[unit]") {
  const TestHead problem = gaussian_problem({.nq = 40, .nk = 40, .d = 5, .dv = 3}, 0.8);
  for (const auto& spec : softmax_patterns)
    for (const bool causal : {false, true}) {
      if (!causal && spec.starts_with("heavy-hitter")) continue;  // it has no such form
      INFO(spec << (causal ? ", causal" : ""));
      const Mask mask{.causal = causal};
      const auto method = drawn(spec, problem, mask);
      const Matrix<double> own = attend(*method, problem.head, mask);
      std::vector<std::vector<Index>> keys(40);
      Context context;
      method->pattern()->keys_of_rows(problem.head.view(), mask, 0, context, keys);
      for (Index i = 0; i < 40; ++i) {
        const auto& kept = keys[static_cast<size_t>(i)];
        double sum = 0, sum_kept = 0;
        Eigen::RowVectorXd all = Eigen::RowVectorXd::Zero(3), rest = all;
        for (Index j = 0; j < mask.visible(i, 40); ++j) {
          const double weight = std::exp(problem.head.Q.row(i).dot(problem.head.K.row(j)));
          const bool is_kept = std::find(kept.begin(), kept.end(), j) != kept.end();
          sum += weight;
          all += weight * problem.head.V.row(j);
          if (is_kept)
            sum_kept += weight;
          else
            rest += weight * problem.head.V.row(j);
        }
        const double p = sum_kept / sum;
        // (1 - p_S) o_rest = rest / sum, also where nothing is dropped.
        const Eigen::RowVectorXd identity = rest / sum - (1 - p) * own.row(i);
        CHECK((all / sum - own.row(i) - identity).norm() < tolerance);
      }
    }
}

TEST_CASE("a method of softmax over its keys has the error of its dropped keys, and no other", "[unit]") {
  for (const auto& spec : softmax_patterns) {
    INFO(spec);
    const Measured of =
        measured(double_cell("dropped-keys", spec, {.nq = 24, .nk = 24, .d = 4, .dv = 6, .mask = {.causal = true}}));
    CHECK(of["reweighting_error"] < tolerance);
    CHECK(std::abs(of["dropped_error"] - of["relative_output_error"]) < tolerance);
    CHECK(of["dropped_mass"] > 0);
    CHECK(of["dropped_mass"] < 1);
  }
  CHECK(measured(double_cell("dropped-keys", "truncated:window=3"))["reweighting_error"] > 0.01);
  CHECK(measured(double_cell("dropped-keys", "sampled:s=7"))["reweighting_error"] > 0.01);
}

TEST_CASE("the best k keys drop the least weight, and all keys drop none", "[unit]") {
  const double best = measured(double_cell("dropped-keys", "top-k:k=7"))["dropped_mass"];
  CHECK(best < measured(double_cell("dropped-keys", "local:window=3"))["dropped_mass"]);
  CHECK(best < measured(double_cell("dropped-keys", "sampled:replacement=false,s=7"))["dropped_mass"]);
  CHECK(measured(double_cell("dropped-keys", "top-k:k=7"))["keys_read"] == 7);
  const Measured whole = measured(double_cell("dropped-keys", "top-k:k=24"));
  CHECK(whole["dropped_mass"] == 0);
  CHECK(whole["dropped_error"] < tolerance);
  CHECK_FALSE(whole.has("dropped_distance"));
  CHECK_FALSE(whole.has("mass_correlation"));
}

TEST_CASE("the heaviest keys recall all of the weight that as many keys can have, and others less", "[unit]") {
  for (const char* k : {"1", "7", "24"})
    CHECK(std::abs(measured(double_cell("dropped-keys", fmt::format("top-k:k={}", k)))["mass_recall"] - 1) < tolerance);
  const double window = measured(double_cell("dropped-keys", "local:window=3"))["mass_recall"];
  CHECK(window < 0.9);
  CHECK(window > 1 - measured(double_cell("dropped-keys", "local:window=3"))["dropped_mass"]);
}

// Keys that are nearly equal: the window of a row keeps one of 24.
TEST_CASE("equal keys have the weight and the distance that are known", "[unit]") {
  const Measured of = measured(
      double_cell("dropped-keys", "local:window=0", {.nq = 24, .nk = 24, .d = 4, .dv = 1}, "gaussian:scale=1e-9"));
  CHECK(std::abs(of["dropped_mass"] - 23.0 / 24) < 1e-6);
}

TEST_CASE("a method without a pattern is skipped with the reason", "[unit]") {
  CHECK(skip_of(double_cell("dropped-keys", "performer:m=8")).find("no pattern of keys") != std::string::npos);
}

}  // namespace attnbench::dropped_keys_test
