// The error that decode records beside its times, against plain loops.
#include <cmath>

#include "tests/catch.hpp"
#include "tests/experiments/measured.hpp"

namespace attnbench::decode_test {
namespace {

constexpr Index n = 40;

Cell cell(const std::string& method) {
  return double_cell("decode:blocks=2,turn=0.01,from=4", method,
                     {.nq = n, .nk = n, .d = 4, .dv = 6, .mask = {.causal = true}});
}

std::vector<Measurement> recorded(const Cell& of) {
  Context context;
  ExactCache exact;
  return measured_turns({of, 0, context, exact});
}

double scalar(const Cell& of, const std::string& metric) { return numbers_of(recorded(of), metric).at(0); }

// Softmax of token n, which is token 0 again, over these keys of n + 1.
Eigen::RowVectorXd row(const HeadData<double>& head, const std::vector<Index>& keys) {
  Eigen::RowVectorXd sum = Eigen::RowVectorXd::Zero(head.V.cols());
  double all = 0;
  for (const Index j : keys) {
    const double weight = std::exp(head.Q.row(0).dot(head.K.row(j % n)));
    sum += weight * head.V.row(j % n);
    all += weight;
  }
  return sum / all;
}

}  // namespace

TEST_CASE("a step's error is that against exact attention", "[unit]") {
  CHECK(scalar(cell("softmax"), "row_error") < 1e-12);
  const HeadData<double> head = draw_cell_head(cell("softmax"), 0, 0, Purpose::measured);
  std::vector<Index> all, kept{0, 36, 37, 38, 39, 40};
  for (Index j = 0; j <= n; ++j) all.push_back(j);
  const auto exact = row(head, all);
  const double error = (row(head, kept) - exact).norm() / exact.norm();
  CHECK(error > 0.1);
  CHECK(scalar(cell("sink-window:sinks=1,window=4"), "row_error") == Approx(error).epsilon(1e-10));
  CHECK(scalar(cell("sink-window:sinks=1,window=4"), "rounding_error") < 1e-12);
  // A prompt of which every token is kept, and codes of 16 bits, change next to nothing.
  CHECK(scalar(cell("evict:prompt=20,keep=20"), "row_error") < 1e-12);
  const double of_codes = scalar(cell("quantised:bits=16,granularity=token"), "row_error");
  CHECK(of_codes > 1e-9);
  CHECK(of_codes < 1e-3);
}

TEST_CASE("the fraction of the bandwidth is the bytes of the state over the median time", "[unit]") {
  const auto all = recorded(cell("softmax"));
  const auto seconds = numbers_of(all, "seconds");
  REQUIRE(seconds.size() == 2);
  const double bytes = numbers_of(all, "state_bytes").at(0), median = (seconds[0] + seconds[1]) / 2;
  CHECK(bytes == n * (4 + 6) * sizeof(double));
  CHECK(numbers_of(all, "bandwidth_fraction").at(0) == Approx(bytes / median / made_up_rates.bandwidth));
}

}  // namespace attnbench::decode_test
