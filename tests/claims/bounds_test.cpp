// The claim on bounds of exact weights: bounds that are lower, weights that are larger and lists that are empty go red.
#include "harness/core/bounds.hpp"

#include <cmath>

#include "harness/claims/print.hpp"
#include "tests/catch.hpp"

namespace attnbench::bounds_claim_test {
namespace {

// A method with the bounds of its logits lowered by a thousandth of |q| |k|.
template <int thousandths>
class LoweredBounds final : public Approximation<double>, public LogitBounds<double> {
 public:
  explicit LoweredBounds(const Draw& draw) : inner_(make_approximation<double>(draw)) {}
  void attend(const Head<double>& head, Mask mask, Context& context, Out<double> out) const override {
    inner_->attend(head, mask, context, out);
  }
  void logit_bounds(const Head<double>& head, Mask mask, Index first, Context& context,
                    Out<double> bounds) const override {
    attnbench::logit_bounds(*inner_)->logit_bounds(head, mask, first, context, bounds);
    for (Index i = 0; i < bounds.rows(); ++i)
      for (Index j = 0; j < bounds.cols(); ++j)
        bounds(i, j) -= thousandths / 1000.0 * head.Q.row(first + i).norm() * head.K.row(j).norm();
  }

 private:
  std::unique_ptr<Approximation<double>> inner_;
};

// A method with its coarse weights a thousandth larger, or with none.
template <int thousandths, bool none>
class RaisedWeights final : public Approximation<double>, public CoarseWeights<double> {
 public:
  explicit RaisedWeights(const Draw& draw) : inner_(make_approximation<double>(draw)) {}
  void attend(const Head<double>& head, Mask mask, Context& context, Out<double> out) const override {
    inner_->attend(head, mask, context, out);
  }
  std::vector<CoarseWeight> coarse_weights(const Head<double>& head, Mask mask, Context& context) const override {
    if (none) return {};
    auto all = attnbench::coarse_weights(*inner_)->coarse_weights(head, mask, context);
    for (CoarseWeight& one : all) one.log_weight += thousandths / 1000.0;
    return all;
  }

 private:
  std::unique_ptr<Approximation<double>> inner_;
};

Outcome outcome(const Subject& subject) {
  const ClaimResults results = test_bounds(subject, probes_of(subject, 1), 1);
  return deciding(results).outcome;
}

Subject subject(const std::string& spec) { return subject_of(Params("methods", spec)); }

template <class Method>
Outcome planted(const std::string& spec) {
  Subject made = subject(spec);
  made.f64 = [](const Draw& draw) { return std::make_unique<Method>(draw); };
  return outcome(made);
}

}  // namespace

TEST_CASE("claim bounds: logits are below their bounds, and coarse weights below those that they stand for", "[unit]") {
  for (const char* spec :
       {"quest", "quest:page=3", "quest:page=1", "mra", "mra:block=5", "multipole", "multipole:clusters=3"}) {
    INFO(spec);
    CHECK(outcome(subject(spec)) == Outcome::pass);
  }
  CHECK(outcome(subject("softmax")) == Outcome::skipped);
}

TEST_CASE("claim bounds fails for a bound that is lower and for a weight that is larger", "[unit]") {
  // With one key a page its bound is its logit, and with one key a cluster or a block its weight is exact.
  CHECK(planted<LoweredBounds<0>>("quest:page=1") == Outcome::pass);
  CHECK(planted<LoweredBounds<1>>("quest:page=1") == Outcome::fail);
  CHECK(planted<LoweredBounds<1000>>("quest:page=3") == Outcome::fail);
  for (const char* spec : {"mra:block=1", "multipole:clusters=1000000,sweeps=0"}) {
    INFO(spec);
    CHECK(planted<RaisedWeights<0, false>>(spec) == Outcome::pass);
    CHECK(planted<RaisedWeights<1, false>>(spec) == Outcome::fail);
    CHECK(planted<RaisedWeights<0, true>>(spec) == Outcome::fail);
  }
}

}  // namespace attnbench::bounds_claim_test
