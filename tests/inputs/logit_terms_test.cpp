// Inputs that add a term to the logits of another input: the logits of their coordinates are those of the formula,
// which is written out here with an n x n matrix. No number is random beside the heads themselves: tolerances are
// rounding.
#include <array>
#include <cmath>
#include <vector>

#include "harness/inputs/laws/input_stream.hpp"
#include "tests/catch.hpp"
#include "tests/folder.hpp"
#include "tests/misuse.hpp"

namespace attnbench::logit_terms_test {

namespace {

constexpr double rounding = 1e-12;

InputRequest sized(Index nq, Index nk, Index d) { return {.nq = nq, .nk = nk, .d = d, .dv = 3, .streams = Streams(1)}; }

HeadData<double> drawn(const std::string& spec, const InputRequest& request) {
  return draw_head(Params("inputs", spec), request);
}

Matrix<double> logits(const HeadData<double>& head) { return head.Q * head.K.transpose(); }

// Row i sees the keys up to its own place counted from the end.
Matrix<double> causal_weights(const Matrix<double>& S) {
  Matrix<double> A = Matrix<double>::Zero(S.rows(), S.cols());
  for (Index i = 0; i < S.rows(); ++i) {
    const Index seen = i + 1 + S.cols() - S.rows();
    A.row(i).head(seen) = (S.row(i).head(seen).array() - S.row(i).head(seen).maxCoeff()).exp();
    A.row(i) /= A.row(i).sum();
  }
  return A;
}

double difference(const Matrix<double>& A, const Matrix<double>& B) { return (A - B).cwiseAbs().maxCoeff(); }

}  // namespace

TEST_CASE("alibi takes slope (i - j) off a causal logit, and every key and value is that of the other input",
          "[unit]") {
  for (const Index nq : {12, 5})
    for (const double slope : {0.0, 0.25, 3.0}) {
      INFO("nq = " << nq << ", slope = " << slope);
      const Index nk = 12;
      const auto head = drawn("alibi:[gaussian:scale=1.5],slope=" + std::to_string(slope), sized(nq, nk, 7));
      const auto inner = drawn("gaussian:scale=1.5", sized(nq, nk, 6));
      Matrix<double> S = logits(inner);
      for (Index i = 0; i < nq; ++i)
        for (Index j = 0; j < nk; ++j) S(i, j) -= slope * static_cast<double>(nk - nq + i - j);
      CHECK(difference(causal_weights(logits(head)), causal_weights(S)) < rounding);
      CHECK(head.V == inner.V);
      CHECK(head.K(nk - 1, 6) == 0);  // no weight exp(s) is larger than without the term
    }
}

TEST_CASE("a sink logit adds one exponential to every denominator and no value", "[unit]") {
  for (const double logit : {0.0, 2.5, -1.0}) {
    INFO(logit);
    const Index n = 9;
    const auto head = drawn("sink-logit:[gaussian],logit=" + std::to_string(logit), sized(n, n, 6));
    const auto inner = drawn("gaussian", sized(n - 1, n - 1, 5));
    const Matrix<double> output = causal_weights(logits(head)) * head.V, S = logits(inner);
    CHECK(output.row(0).isZero(0));  // the sink's own row
    for (Index i = 0; i < n - 1; ++i) {
      const Matrix<double> weights = S.row(i).head(i + 1).array().exp();
      const Matrix<double> expected = weights * inner.V.topRows(i + 1) / (weights.sum() + std::exp(logit));
      CHECK(difference(output.row(i + 1), expected) < rounding);
    }
  }
  // With fewer queries than keys, the last tokens ask.
  const auto part = drawn("sink-logit:[gaussian]", sized(3, 9, 6)), inner = drawn("gaussian", sized(3, 8, 5));
  CHECK(difference(logits(part).rightCols(8), logits(inner)) < rounding);
  CHECK(logits(part).leftCols(1).isZero(0));
}

TEST_CASE("relative positions add (q + u).k and (q + v).W r(i - j), as Transformer-XL writes them", "[unit]") {
  const Index nk = 11;
  for (const auto& [nq, d, outer] :
       std::vector<std::array<Index, 3>>{{11, 6, 12}, {4, 6, 12}, {11, 5, 10}, {4, 5, 11}}) {
    const Params params("inputs", "relative-positions:[gaussian],strength=0.5");
    const InputRequest request = sized(nq, nk, outer);
    const auto inner = find<InputEntry>("gaussian").draw(Params("inputs", "gaussian"), sized(nq, nk, d));
    Generator generator = shared_stream(params, request, "terms");
    const Matrix<double> u = standard_normal(generator, 1, d), v = standard_normal(generator, 1, d),
                         W = 0.5 / std::sqrt(static_cast<double>(d)) * standard_normal(generator, d, d);
    Matrix<double> S(nq, nk);
    for (Index i = 0; i < nq; ++i)
      for (Index j = 0; j < nk; ++j) {
        Matrix<double> r = Matrix<double>::Zero(d, 1);
        for (Index c = 0; c < d / 2; ++c) {
          const double angle = static_cast<double>(nk - nq + i - j) /
                               std::pow(10000, 2.0 * static_cast<double>(c) / static_cast<double>(d));
          r(2 * c, 0) = std::sin(angle);
          r(2 * c + 1, 0) = std::cos(angle);
        }
        S(i, j) = ((inner.Q.row(i) + u) * inner.K.row(j).transpose() + (inner.Q.row(i) + v) * W * r)(0, 0) /
                  std::sqrt(static_cast<double>(d));
      }
    CHECK(difference(logits(draw_head(params, request)), S) < rounding);
  }
}

TEST_CASE("terms can be nested, and sizes, calibration and content are those of the inner input", "[unit]") {
  const auto both = drawn("alibi:[sink-logit:[gaussian]],slope=0.5", sized(6, 6, 8));
  const auto sink = drawn("sink-logit:[gaussian]", sized(6, 6, 7));
  CHECK(difference(logits(both).row(5), logits(sink).row(5) + Matrix<double>::NullaryExpr(1, 6, [](Index, Index j) {
                                          return -0.5 * static_cast<double>(5 - j);
                                        })) < rounding);
  const auto limits = [](const std::string& spec) {
    const Params params("inputs", spec);
    return find<InputEntry>(params.name()).limits(params);
  };
  const InputLimits own = limits("model"), alibi = limits("alibi:[model]"), sinks = limits("sink-logit:[model]"),
                    relative = limits("relative-positions:[model]");
  CHECK(alibi.d == own.d + 1);
  CHECK(alibi.dv == own.dv);
  CHECK((alibi.keys == own.keys && sinks.keys == own.keys + 1 && sinks.queries == own.queries + 1));
  CHECK(relative.d == 2 * own.d);
  CHECK((sinks.causal && relative.causal && !limits("sink-logit:[gaussian]").causal));
  CHECK(limits("alibi:[gaussian]").causal);
  const Params of_model("inputs", "alibi:[model]");
  CHECK(find<InputEntry>("alibi").content(of_model) == find<InputEntry>("model").content(Params("inputs", "model")));
  CHECK(has_calibration(of_model));
  CHECK(!has_calibration(Params("inputs", "alibi:[sink-logit:[file:path=heads.npz]]")));
}

TEST_CASE("sizes that leave nothing for the inner input are refused", "[unit]") {
  const auto refused = [](const std::string& spec, const InputRequest& request) {
    return misuse_of([&] { drawn(spec, request); });
  };
  CHECK(contains(refused("alibi", sized(4, 4, 1)), "leave 4 tokens of width 0 for gaussian; give larger sizes"));
  CHECK(contains(refused("sink-logit", sized(1, 1, 4)), "leave 0 tokens of width 3"));
  CHECK(contains(refused("relative-positions", sized(4, 4, 1)), "leave 4 tokens of width 0 for gaussian"));
  CHECK(
      contains(refused("alibi:[gaussian],[needle]", sized(4, 4, 4)), "2 inputs; expected one, as in alibi:[gaussian]"));
  CHECK(contains(refused("alibi:slope=-1", sized(4, 4, 4)), "slope"));
  CHECK(contains(refused("alibi:[gaussian],slope=nan", sized(4, 4, 4)), "slope"));
}

}  // namespace attnbench::logit_terms_test
