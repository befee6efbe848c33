// The project's byte-level transformer in C++ against its captures, and the input `model` before training.
//
// The tolerance of the captures: both they and the stored weights are float16, whose rounding changes a number by at
// most 2^-11 of it (root mean square about 2^-12). A product with rounded weights and its own rounding add up to
// 2^-10 at most in the Frobenius norm; what earlier layers add is damped by LayerNorm and averaging (measured: 2.4e-4
// in layer 0 to 4.0e-4 in layer 3, so 2^-10 = 9.8e-4 leaves a factor of two). The planted errors are off by more than
// 0.02, twenty times the bound.
#include <algorithm>
#include <cmath>
#include <set>

#include "harness/core/approximation.hpp"
#include "harness/errors/error.hpp"
#include "harness/inputs/byte_lm.hpp"
#include "harness/inputs/input.hpp"
#include "harness/inputs/write_safetensors.hpp"
#include "tests/catch.hpp"
#include "tests/folder.hpp"
#include "tests/misuse.hpp"

namespace attnbench::transformer_test {

namespace {

const std::filesystem::path folder = std::filesystem::path(ATTNBENCH_SOURCE_DIR) / "harness/inputs/model";
constexpr double two_roundings = 1.0 / 1024;

const AttentionFile& captured() {
  static const AttentionFile file = read_attention_file(folder / "measured.safetensors");
  return file;
}

const ByteModel& trained() {
  static const ByteModel model = read_byte_model(folder / "weights.safetensors");
  return model;
}

const std::vector<Index>& text() {
  static const std::vector<Index> bytes = [] {
    Context context;
    return bytes_of(context, trained(), captured());
  }();
  return bytes;
}

double distance(const Matrix<double>& X, const Matrix<double>& Y) { return (X - Y).norm() / Y.norm(); }

// The greatest relative distance of q, k and v of any layer and head to the captures, over the first tokens.
double farthest(const ByteModel& model, size_t tokens) {
  Context context;
  const std::vector<Index> bytes(text().begin(), text().begin() + static_cast<std::ptrdiff_t>(tokens));
  const AttentionFile found = heads_of(context, model, bytes);
  double most = 0;
  for (Index l = 0; l < found.batches; ++l)
    for (Index h = 0; h < found.heads; ++h) {
      const auto x = found.head(l, h), y = captured().head(l, h);
      const auto n = static_cast<Index>(tokens);
      most = std::max({most, distance(x.Q, row_block(y.Q, 0, n)), distance(x.K, row_block(y.K, 0, n)),
                       distance(x.V, row_block(y.V, 0, n))});
    }
  return most;
}

// The trained model with something planted.
template <class Plant>
ByteModel planted(const Plant& plant) {
  Transformer<double> changed = *trained().transformer;
  plant(changed);
  return {trained().embedding, std::make_shared<const Transformer<double>>(std::move(changed))};
}

InputRequest sixty_four_tokens(Index replicate) {
  return {.nq = 64, .nk = 64, .d = 64, .dv = 64, .streams = Streams(1), .replicate = replicate};
}

HeadData<double> model_head(const std::string& spec, Index replicate) {
  return find<InputEntry>("model").draw(Params("inputs", spec), sixty_four_tokens(replicate));
}

}  // namespace

TEST_CASE("the captured text reads as the source text it was made from", "[unit]") {
  REQUIRE(text().size() == 1024);
  std::string shown;
  for (const Index byte : text()) shown += static_cast<char>(byte);
  CHECK(shown.find("def ") != std::string::npos);
  CHECK(std::all_of(shown.begin(), shown.end(), [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); }));
}

TEST_CASE("the transformer gives the captured q, k and v of every layer and head", "[unit]") {
  CHECK(farthest(trained(), 1024) < two_roundings);
}

TEST_CASE("a transformer with a planted error is far from the captures", "[unit]") {
  const auto off = [](const auto& plant) { return farthest(planted(plant), 128); };
  CHECK(off([](Transformer<double>&) {}) < two_roundings);
  CHECK(off([](Transformer<double>& t) { t.rotary_frequencies.clear(); }) > 0.02);
  CHECK(off([](Transformer<double>& t) { t.layers[1].feed_forward_norm.shift.setZero(); }) > 0.02);
  CHECK(off([](Transformer<double>& t) { t.layers[0].attention_norm.scale.setOnes(); }) > 0.02);
  CHECK(off([](Transformer<double>& t) { t.layers[2].up_shift.setZero(); }) > 0.02);
  CHECK(off([](Transformer<double>& t) { t.layers[0].out = Matrix<double>::Zero(192, 192); }) > 0.02);
}

// Halves that trade places before the rotation and back after it are rotated the other way.
TEST_CASE("a rotation in the other sense is far from the captures", "[unit]") {
  const Index d = captured().d;
  const auto trade = [d](Matrix<double> X) {
    Matrix<double> other(X.rows(), d);
    other << X.rightCols(d / 2), X.leftCols(d / 2);
    return other;
  };
  const auto turned = planted([&](Transformer<double>& t) {
    Matrix<double> W = t.layers[0].queries.view();
    W.topRows(d) = trade(W.topRows(d).transpose()).transpose().eval();
    t.layers[0].queries = W;
  });
  Context context;
  const auto found = heads_of(context, turned, {text().begin(), text().begin() + 128});
  CHECK(distance(trade(found.head(0, 0).Q), captured().head(0, 0).Q.topRows(128)) > 0.02);
  CHECK(distance(found.head(0, 1).Q, captured().head(0, 1).Q.topRows(128)) < two_roundings);
}

TEST_CASE("captures of another model are refused", "[unit]") {
  Context context;
  const ByteModel initial = read_byte_model(folder / "initial.safetensors");
  CHECK(contains(misuse_of([&] { bytes_of(context, initial, captured()); }), "no byte of the trained weights"));
  CHECK(contains(misuse_of([&] { read_byte_model(folder / "measured.safetensors"); }), "embedding.weight"));
}

TEST_CASE("model: weights=initial gives the heads of the untrained model on the same text", "[unit]") {
  const auto drawn = [](const std::string& spec) { return model_head(spec, 0); };
  Context context;
  const ByteModel initial = read_byte_model(folder / "initial.safetensors");
  const auto heads = heads_of(context, initial, {text().begin(), text().begin() + 64});
  const auto first = drawn("model:layer=1,head=2,weights=initial");
  // All of the text or its beginning: a causal model cannot tell, but sums are rounded in another order.
  CHECK(distance(first.Q, heads.head(1, 2).Q) < 1e-12);
  CHECK(distance(first.V, heads.head(1, 2).V) < 1e-12);
  CHECK(distance(first.Q, captured().head(1, 2).Q.topRows(64)) > 0.5);
  CHECK(drawn("model:layer=1,head=2").Q == captured().head(1, 2).Q.topRows(64));
  // Weights of N(0, 0.02^2) and LayerNorm without effect yet: q of size 0.02 sqrt(192), 12,288 numbers for the mean.
  const auto all = drawn("model:layer=0,head=0,weights=initial");
  CHECK(all.Q.norm() / 64 == Approx(0.02 * std::sqrt(192)).epsilon(0.2));
}

TEST_CASE("there are 32 texts of the captured length, all different, and the first is the captured one", "[unit]") {
  const auto texts = read_texts(folder / "texts.safetensors");
  REQUIRE(texts.size() == 32);
  CHECK(texts[0] == text());
  CHECK(std::set<std::vector<Index>>(texts.begin(), texts.end()).size() == texts.size());
}

TEST_CASE("model: replicate r has the heads of text r, and a text that is named is that of every replicate", "[unit]") {
  const auto texts = read_texts(folder / "texts.safetensors");
  const ByteModel initial = read_byte_model(folder / "initial.safetensors");
  Context context;
  const AttentionFile of_seven = heads_of(context, trained(), texts[7]),
                      untrained = heads_of(context, initial, texts[7]);
  // As many tokens are computed as are asked for: sums are rounded in another order.
  const auto near = [](const HeadData<double>& drawn, const Head<double>& head) {
    return distance(drawn.Q, head.Q.topRows(64)) < 1e-12 && distance(drawn.K, head.K.topRows(64)) < 1e-12 &&
           distance(drawn.V, head.V.topRows(64)) < 1e-12;
  };
  const auto same = [](const HeadData<double>& drawn, const Head<double>& head) {
    return drawn.Q == head.Q.topRows(64) && drawn.K == head.K.topRows(64) && drawn.V == head.V.topRows(64);
  };
  for (const auto& [layer, head] : {std::pair<Index, Index>{0, 0}, {1, 2}, {3, 1}}) {
    const std::string spec = "model:layer=" + std::to_string(layer) + ",head=" + std::to_string(head);
    CHECK(near(model_head(spec, 7), of_seven.head(layer, head)));
    CHECK(near(model_head(spec + ",text=7", 0), of_seven.head(layer, head)));
    CHECK(near(model_head(spec + ",weights=initial", 7), untrained.head(layer, head)));
    CHECK(same(model_head(spec, 0), captured().head(layer, head)));  // as captured, bit for bit
    CHECK(same(model_head(spec + ",text=0", 7), captured().head(layer, head)));
    CHECK(distance(model_head(spec, 7).Q, captured().head(layer, head).Q.topRows(64)) > 0.1);
  }
}

TEST_CASE("model: what composes layers gets the tokens of the replicate's text", "[unit]") {
  const auto texts = read_texts(folder / "texts.safetensors");
  const auto tokens = [](const std::string& spec, Index replicate, Purpose purpose = Purpose::measured) {
    InputRequest request = sixty_four_tokens(replicate);
    request.purpose = purpose;
    return find<InputEntry>("model").transformer(Params("inputs", spec), request).X;
  };
  const Matrix<double> third = embedded(trained(), texts[3]).topRows(64);
  CHECK(tokens("model", 3) == third);
  CHECK(tokens("model:text=3", 0) == third);
  CHECK(tokens("model", 0) == embedded(trained(), text()).topRows(64));
  CHECK(tokens("model", 3, Purpose::calibration) == tokens("model", 0, Purpose::calibration));
  CHECK(tokens("model", 3, Purpose::calibration) != third);
}

TEST_CASE("model: there are as many replicates as texts, and no text that is not there", "[unit]") {
  const auto replicates = [](const std::string& spec) {
    return find<InputEntry>("model").limits(Params("inputs", spec)).replicates;
  };
  CHECK(replicates("model") == 32);
  CHECK(replicates("model:text=31") == 0);
  CHECK(contains(misuse_of([&] { replicates("model:text=32"); }), "from 0 to 31"));
  CHECK(contains(misuse_of([&] { model_head("model", 32); }), "text 32 was asked for"));
  CHECK(Params("inputs", "model:text=each").spec() == "model");
  CHECK(Params("inputs", "model:text=4").spec() == "model:text=4");
  CHECK(contains(misuse_of([] { Params("inputs", "model:text=-1"); }), "expected each or an integer from 0"));
  CHECK(contains(misuse_of([] { Params("inputs", "model:text=all"); }), "expected each or an integer from 0"));
}

TEST_CASE("a layer without a part leaves that part out, and numbers that are none have a place", "[unit]") {
  Context context;
  const Transformer<double>& transformer = *trained().transformer;
  const Matrix<double> X = embedded(trained(), {text().begin(), text().begin() + 8});
  const AttendHead<double> nothing = [](Index, Index, const auto&, Out<double> out) { out.setZero(); };
  const AttendHead<double> values = [](Index, Index head, const auto& heads, Out<double> out) {
    out = heads[static_cast<size_t>(head)].V;
  };
  // Heads that give 0: attention alone gives 0, and with the residual everything stays.
  CHECK(hidden_states(context, transformer, X, {false, false, true}, nothing).back().isZero(0));
  CHECK(hidden_states(context, transformer, X, {true, false, true}, nothing).back() == X);
  CHECK(hidden_states(context, transformer, X, {true, true, true}, nothing).back() != X);
  // Heads that give V: X Wv^T Wo^T, four times.
  Matrix<double> product = X;
  for (const auto& layer : transformer.layers)
    product = (product * layer.values.view().transpose() * layer.out.view().transpose()).eval();
  CHECK(distance(hidden_states(context, transformer, X, {false, false, false}, values).back(), product) < 1e-12);
  const AttendHead<double> bad = [](Index layer, Index, const auto&, Out<double> out) {
    out.setZero();
    if (layer == 2) out.row(3).setConstant(std::nan(""));
  };
  CHECK_THROWS_AS(hidden_states(context, transformer, X, {}, bad), NumericallyInvalid);
  try {
    hidden_states(context, transformer, X, {}, bad);
  } catch (const NumericallyInvalid& error) {
    CHECK(contains(error.what(), "after layer 3"));
    CHECK(contains(error.what(), "token 3, channel 0"));
  }
}

TEST_CASE("weights that are NaN, missing or of another size are refused by the name of their tensor", "[unit]") {
  const Folder temporary;
  const NamedTensors good = read_tensors(folder / "weights.safetensors");
  const auto refusal = [&](const auto& plant) {
    NamedTensors tensors = good;
    plant(tensors);
    write_safetensors(temporary / "weights.safetensors", tensors, Precision::f64);
    return misuse_of([&] { read_byte_model(temporary / "weights.safetensors"); });
  };
  const auto nan = refusal([](NamedTensors& t) { t.at("layers.1.up.bias").values[3] = std::nan(""); });
  CHECK(contains(nan, "'layers.1.up.bias' holds NaN or infinity; make the file again with scripts/train_byte_lm.py"));
  CHECK(contains(refusal([](NamedTensors& t) { t.erase("norm.weight"); }), "there is no tensor 'norm.weight'"));
  CHECK(contains(refusal([](NamedTensors& t) {
                   t["norm.bias"] = {{2}, {0, 0}};
                 }),
                 "'norm.bias' is 1 x 2, expected 1 x"));
}

}  // namespace attnbench::transformer_test
