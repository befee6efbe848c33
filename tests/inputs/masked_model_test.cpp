// The inputs `model` and `masked-model` on weights and texts without captures, with models of two layers that are small
// enough to write here.
#include <cmath>
#include <cstdlib>

#include "harness/inputs/byte_lm.hpp"
#include "harness/inputs/input.hpp"
#include "harness/inputs/write_safetensors.hpp"
#include "tests/catch.hpp"
#include "tests/folder.hpp"
#include "tests/misuse.hpp"

namespace attnbench::masked_model_test {

namespace {

constexpr Index heads = 3, d = 2, width = heads * d, length = 12;

// Numbers that have no pattern: sin(i + phase) scaled.
Tensor wavy(std::vector<Index> shape, double phase, double scale = 1) {
  Tensor tensor{std::move(shape), {}};
  Index count = 1;
  for (const Index axis : tensor.shape) count *= axis;
  for (Index i = 0; i < count; ++i) tensor.values.push_back(scale * std::sin(static_cast<double>(i * i) + phase));
  return tensor;
}

NamedTensors weights(double causal, double number_of_heads = heads) {
  NamedTensors tensors{{"embedding.weight", wavy({256, width}, 0)},
                       {"attention.causal", {{1}, {causal}}},
                       {"attention.heads", {{1}, {number_of_heads}}}};
  const auto add_norm = [&](const std::string& name) {
    tensors[name + ".weight"] = {{width}, std::vector<double>(width, 1.0)};
    tensors[name + ".bias"] = {{width}, std::vector<double>(width, 0.0)};
  };
  add_norm("norm");
  for (const std::string layer : {"layers.0.", "layers.1."}) {
    add_norm(layer + "attention_norm");
    add_norm(layer + "feed_forward_norm");
    tensors[layer + "attention.qkv.weight"] = wavy({3 * width, width}, 1);
    tensors[layer + "attention.out.weight"] = wavy({width, width}, 2);
    tensors[layer + "up.weight"] = wavy({8, width}, 3);
    tensors[layer + "up.bias"] = wavy({8}, 4);
    tensors[layer + "down.weight"] = wavy({width, 8}, 5);
    tensors[layer + "down.bias"] = wavy({width}, 6);
  }
  return tensors;
}

// Three texts of which the second differs from the first in its last byte.
void write_model(const Folder& folder, const NamedTensors& tensors) {
  write_safetensors(folder / "weights.safetensors", tensors, Precision::f64);
  write_safetensors(folder / "initial.safetensors", tensors, Precision::f64);
  Tensor bytes{{3, length}, {}};
  for (Index text = 0; text < 3; ++text)
    for (Index i = 0; i < length; ++i) {
      const Index byte = text == 2 ? 200 - i : text == 1 && i + 1 == length ? 99 : 40 + 3 * i;
      bytes.values.push_back(static_cast<double>(byte));
    }
  Tensor calibration{{1, length}, std::vector<double>(length, 7)};
  write_safetensors(folder / "texts.safetensors", {{"bytes", bytes}, {"calibration", calibration}}, Precision::f64);
}

class Chosen {
 public:
  Chosen(const char* variable, const Folder& folder) : variable_(variable) {
    setenv(variable, folder.path().c_str(), 1);
  }
  Chosen(const Chosen&) = delete;
  Chosen& operator=(const Chosen&) = delete;
  ~Chosen() { unsetenv(variable_); }

 private:
  const char* variable_;
};

HeadData<double> drawn(const std::string& spec, Index replicate, Index n = length,
                       Purpose purpose = Purpose::measured) {
  const Params params("inputs", spec);
  return find<InputEntry>(params.name())
      .draw(params,
            {.nq = n, .nk = n, .d = d, .dv = d, .streams = Streams(1), .replicate = replicate, .purpose = purpose});
}

}  // namespace

TEST_CASE("a model without captures says its sizes, and its texts are replicates", "[unit]") {
  const Folder folder;
  write_model(folder, weights(0));
  const Chosen chosen("ATTNBENCH_MASKED_MODEL", folder);
  const auto& entry = find<InputEntry>("masked-model");
  CHECK(!entry.causal_by_default);
  const InputLimits limits = entry.limits(Params("inputs", "masked-model:layer=1"));
  CHECK((limits.queries == length && limits.keys == length && limits.d == d && limits.dv == d));
  CHECK((limits.heads == heads && limits.replicates == 3));
  CHECK(contains(misuse_of([&] { entry.limits(Params("inputs", "masked-model:layer=2")); }), "a layer from 0 to 1"));
  CHECK(contains(misuse_of([&] { entry.limits(Params("inputs", "masked-model:layer=1,text=3")); }), "from 0 to 2"));
  CHECK(entry.content(Params("inputs", "masked-model:layer=1")).size() == 3 * 16);
}

TEST_CASE("a token of the bidirectional model has seen the last byte of its text, one of the causal model has not",
          "[unit]") {
  const Folder masked, causal;
  write_model(masked, weights(0));
  write_model(causal, weights(1));
  const Chosen one("ATTNBENCH_MASKED_MODEL", masked), other("ATTNBENCH_MODEL", causal);
  const auto change = [&](const std::string& spec, Index n) {
    return (drawn(spec, 0, n).Q - drawn(spec, 1, n).Q).norm();
  };
  // The two texts differ in their last byte, which n = 4 leaves out.
  CHECK(change("masked-model:layer=1,head=0", 4) > 1e-3);
  CHECK(change("model:layer=1,head=0", 4) == 0);
  CHECK(change("model:layer=1,head=0", length) > 1e-3);
  // Before the first attention no token has seen another.
  CHECK(change("masked-model:layer=0,head=0", 4) == 0);
  // The first tokens are those of the whole text.
  const auto whole = drawn("masked-model:layer=1,head=2", 2), part = drawn("masked-model:layer=1,head=2", 2, 4);
  CHECK(part.Q == whole.Q.topRows(4));
  CHECK(part.V == whole.V.topRows(4));
}

TEST_CASE("the calibration text of a model without captures is the one in its file", "[unit]") {
  const Folder folder;
  write_model(folder, weights(0));
  const Chosen chosen("ATTNBENCH_MASKED_MODEL", folder);
  // A text of one byte repeated: all values are the same.
  const Matrix<double> V = drawn("masked-model:layer=0,head=1", 0, length, Purpose::calibration).V;
  for (Index i = 1; i < length; ++i) CHECK(V.row(i) == V.row(0));
  CHECK(drawn("masked-model:layer=0,head=1", 0).V.row(1) != drawn("masked-model:layer=0,head=1", 0).V.row(0));
}

TEST_CASE("a model of the other kind, no heads and no weights are refused", "[unit]") {
  const Folder folder;
  const Chosen chosen("ATTNBENCH_MASKED_MODEL", folder);
  const auto refused = [&] { return misuse_of([] { drawn("masked-model:layer=1", 0); }); };
  CHECK(contains(refused(), "make it with scripts/train_byte_lm.py --masked, or set ATTNBENCH_MASKED_MODEL"));
  write_model(folder, weights(1));
  CHECK(contains(refused(), "is causal, expected one that is bidirectional"));
  write_model(folder, weights(0.5));
  CHECK(contains(refused(), "'attention.causal' is 0.5, expected an integer from 0 to 1"));
  write_model(folder, weights(0, 0));
  CHECK(contains(refused(), "'attention.heads' is 0, expected an integer from 1 to 6"));
  write_model(folder, weights(0, 4));
  CHECK(contains(refused(), "an embedding of 256 x 6 for 4 heads"));
}

}  // namespace attnbench::masked_model_test
