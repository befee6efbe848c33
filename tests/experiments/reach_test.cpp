// The experiments reach and convolution, where their numbers are known. Nothing here is statistical.
#include <fmt/format.h>

#include <cmath>

#include "tests/catch.hpp"
#include "tests/experiments/measured.hpp"
#include "tests/misuse.hpp"

namespace attnbench::reach_test {

namespace {

constexpr Index n = 100;  // no multiple of 64

Measured reached(const std::string& method, bool causal, Index layers) {
  Cell cell = double_cell(fmt::format("reach:layers={}", layers), method, {.nq = n, .nk = n, .d = 4, .dv = 2});
  cell.problem.shape.mask.causal = causal;
  return measured(cell);
}

double difference(const std::string& experiment, const std::string& method, Shape shape) {
  return measured(double_cell(experiment, method, shape))["difference_to_convolution"];
}

}  // namespace

TEST_CASE("reach: a window of w connects tokens that are L w apart after L layers", "[unit]") {
  const Measured window = reached("local:window=3", false, 5);
  CHECK(window.values.at("layers") == std::vector<double>{1, 2, 3, 4, 5});
  CHECK(window.values.at("farthest") == std::vector<double>{3, 6, 9, 12, 15});
  CHECK(window["farthest_at_last"] == 15);
  CHECK(window["layers_to_all"] == 6);  // 5 are too few
  // Pairs within 3 tokens: n of distance 0 and 2 (n - t) of distance t.
  CHECK(window.values.at("reached_share")[0] == (n + 2 * (n - 1 + n - 2 + n - 3)) / static_cast<double>(n * n));
  CHECK(reached("local:window=33", false, 4)["layers_to_all"] == 3);  // 99 = 3 * 33
  CHECK(reached("local:window=32", false, 4)["layers_to_all"] == 4);
}

TEST_CASE("reach: pairs are those that the mask lets meet, and a token hears itself", "[unit]") {
  const Measured causal = reached("local:window=2", true, 3);
  const double visible = n * (n + 1) / 2.0;
  CHECK(causal.values.at("reached_share")[2] == (7 * n - 21) / visible);  // row i hears min(i, 6) + 1 tokens
  CHECK(reached("softmax", true, 1)["layers_to_all"] == 1);
  CHECK(reached("reformer:buckets=2", false, 1).values.at("reached_share")[0] < 1);
}

TEST_CASE("reach: one global token connects all in two layers", "[unit]") {
  CHECK(reached("longformer:window=1,global=1", false, 3)["layers_to_all"] == 2);
  CHECK(reached("longformer:window=1,global=0", false, 3)["layers_to_all"] == 4);
}

TEST_CASE("reach: queries and keys are the same tokens", "[unit]") {
  const Cell cell = double_cell("reach", "softmax", {.nq = 3, .nk = 5, .d = 2, .dv = 2});
  CHECK(misuse_of([&] { measured(cell); }).find("3 queries and 5 keys") != std::string::npos);
}

TEST_CASE("convolution: a head for each tap computes it to what the other tokens weigh", "[unit]") {
  const Shape shape{.nq = 40, .nk = 40, .d = 2, .dv = 3};
  CHECK(difference("convolution:alpha=40", "softmax", shape) < 1e-14);
  CHECK(difference("convolution:alpha=40", "softmax", {.nq = 40, .nk = 40, .d = 5, .dv = 3}) < 1e-14);
  // A neighbour has the weight exp(-alpha), on both sides.
  const double weight = std::exp(-10.0), off = difference("convolution:alpha=10", "softmax", shape);
  CHECK(off > 0.5 * weight);
  CHECK(off < 5 * weight);
  CHECK(difference("convolution:alpha=40", "uniform", shape) > 0.3);
  CHECK(difference("convolution:alpha=40,radius=0", "local:window=1", shape) < 1e-14);
}

TEST_CASE("convolution: positions have two channels, and kernels fit", "[unit]") {
  const auto refused = [](const std::string& experiment, Shape shape, const char* expected) {
    CHECK(misuse_of([&] { measured(double_cell(experiment, "softmax", shape)); }).find(expected) != std::string::npos);
  };
  refused("convolution", {.nq = 40, .nk = 40, .d = 1, .dv = 3}, "expected -d 2 or more");
  refused("convolution:radius=20", {.nq = 40, .nk = 40, .d = 2, .dv = 3}, "at least 41");
  refused("convolution", {.nq = 40, .nk = 41, .d = 2, .dv = 3}, "40 queries and 41 keys");
}

}  // namespace attnbench::reach_test
