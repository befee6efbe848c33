// logit-bounds, coarse-weights, logit-error and gaussian-queries on heads where their numbers are known, and against
// plain loops over the same head.
#include <algorithm>
#include <cmath>

#include "harness/core/bounds.hpp"
#include "harness/core/estimates.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/measured.hpp"

namespace attnbench::weight_bounds_test {
namespace {

constexpr double tolerance = 1e-12;

HeadData<double> head_of(const Cell& cell) { return draw_cell_head(cell, 0, 0, Purpose::measured); }

std::unique_ptr<Approximation<double>> method_of(const Cell& cell) {
  Context context;
  ExactCache exact;
  return Task{cell, 0, context, exact}.method<double>(0, 0);
}

}  // namespace

TEST_CASE("pages of one key have exact bounds, and a row that reads all keys is certified", "[unit]") {
  for (const bool causal : {false, true}) {
    const Shape shape{.nq = 100, .nk = 100, .d = 4, .dv = 6, .mask = {.causal = causal}};  // two blocks of rows
    const auto single = measured(double_cell("logit-bounds", "quest:page=1,keep=2", shape));
    CHECK(single["certified"] == 1);
    CHECK(single["top_read"] == 1);
    CHECK(std::abs(single["slack"]) < tolerance);
    CHECK(single["bound_correlation"] > 1 - tolerance);
    const auto whole = measured(double_cell("logit-bounds", "quest:page=100,keep=1", shape));
    CHECK(whole["certified"] == 1);
    CHECK(whole["top_read"] == 1);
    CHECK(whole["slack"] > 0);
  }
  CHECK(skip_of(double_cell("logit-bounds", "softmax")).find("chooses no keys by bounds") != std::string::npos);
}

TEST_CASE("a row is certified where no bound of an unread page is above what it read", "[unit]") {
  const Cell cell = double_cell("logit-bounds", "quest:page=4,keep=2", {.nq = 40, .nk = 40, .d = 4, .dv = 3});
  const HeadData<double> head = head_of(cell);
  double certified = 0, top_read = 0, slack = 0, spread = 0;
  for (Index i = 0; i < 40; ++i) {
    std::vector<double> bounds(10, 0), largest(10, -1e300), logits;
    for (Index j = 0; j < 40; ++j) {
      logits.push_back(head.Q.row(i).dot(head.K.row(j)));
      auto& of_page = largest[static_cast<size_t>(j / 4)];
      of_page = std::max(of_page, logits.back());
    }
    for (Index page = 0; page < 10; ++page)
      for (Index c = 0; c < 4; ++c) {
        double most = -1e300;  // of q_c k_jc over the page: the larger of both ends
        for (Index j = 4 * page; j < 4 * page + 4; ++j) most = std::max(most, head.Q(i, c) * head.K(j, c));
        bounds[static_cast<size_t>(page)] += most;
      }
    const size_t own = static_cast<size_t>(i / 4);
    size_t other = own == 0 ? 1 : 0;
    for (size_t page = 0; page < 10; ++page)
      if (page != own && bounds[page] > bounds[other]) other = page;
    const double read = std::max(largest[own], largest[other]);
    bool proof = true, found = true;
    for (size_t page = 0; page < 10; ++page) {
      if (page == own || page == other) continue;
      proof = proof && read >= bounds[page];
      found = found && read >= largest[page];
    }
    certified += proof ? 1 : 0;
    top_read += found ? 1 : 0;
    double sum = 0, squares = 0;
    for (size_t j = 0; j < 40; ++j) {
      slack += (bounds[j / 4] - logits[j]) / 40;
      sum += logits[j];
      squares += logits[j] * logits[j];
    }
    spread += std::sqrt((squares - sum * sum / 40) / 39);
  }
  CHECK(certified > 0);  // neither none nor all, so that the comparison says something
  CHECK(certified < top_read);
  CHECK(top_read < 40);
  const auto found = measured(cell);
  CHECK(found["certified"] == Approx(certified / 40).epsilon(tolerance));
  CHECK(found["top_read"] == Approx(top_read / 40).epsilon(tolerance));
  CHECK(found["slack"] == Approx(slack / 40).epsilon(1e-10));
  CHECK(found["spread"] == Approx(spread / 40).epsilon(1e-10));
}

TEST_CASE("coarse weights of single tokens are exact, and those of blocks are what the formula says", "[unit]") {
  for (const char* spec : {"mra:block=1,refine=0", "multipole:clusters=24,exact=0"}) {
    INFO(spec);
    const auto single = measured(double_cell("coarse-weights", spec));
    for (const char* metric : {"weight_ratio", "largest_ratio", "kept_weight", "coarse_share"})
      CHECK(single[metric] == Approx(1).epsilon(tolerance));
  }
  CHECK(skip_of(double_cell("coarse-weights", "mra")).find("exactly at this size") != std::string::npos);
  CHECK(skip_of(double_cell("coarse-weights", "softmax")).find("no coarse weights") != std::string::npos);

  const Cell cell = double_cell("coarse-weights", "mra:block=6,refine=0");
  const HeadData<double> head = head_of(cell);
  const Matrix<double> weights = (head.Q * head.K.transpose()).array().exp();
  double logs = 0, kept = 0, most = 0;
  for (Index a = 0; a < 4; ++a)
    for (Index b = 0; b < 4; ++b) {
      const Eigen::RowVectorXd q = head.Q.middleRows(6 * a, 6).colwise().mean(),
                               k = head.K.middleRows(6 * b, 6).colwise().mean();
      double exact = 0, share = 0;
      for (Index i = 6 * a; i < 6 * a + 6; ++i)
        for (Index j = 6 * b; j < 6 * b + 6; ++j) {
          exact += weights(i, j);
          share += weights(i, j) / weights.row(i).sum();
        }
      const double ratio = 36 * std::exp(q.dot(k)) / exact;
      logs += std::log(ratio) / 16;
      kept += share * ratio / 24;
      most = std::max(most, ratio);
    }
  CHECK(most < 1);
  const auto found = measured(cell);
  CHECK(found["weight_ratio"] == Approx(std::exp(logs)).epsilon(tolerance));
  CHECK(found["largest_ratio"] == Approx(most).epsilon(tolerance));
  CHECK(found["kept_weight"] == Approx(kept).epsilon(tolerance));
  CHECK(found["coarse_share"] == Approx(1).epsilon(tolerance));
}

TEST_CASE("only the pairs that are not exact have coarse weights", "[unit]") {
  const auto some = measured(double_cell("coarse-weights", "mra:block=6,refine=7"));
  CHECK(some["coarse_share"] > 0.05);
  CHECK(some["coarse_share"] < 0.95);
  const auto of_clusters = measured(double_cell("coarse-weights", "multipole:clusters=6,exact=8"));
  CHECK(of_clusters["coarse_share"] > 0.05);
  CHECK(of_clusters["coarse_share"] < 0.95);
}

TEST_CASE("logit-error compares the pairs that the mask allows", "[unit]") {
  for (const bool causal : {false, true}) {
    const Cell cell =
        double_cell("logit-error", "qjl:m=8", {.nq = 24, .nk = 24, .d = 4, .dv = 6, .mask = {.causal = causal}});
    const HeadData<double> head = head_of(cell);
    const auto method = method_of(cell);
    Matrix<double> estimates(24, 24);
    Context context;
    estimated_logits(*method)->logits(head.view(), context, estimates);
    double count = 0, bias = 0, squared = 0, along = 0, squares = 0, ratio = 0;
    for (Index i = 0; i < 24; ++i)
      for (Index j = 0; j < (causal ? i + 1 : 24); ++j) {
        const double logit = head.Q.row(i).dot(head.K.row(j)), error = estimates(i, j) - logit;
        ++count;
        bias += error;
        squared += error * error;
        along += logit * estimates(i, j);
        squares += logit * logit;
        ratio += std::exp(error);
      }
    const auto found = measured(cell);
    CHECK(found["logit_bias"] == Approx(bias / count).epsilon(1e-10));
    CHECK(found["logit_deviation"] == Approx(std::sqrt(squared / count)).epsilon(1e-10));
    CHECK(found["logit_slope"] == Approx(along / squares).epsilon(1e-10));
    CHECK(found["weight_ratio"] == Approx(ratio / count).epsilon(1e-10));
  }
  CHECK(skip_of(double_cell("logit-error", "performer")).find("estimates no logits") != std::string::npos);
}

TEST_CASE("gaussian-queries: the kurtosis of normal and of spherical queries, and the order of keys", "[unit]") {
  const Shape shape{.nq = 8000, .nk = 64, .d = 4, .dv = 2};
  const auto normal = measured(double_cell("gaussian-queries", "softmax", shape));
  CHECK(normal["kurtosis"] == Approx(1).margin(0.05));  // its standard error is 0.01
  CHECK(normal["order"] > 0.99);
  CHECK(std::abs(normal["log_weight_bias"]) < 0.1);
  CHECK(normal["order"] > normal["order_of_mean"] + 0.1);  // normal queries have no mean to go by
  // D^2 is d on a sphere, so that the kurtosis is d / (d + 2) of the normal one.
  const auto sphere = measured(double_cell("gaussian-queries", "softmax", shape, "sphere"));
  CHECK(sphere["kurtosis"] == Approx(4.0 / 6).margin(0.02));
  // Entries |x| of normal x have a mean, and 3.8692 times their squared variance as fourth moment. With four of them
  // the kurtosis is (d - 1 + 3.8692) / (d + 2); about 0 instead of the mean it would be another.
  const auto positive = measured(double_cell("gaussian-queries", "softmax", shape, "signs:positive=1"));
  CHECK(positive["kurtosis"] == Approx((4 - 1 + 3.8692) / 6).margin(0.06));
  CHECK(positive["order_of_mean"] > 0.9);
  CHECK(skip_of(double_cell("gaussian-queries", "softmax")).empty());
  CHECK(skip_of(double_cell("gaussian-queries", "softmax", {.nq = 14, .nk = 14, .d = 4, .dv = 2}))
            .find("fewer than 2 d") != std::string::npos);
}

}  // namespace attnbench::weight_bounds_test
