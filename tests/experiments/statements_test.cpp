// Experiments behind statements of the sources: known answers, and what each must tell apart.
#include <cmath>
#include <map>
#include <numbers>

#include "harness/experiment/experiment.hpp"
#include "tests/experiments/measured.hpp"
#include "tests/misuse.hpp"
#include "tests/scores.hpp"

namespace attnbench::statements_test {

namespace {

struct Setting {
  std::string input = "gaussian";
  Index n = 24, d = 8;
  bool causal = false;
  std::uint64_t seed = 1;
  Precision precision = Precision::f64;
};

Cell cell_of(const std::string& experiment, const std::string& method, const Setting& s) {
  return {.experiment = Params("experiments", experiment),
          .method = Params("methods", method),
          .input = Params("inputs", s.input),
          .problem = {.shape = {.nq = s.n,
                                .nk = s.n,
                                .d = s.d,
                                .dv = s.d,
                                .mask = {.causal = s.causal},
                                .precision = s.precision}},
          .seed = s.seed};
}

Measured measured(const std::string& experiment, const std::string& method, const Setting& s = {}) {
  return measured(cell_of(experiment, method, s));
}

}  // namespace

TEST_CASE("dependence: what is not read changes nothing, and what is read does", "[unit]") {
  const auto change = [](const std::string& method, const std::string& by) {
    return measured("dependence", method)["change_by_" + by];
  };
  for (const auto* method : {"identity", "uniform", "synthesizer", "fnet"}) {
    INFO(method);
    CHECK(change(method, "queries") == 0);
    CHECK(change(method, "keys") == 0);
    CHECK(change(method, "values") > 0.1);
  }
  CHECK(change("reformer", "keys") == 0);
  CHECK(change("reformer", "queries") > 0.1);
  CHECK(change("synthesizer:kind=dense", "keys") == 0);
  CHECK(change("synthesizer:kind=dense", "queries") > 0.1);
  for (const auto* by : {"queries", "keys", "values"}) CHECK(change("softmax", by) > 0.1);
}

TEST_CASE("collisions: shares follow the law of their buckets, and not that of others", "[statistics]") {
  constexpr double draws = 4096, theta = 1;
  const double half_space = 1 - theta / std::numbers::pi;
  const std::map<std::string, double> law{{"reformer:buckets=2,rounds=1", half_space},
                                          {"reformer:buckets=4,rounds=1", half_space * half_space},
                                          {"reformer:buckets=2,rounds=3", 1 - std::pow(1 - half_space, 3)}};
  const auto z = [&](double share, double P) { return (share - P) / std::sqrt(P * (1 - P) / draws); };
  Scores scores, planted;
  for (const auto seed : base_seeds)
    for (const auto& [method, P] : law) {
      const auto found =
          measured("collisions:draws=4096", method, {.input = "pair:angle=1", .n = 1, .d = 6, .seed = seed});
      CHECK(std::abs(found["collision_rate_theory"] - P) < 1e-12);
      CHECK(std::abs(found["angle"] - theta) < 1e-12);
      scores.push_back({method, z(found["collision_rate"], P)});
      for (const auto& [other, wrong] : law)
        if (other != method) planted.push_back({method + " as " + other, z(found["collision_rate"], wrong)});
    }
  check_family(scores);
  for (const Score& score : planted) check_found(score.what, {score}, threshold(scores));
}

TEST_CASE("collisions: no law for many buckets, and methods that hash alone", "[unit]") {
  const auto many = measured("collisions:draws=16", "reformer:buckets=8", {.input = "pair", .n = 1});
  CHECK_FALSE(many.has("collision_rate_theory"));
  CHECK(many["collision_rate"] == 1);  // an angle of 0
  CHECK(misuse_of([] { measured("collisions", "softmax"); }).find("buckets") != std::string::npos);
}

TEST_CASE("FNet twice is the even part, which is off the reversal by the odd one", "[unit]") {
  for (const Index n : {1, 7, 24}) {
    const auto found = measured("fourier-twice", "fnet", {.n = n, .d = 6});
    CHECK(found["to_even_part"] < 1e-13);
    CHECK(found["complex_to_reversal"] < 1e-13);
    CHECK(found["odd_part_kept"] < 1e-13);
    CHECK(std::abs(found["to_reversal"] - found["share_of_odd_part"]) < 1e-13);
    CHECK(found["share_of_odd_part"] > 0.1);
  }
  CHECK(misuse_of([] { measured("fourier-twice", "mixer"); }).find("fnet") != std::string::npos);
}

TEST_CASE("published gradients are those of numerators, and of values", "[unit]") {
  const auto found = measured("gradients", "linear", {.causal = true});
  for (const auto* of : {"queries", "keys", "values"}) {
    INFO(of);
    CHECK(found[std::string("numerator_error_") + of] < 1e-6);
    CHECK(found[std::string("whole_error_") + of] < 1e-6);
  }
  CHECK(found["published_error_values"] < 1e-6);
  CHECK(found["published_error_queries"] > 0.05);
  CHECK(found["published_error_keys"] > 0.05);
  CHECK(misuse_of([] { measured("gradients", "linear"); }).find("without a mask") != std::string::npos);
  CHECK(misuse_of([] { measured("gradients", "performer", {.causal = true}); }).find("linear") != std::string::npos);
}

TEST_CASE("gradient rounding is float's: none where V is copied, more where keys are subtracted", "[unit]") {
  const auto error = [](const std::string& method, Index n) {
    return measured("gradient-rounding", method,
                    {.n = n, .causal = true, .precision = Precision::f32})["gradient_error"];
  };
  CHECK(error("identity", 48) == 0);  // the gradient of V is G, and the others are zero
  CHECK(error("linear", 48) > 1e-8);  // half a unit in float's last place is 6e-8
  CHECK(error("linear", 48) < 1e-5);
  CHECK(error("linear:backward=subtract", 512) > 2 * error("linear", 512));
  CHECK(misuse_of([] { measured("gradient-rounding", "linear", {.causal = true}); }).find("f32") != std::string::npos);
}

TEST_CASE("zero gradients: ReLU has none for negative entries, and elu + 1 has one for each", "[unit]") {
  const auto zeros = [](const std::string& method, const std::string& input, bool causal) {
    const auto found = measured("zero-gradients", method, {.input = input, .n = 48, .causal = causal});
    return std::pair{found["zero_gradients"], found["negative_entries"]};
  };
  for (const bool causal : {false, true}) {
    INFO((causal ? "causal" : "bidirectional"));
    for (const auto* elu : {"linear", "linear:inputs=unscaled"}) CHECK(zeros(elu, "gaussian", causal).first == 0);
    for (const auto* relu : {"linear:features=relu", "linear:features=relu,inputs=unscaled"}) {
      const auto [zero, negative] = zeros(relu, "gaussian", causal);
      CHECK(negative > 0.4);
      CHECK(zero >= negative);
      CHECK(zeros(relu, "signs:positive=1", causal).first == 0);  // no entry is negative
    }
  }
  const auto [zero, negative] = zeros("linear:features=relu", "gaussian", false);
  CHECK(zero == negative);  // every channel is positive in some token
}

TEST_CASE("wider keys: a Performer's features with the norm, and without it where keys have one norm", "[unit]") {
  const auto distance = [](const std::string& norms, const std::string& input) {
    return measured("wider-keys:norms=" + norms, "performer:m=16", {.input = input})["distance"];
  };
  CHECK(distance("true", "gaussian") < 1e-9);
  CHECK(distance("true", "sphere") < 1e-9);
  CHECK(distance("false", "sphere") < 1e-9);
  CHECK(distance("false", "gaussian") > 0.1);
}

TEST_CASE("a base layer's attention costs the feed-forward part at n = 1536 and all the rest at 4608", "[unit]") {
  const auto at = [](Index n) { return measured("layer-flops", "softmax", {.n = n, .d = 64}); };
  CHECK(at(1536)["with_projections_over_feed_forward"] == 1);
  CHECK(at(4608)["over_rest"] == 1);
  CHECK(at(1536)["feed_forward_flops"] == 16.0 * 1536 * 768 * 768);
  CHECK(measured("layer-flops", "identity", {.d = 64})["attention_flops"] == 0);
}

}  // namespace attnbench::statements_test
