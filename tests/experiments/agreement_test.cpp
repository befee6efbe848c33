// Experiments that compare a method with another one, or with a softmax of tilted logits. Identities hold to rounding,
// methods that are not identical differ by more, and known differences are measured.
#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "harness/experiment/experiment.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/measured.hpp"
#include "tests/misuse.hpp"

namespace attnbench::agreement_test {

namespace {

constexpr double tolerance = 1e-12;

Measured measured(const std::string& experiment, const std::string& method, const std::string& input = "gaussian",
                  const Shape& shape = {.nq = 24, .nk = 24, .d = 4, .dv = 6}) {
  return measured(double_cell(experiment, method, shape, input));
}

Shape causal(Index keys = -1) { return {.nq = 24, .nk = 24, .d = 4, .dv = 6, .mask = {.causal = true, .keys = keys}}; }

}  // namespace

TEST_CASE("agreement: the same random vectors make equal methods equal, and unequal ones are told apart", "[unit]") {
  for (const Shape& shape : {Shape{.nq = 24, .nk = 24, .d = 4, .dv = 6}, causal(), causal(20)}) {
    // Hyperbolic features are positive ones of antithetic vectors.
    const auto same = measured("agreement:[performer:m=16,projection=antithetic]",
                               "performer:features=hyperbolic,m=8,projection=iid", "gaussian", shape);
    CHECK(same["relative_difference"] < tolerance);
    CHECK(same["relative_output_difference"] < tolerance);
    CHECK(same["largest_difference"] < tolerance);
    CHECK(same["largest_kernel_difference"] < tolerance);
    const auto other = measured("agreement:[performer:m=16,projection=iid]",
                                "performer:features=hyperbolic,m=8,projection=iid", "gaussian", shape);
    CHECK(other["relative_difference"] > 0.01);
    CHECK(other["relative_output_difference"] > 0.01);
    CHECK(other["largest_difference"] > 0.01);
    CHECK(other["largest_kernel_difference"] > 0.01);
  }
}

TEST_CASE("agreement: known differences", "[unit]") {
  // A = I against 1/n: |I - J/n|^2 = n - 1, |J/n|^2 = 1.
  const auto identity = measured("agreement:[uniform]", "identity");
  CHECK(std::abs(identity["relative_difference"] - std::sqrt(23)) < tolerance);
  CHECK(std::abs(identity["largest_difference"] - 23.0 / 24) < tolerance);
  // The kernel before normalisation, at q = 1 and k = -1: (1 + 1) e^-1 for e e^-1.
  const auto elu =
      measured("agreement:[linear:features=exp]", "linear",
               "pair:direction=axis,angle=" + fmt::format("{}", std::numbers::pi), {.nq = 2, .nk = 2, .d = 1, .dv = 1});
  CHECK(std::abs(elu["largest_kernel_difference"] - (1 - 2 / std::numbers::e)) < tolerance);
  CHECK(elu["relative_difference"] < tolerance);  // all keys are one
}

TEST_CASE("agreement: without attention matrices outputs are compared, against nothing nothing is", "[unit]") {
  const auto outputs = measured("agreement:[fnet]", "softmax");
  CHECK(outputs.values.size() == 1);
  CHECK(outputs["relative_output_difference"] > 0.01);
  CHECK(outputs.notes.size() == 1);
  CHECK_THROWS_AS(measured("agreement:[zero]", "softmax"), Skip);
  CHECK(contains(misuse_of([] { measured("agreement:[vq],[local]", "softmax"); }), "with names 2 methods"));
}

TEST_CASE("tilted softmax: softmax has no tilt, the Gaussian kernel has one of -|k|^2/2", "[unit]") {
  for (const Shape& shape : {Shape{.nq = 24, .nk = 24, .d = 4, .dv = 6}, causal(), causal(20)}) {
    CHECK(measured("tilted-softmax", "softmax", "gaussian", shape)["difference_to_tilted"] < tolerance);
    const auto rbf = measured("tilted-softmax:key_norms=-0.5", "rbf", "gaussian", shape);
    CHECK(rbf["difference_to_tilted"] < tolerance);
    CHECK(rbf["difference_to_softmax"] > 0.01);
    CHECK(std::abs(rbf["tilted_to_softmax"] - rbf["difference_to_softmax"]) < tolerance);
    const auto flat = measured("tilted-softmax:logits=0", "uniform", "gaussian", shape);
    CHECK(flat["difference_to_tilted"] < tolerance);
  }
  CHECK(measured("tilted-softmax:key_norms=0.5", "rbf")["difference_to_tilted"] > 0.01);
}

TEST_CASE("logits of a rank: all of it leaves no error, less leaves what Eckart and Young say", "[unit]") {
  for (const Shape& shape : {Shape{.nq = 24, .nk = 24, .d = 4, .dv = 6}, causal(), causal(20)}) {
    const auto whole = measured("logits-of-rank:rank=4", "softmax", "gaussian", shape);
    CHECK(whole["relative_logits_error"] < tolerance);
    CHECK(whole["relative_output_error"] < tolerance);
    // |S - S_1|^2 = |S|^2 - sigma_1^2 under every mask.
    const auto first = measured("logits-of-rank:rank=1", "softmax", "gaussian", shape);
    const auto all = measured("rank:of=logits", "softmax", "gaussian", shape);
    const double share = all["spectral_norm"] / all["frobenius_norm"];
    CHECK(std::abs(first["relative_logits_error"] - std::sqrt(1 - share * share)) < tolerance);
    CHECK(first["relative_output_error"] > 0.01);
  }
  CHECK(contains(misuse_of([] { measured("logits-of-rank", "uniform"); }), "expected --method softmax"));
  CHECK(contains(misuse_of([] { measured("logits-of-rank:rank=5", "softmax"); }), "rank 4 at most"));
}

}  // namespace attnbench::agreement_test
