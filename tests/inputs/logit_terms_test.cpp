// Inputs that add a term to the logits of another input: the logits of their coordinates are those of the formula,
// which is written out here with an n x n matrix. No number is random beside the heads themselves: tolerances are
// rounding.
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <set>
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

// The logits of the inner input with a term of the positions of query and key.
Matrix<double> with_terms(const HeadData<double>& inner, const std::function<double(Index, Index)>& term) {
  Matrix<double> S = logits(inner);
  for (Index i = 0; i < S.rows(); ++i)
    for (Index j = 0; j < S.cols(); ++j) S(i, j) += term(S.cols() - S.rows() + i, j);
  return S;
}

TEST_CASE("documents hide each other, and a prefix is seen by all of it", "[unit]") {
  for (const Index nq : {10, 4}) {
    const auto inner = drawn("gaussian", sized(nq, 10, 4));
    // Of 10 tokens in 3 documents: 4, 3 and 3.
    const std::vector<Index> document{0, 0, 0, 0, 1, 1, 1, 2, 2, 2};
    const auto packed = drawn("documents:count=3,penalty=7", sized(nq, 10, 7));
    CHECK(difference(logits(packed), with_terms(inner, [&](Index i, Index j) {
                       return document[static_cast<size_t>(i)] == document[static_cast<size_t>(j)] ? 0 : -7;
                     })) < rounding);
    CHECK(packed.V == inner.V);
    const auto prefixed = drawn("prefix:prefix=3,positions=12,penalty=5", sized(nq, 10, 16));
    CHECK(difference(logits(prefixed), with_terms(inner, [](Index i, Index j) { return j > i && j >= 3 ? -5 : 0; })) <
          rounding);
  }
  // With the penalty that is usual no weight of another document is left beside rounding.
  const auto packed = drawn("documents:count=2", sized(8, 8, 6));
  const Matrix<double> A = logits(packed).array().exp();
  CHECK(A.topRightCorner(4, 4).maxCoeff() < 1e-9 * A.topLeftCorner(4, 4).minCoeff());
}

TEST_CASE("T5 has a bias for each short distance, and shares one among long ones", "[unit]") {
  // The buckets of one side of 32 in all, up to distance 128, as the authors' code gives them.
  const auto bucket = [](Index distance) -> Index {
    if (distance < 8) return distance;
    if (distance < 12) return 8;
    if (distance < 16) return 9;
    if (distance < 23) return 10;
    if (distance < 32) return 11;
    if (distance < 46) return 12;
    if (distance < 64) return 13;
    if (distance < 91) return 14;
    return 15;
  };
  for (const bool both : {true, false}) {
    // With 16 buckets, none of them for later keys, a side is as long as it is with 32 in all.
    const std::string spec = both ? "t5-buckets:positions=200" : "t5-buckets:positions=200,buckets=16,both=false";
    const auto inner = drawn("gaussian", sized(200, 200, 3)), head = drawn(spec, sized(200, 200, 203));
    const Matrix<double> terms = logits(head) - logits(inner);
    std::map<Index, double> bias;
    for (Index i = 0; i < 200; ++i)
      for (Index j = 0; j < 200; ++j) {
        const Index key = j <= i ? bucket(i - j) : both ? 100 + bucket(j - i) : 1000;
        const auto [place, first] = bias.emplace(key, terms(i, j));
        if (std::abs(place->second - terms(i, j)) > 1e-11) FAIL("a bias differs at " << i << ", " << j);
      }
    CHECK(std::ssize(bias) == (both ? 16 + 15 : 17));  // no later key has the distance 0
    if (!both) CHECK(std::abs(bias.at(1000)) < 1e-11);
    std::set<long> different;
    for (const auto& [key, value] : bias) different.insert(std::lround(value * 1e6));
    CHECK(different.size() == bias.size());
  }
  CHECK(contains(misuse_of([] { drawn("t5-buckets:buckets=2", sized(4, 4, 300)); }), "buckets=32,longest=128"));
  CHECK(contains(misuse_of([] { drawn("t5-buckets:positions=3", sized(4, 4, 300)); }), "expected nq <= 3"));
  CHECK(contains(misuse_of([] { drawn("documents:count=9", sized(4, 4, 300)); }), "count=4"));
  CHECK(contains(misuse_of([] { drawn("prefix", sized(4, 4, 64)); }), "-d 320"));
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
  CHECK(limits("documents:[model],count=5").d == own.d + 5);
  const InputLimits prefix = limits("prefix:[model],positions=64"), alone = limits("prefix:positions=64");
  CHECK((prefix.d == own.d + 64 && prefix.keys == 64 && prefix.queries == 64 && alone.d == 0 && alone.keys == 64));
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
