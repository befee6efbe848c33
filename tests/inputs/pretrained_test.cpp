// The input `pretrained`: its files, and the numbers that scripts/capture_pretrained.py computed from the same heads.
#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "harness/core/registry.hpp"
#include "harness/inputs/input.hpp"
#include "harness/inputs/tensor_file.hpp"
#include "harness/runner/plan.hpp"
#include "tests/catch.hpp"
#include "tests/misuse.hpp"

namespace attnbench::pretrained_test {

namespace {

const std::filesystem::path folder = std::filesystem::path(ATTNBENCH_SOURCE_DIR) / "harness/inputs/pretrained";
const std::vector<std::string> models{"minilm", "smollm2", "whisper-encoder", "whisper-decoder"};

nlohmann::json described(const std::string& model) {
  std::ifstream stream(folder / (model + ".json"));
  return nlohmann::json::parse(stream);
}

Params spec_of(const std::string& model, const nlohmann::json& head, const std::string& further = "") {
  return {"inputs", fmt::format("pretrained:model={},layer={},head={}{}", model, head.at("layer").get<int>(),
                                head.at("head").get<int>(), further)};
}

InputLimits limits_of(const Params& params) { return find<InputEntry>("pretrained").limits(params); }

HeadData<double> drawn(const Params& params, Index replicate, Purpose purpose, Index further = 0) {
  const InputLimits limits = limits_of(params);
  return find<InputEntry>("pretrained")
      .draw(params, {.nq = limits.queries,
                     .nk = limits.keys,
                     .d = limits.d,
                     .dv = limits.dv,
                     .streams = Streams(1),
                     .head = further,
                     .replicate = replicate,
                     .purpose = purpose});
}

// The mean over rows of the entropy of softmax(Q K^T / sqrt(d)), row by row in plain loops.
double entropy(const HeadData<double>& head, bool causal) {
  double sum = 0;
  for (Index i = 0; i < head.Q.rows(); ++i) {
    const Index seen = causal ? i + 1 : head.K.rows();
    std::vector<double> logits;
    for (Index j = 0; j < seen; ++j)
      logits.push_back(head.Q.row(i).dot(head.K.row(j)) / std::sqrt(static_cast<double>(head.Q.cols())));
    const double most = *std::max_element(logits.begin(), logits.end());
    double total = 0;
    for (const double logit : logits) total += std::exp(logit - most);
    for (const double logit : logits) sum -= std::exp(logit - most) / total * (logit - most - std::log(total));
  }
  return sum / static_cast<double>(head.Q.rows());
}

}  // namespace

TEST_CASE("pretrained: heads have the entropies that were computed where they were captured", "[unit]") {
  for (const std::string& model : models) {
    const auto json = described(model);
    for (const auto& head : json.at("heads")) {
      const Params params = spec_of(model, head);
      INFO(params.spec());
      // Of float16 against float32: a logit of 30 moves by 0.01 at most, and the entropy by less than that.
      const double found = entropy(drawn(params, 0, Purpose::calibration), json.at("causal"));
      CHECK(std::abs(found - head.at("entropy").get<double>()) < 0.01);
    }
  }
}

TEST_CASE("pretrained: replicates read the measured texts, and fitted methods another one", "[unit]") {
  for (const std::string& model : models) {
    const auto json = described(model);
    Index measured = 0;
    for (const auto& text : json.at("texts")) measured += text.at("purpose") == "measured";
    const Params each = spec_of(model, json.at("heads").at(0));
    INFO(each.spec());
    CHECK(limits_of(each).replicates == measured);
    CHECK(limits_of(spec_of(model, json.at("heads").at(0), ",text=1")).replicates == 0);
    const Params repeated = spec_of(model, json.at("heads").at(0), ",repeat=true");
    CHECK(limits_of(repeated).replicates == 0);
    CHECK(place_of(repeated).replicate == "draw");
    CHECK(place_of(repeated).texts == measured);
    CHECK(contains(misuse_of([&] { limits_of(spec_of(model, json.at("heads").at(0), ",repeat=true,text=1")); }),
                   "leave one of them out"));
    std::set<double> sums{drawn(each, 0, Purpose::calibration).V.sum()};  // the first tokens may be equal
    for (Index replicate = 0; replicate < measured; ++replicate) {
      const double sum = drawn(each, replicate, Purpose::measured).V.sum();
      sums.insert(sum);
      const Params one = spec_of(model, json.at("heads").at(0), fmt::format(",text={}", replicate));
      CHECK(drawn(one, 5, Purpose::measured).V.sum() == sum);
      CHECK(drawn(repeated, replicate + 3 * measured, Purpose::measured).V.sum() == sum);
    }
    CHECK(std::ssize(sums) == measured + 1);
  }
}

TEST_CASE("pretrained: a decoder's heads are causal unless the request says otherwise, and an encoder's are not",
          "[unit]") {
  for (const std::string& model : models) {
    RunRequest request{.experiment = "rank", .methods = {"softmax"}, .inputs = {"pretrained:model=" + model}};
    const bool decoder = model == "whisper-decoder" || model == "smollm2";
    CHECK(expand(request).front().problem.shape.mask.causal == decoder);
    request.causal = !decoder;
    CHECK(expand(request).front().problem.shape.mask.causal == *request.causal);
  }
}

TEST_CASE("pretrained: queries and keys before rotary positions are those after them when they are turned", "[unit]") {
  const auto json = described("smollm2");
  const HeadData<double> after = drawn(spec_of("smollm2", json.at("heads").at(1)), 0, Purpose::measured),
                         before =
                             drawn(spec_of("smollm2", json.at("heads").at(1), ",rope=before"), 0, Purpose::measured);
  CHECK(before.V == after.V);
  CHECK((before.K - after.K).norm() > 0.1 * after.K.norm());
  for (const auto& [turned, original] : {std::pair{&after.Q, &before.Q}, {&after.K, &before.K}})
    for (Index i = 0; i < original->rows(); ++i)
      for (Index c = 0; c < 32; ++c) {
        const double angle = static_cast<double>(i) / std::pow(100'000, static_cast<double>(c) / 32);
        const double x = (*original)(i, c), y = (*original)(i, c + 32);
        REQUIRE(std::abs((*turned)(i, c) - (x * std::cos(angle) - y * std::sin(angle))) < 1e-12 * (1 + std::abs(x)));
        REQUIRE(std::abs((*turned)(i, c + 32) - (x * std::sin(angle) + y * std::cos(angle))) <
                1e-12 * (1 + std::abs(y)));
      }
  CHECK(contains(misuse_of([&] { limits_of(Params("inputs", "pretrained:rope=before")); }), "no rotary positions"));
}

TEST_CASE("pretrained: further heads follow in the order of the file", "[unit]") {
  const auto json = described("minilm");
  const Params first("inputs", "pretrained");
  for (size_t i = 0; i < json.at("heads").size(); ++i) {
    const Params named = spec_of("minilm", json.at("heads").at(i));
    CHECK(drawn(named, 0, Purpose::measured).Q == drawn(first, 0, Purpose::measured, static_cast<Index>(i)).Q);
  }
  CHECK(contains(misuse_of([&] { drawn(first, 0, Purpose::measured, 6); }), "with 6 further heads"));
}

TEST_CASE("pretrained: what is not in the files is refused, with what is there", "[unit]") {
  const auto refusal = [](const std::string& spec) {
    return misuse_of([&] { limits_of(Params("inputs", "pretrained:" + spec)); });
  };
  CHECK(contains(refusal("model=bert"), "expected one of minilm, smollm2, whisper-decoder, whisper-encoder"));
  CHECK(contains(refusal("layer=9"), "layer=0,head=2; layer=0,head=11"));
  CHECK(contains(refusal("layer=0,head=3"), "minilm has layer=0,head=2"));
  CHECK(contains(refusal("text=8"), "expected one from 0 to 7"));
  CHECK(contains(refusal("model=whisper-encoder,text=2"), "expected one from 0 to 1"));
  CHECK(limits_of(Params("inputs", "pretrained:model=whisper-encoder")).keys == 1500);
}

}  // namespace attnbench::pretrained_test
