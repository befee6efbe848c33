// The experiment `depth`: what it records, of whom, and what it refuses.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "experiments/depth_layers.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/measured.hpp"
#include "tests/misuse.hpp"

namespace attnbench::depth_test {

namespace {

constexpr double slack = 1e-12;  // for rounding

struct Asked {
  std::string options = "", method = "softmax", input = "gaussian";
  Index n = 24, d = 8;
  bool causal = false;
  Index replicate = 0, heads = 1;
  Precision precision = Precision::f64;
};

Cell cell_of(const Asked& asked) {
  const Index d = asked.input.starts_with("model") ? 64 : asked.d;
  return {.experiment = Params("experiments", "depth" + (asked.options.empty() ? "" : ":" + asked.options)),
          .method = Params("methods", asked.method),
          .input = Params("inputs", asked.input),
          .problem = {.shape = {.nq = asked.n,
                                .nk = asked.n,
                                .d = d,
                                .dv = d,
                                .mask = {.causal = asked.causal},
                                .precision = asked.precision},
                      .heads = asked.heads}};
}

Measured measured(const Asked& asked) { return measured(cell_of(asked), asked.replicate); }

std::string skip_of(const Asked& asked) { return skip_of(cell_of(asked)); }

bool never_rises(const std::vector<double>& values) {
  return std::is_sorted(values.begin(), values.end(), std::greater<>());
}

}  // namespace

TEST_CASE("softmax in every layer has no error, on laws and on the model", "[unit]") {
  for (const std::string input : {"gaussian", "model", "model:weights=initial"})
    for (const bool causal : {false, true}) {
      CAPTURE(input, causal);
      const auto found = measured({.options = "matrix=false", .input = input, .causal = causal}).values;
      CHECK(found.at("output_error") == std::vector<double>(4, 0.0));
      CHECK(found.at("residual_composite").size() == 5);
      CHECK_FALSE(found.contains("dobrushin"));
    }
}

TEST_CASE("an approximation errs from its first layer on, and only one layer when only that has it", "[unit]") {
  for (const std::string input : {"gaussian", "model"}) {
    CAPTURE(input);
    const Asked asked{.options = "matrix=false", .method = "performer:m=8", .input = input, .causal = true};
    const auto all = measured(asked).values.at("output_error");
    CHECK(std::all_of(all.begin(), all.end(), [](double e) { return e > 1e-6; }));
    auto once = asked;
    once.options += ",approximate=first";
    const auto first = measured(once).values.at("output_error");
    CHECK(first.front() == all.front());
    CHECK(first.back() != all.back());
    CHECK(measured(asked).values.at("output_error") == all);  // the same numbers again
    auto other = asked;
    other.replicate = 1;
    CHECK(measured(other).values.at("output_error") != all);
  }
}

TEST_CASE("every layer and head draws its method anew, the same in every run", "[unit]") {
  const Cell cell = cell_of({.method = "performer:m=8", .n = 6});
  Context context;
  ExactCache exact;
  const Task task{cell, 0, context, exact};
  const DepthLayers layers(task);
  const auto head = draw_cell_head(cell, 0, 0, Purpose::measured);
  const auto output = [&](Index layer, Index place) {
    Matrix<double> out(head.Q.rows(), head.V.cols());
    layers.method(layer, place, nullptr)->attend(head.view(), {}, context, out);
    return out;
  };
  CHECK(output(0, 0) == output(0, 0));
  CHECK(output(1, 0) != output(0, 0));
  CHECK(output(0, 1) != output(0, 0));
}

TEST_CASE("queries and keys each carry the root of the logits' scale", "[unit]") {
  const auto first_head = [](double logit_scale) {
    Cell cell = cell_of({});
    cell.problem.logit_scale = logit_scale;
    Context context;
    ExactCache exact;
    const Task task{cell, 0, context, exact};
    const DepthLayers layers(task);
    std::vector<HeadData<double>> seen;
    layers.states(context, {}, Purpose::measured, [&](Index layer, Index head, const HeadData<double>& drawn) {
      seen.push_back(drawn);
      return layers.exact()(layer, head, drawn);
    });
    return seen.at(0);
  };
  const HeadData<double> usual = first_head(1), four_times = first_head(4);
  CHECK(four_times.Q.isApprox(2 * usual.Q, slack));
  CHECK(four_times.K.isApprox(2 * usual.K, slack));
  CHECK(four_times.V == usual.V);
}

TEST_CASE("coefficients contract, products' ranks fall, and the bound holds", "[unit]") {
  for (const std::string input : {"gaussian", "model"})
    for (const std::string method : {"softmax", "linear", "performer:m=16", "uniform", "synthesizer:kind=dense"}) {
      CAPTURE(input, method);
      const auto found =
          measured({.options = "skip=false,feed_forward=false", .method = method, .input = input}).values;
      const auto &of_layer = found.at("dobrushin"), &of_product = found.at("dobrushin_product"),
                 &bound = found.at("dobrushin_bound");
      REQUIRE(of_layer.size() == 4);
      for (size_t l = 0; l < 4; ++l) {
        CHECK(of_layer[l] <= 1 + slack);
        CHECK(of_product[l] <= bound[l] + slack);
      }
      CHECK(never_rises(found.at("product_numerical_rank")));
    }
  CHECK(measured({.options = "layers=1", .method = "uniform"}).values.at("product_numerical_rank")[0] == 1);
}

TEST_CASE("attention alone collapses and what is around it prevents that", "[unit]") {
  const auto last = [](const std::string& options) {
    return measured({.options = options + ",layers=6,matrix=false", .n = 48, .d = 16}).values.at("final_residual")[0];
  };
  CHECK(last("skip=false,feed_forward=false") < 1e-6);
  CHECK(last("skip=false,feed_forward=false,norm=false") < 1e-6);
  CHECK(last("skip=true,feed_forward=true") > 0.1);
}

TEST_CASE("methods without an attention matrix have residuals and errors, and a note instead of ranks", "[unit]") {
  for (const std::string method : {"fnet", "mixer:hidden=16,residual=false", "gmlp"}) {
    CAPTURE(method);
    const auto found = measured({.method = method});
    CHECK(found.values.at("residual_composite").size() == 5);
    CHECK(found.values.at("output_error").size() == 4);
    CHECK_FALSE(found.values.contains("dobrushin"));
    REQUIRE(found.notes.size() == 1);
    CHECK(contains(found.notes[0], "no attention matrix"));
  }
}

TEST_CASE("fitted methods learn from the calibration tokens of their layer", "[unit]") {
  for (const std::string input : {"gaussian", "model"}) {
    const auto few = measured({.options = "matrix=false", .method = "vq:codes=4", .input = input}).values,
               all = measured({.options = "matrix=false", .method = "vq:codes=24", .input = input}).values;
    CHECK(few.at("final_output_error")[0] > 0);
    // The first layer of the model attends to all tokens alike, so that the number of codes does not matter there.
    for (size_t layer = input == "model" ? 1 : 0; layer < all.at("output_error").size(); ++layer)
      CHECK(all.at("output_error")[layer] < few.at("output_error")[layer]);
  }
}

TEST_CASE("one token, equal tokens and what cannot be composed", "[unit]") {
  const auto one = measured({.n = 1}).values;
  CHECK(one.at("residual_composite") == std::vector<double>(5, 0.0));
  CHECK(one.at("dobrushin") == std::vector<double>(4, 0.0));
  const auto zero = measured({.options = "skip=false,feed_forward=false", .method = "zero"}).values;
  CHECK(zero.at("final_residual")[0] == 0);  // of X = 0
  CHECK(zero.at("output_error")[0] == Approx(1));
  CHECK(contains(misuse_of([] { measured({.options = "layers=0"}); }), "layers"));
  CHECK(contains(skip_of({.options = "layers=5", .input = "model"}), "the model has 4"));
  CHECK(contains(skip_of({.heads = 3}), "--heads 1"));
  CHECK(contains(skip_of({.precision = Precision::f32}), "f64"));
  CHECK(contains(skip_of({.method = "nystrom", .causal = true}), "landmark"));
  CHECK(contains(misuse_of([] { measured({.input = "model", .n = 2000}); }), "1024 bytes"));
}

}  // namespace attnbench::depth_test
