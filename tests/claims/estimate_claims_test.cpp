// Claims on sampled sums and on estimated logits: each planted mistake fails the claim that it breaks, correct laws
// pass, and a mean in the logits is not one in the weights. `check` fails a correct program with probability 1e-6.
#include <cmath>
#include <set>

#include "harness/claims/check.hpp"
#include "harness/core/estimates.hpp"
#include "tests/catch.hpp"

namespace attnbench::estimate_claims_test {

namespace attnbench::estimate_claims_test {
namespace {

using Names = std::set<std::string>;
const Names of_estimates{"mean-weights", "mean-rows", "sampling-law", "mean-logits"};

Subject subject(const std::string& spec) { return subject_of(Params("methods", spec)); }

// The outcomes of the claims of this file, and of `unbiased`.
std::map<std::string, Outcome> outcomes(const Subject& one) {
  std::map<std::string, Outcome> found;
  const EstimatePlans plans = plan_estimate_claims(one, 1);
  Context context;
  const double threshold = z_threshold(1e-6, std::max(1.0, plans.tests()));
  const ClaimResults results = test_estimate_claims(plans, threshold, default_work, context);
  for (const auto& claim : of_estimates) found[claim] = deciding(of_claim(results, claim)).outcome;
  return found;
}

Names failing(const Subject& one) {
  Names names;
  for (const auto& [claim, outcome] : outcomes(one))
    if (outcome == Outcome::fail) names.insert(claim);
  return names;
}

// Forwards to the method of the spec. A planted mistake overrides a part.
class Wrapped : public Approximation<double>, public SampledRows<double> {
 public:
  explicit Wrapped(const Draw& draw) : inner_(make_approximation<double>(draw)) {}
  void attend(const Head<double>& head, Mask mask, Context& context, Out<double> out) const override {
    inner_->attend(head, mask, context, out);
  }
  Tensors state() const override { return inner_->state(); }
  std::vector<std::string> given() const override { return own().given(); }
  SamplingLaw law(const Head<double>& head, Mask mask, Index row) const override { return own().law(head, mask, row); }
  void sums(const Head<double>& head, Mask mask, Index first, Context& context, Out<double> numerators,
            std::span<double> denominators, std::span<double> log_scale) const override {
    own().sums(head, mask, first, context, numerators, denominators, log_scale);
  }

 protected:
  const SampledRows<double>& own() const { return *sampled_rows(*inner_); }

 private:
  std::unique_ptr<Approximation<double>> inner_;
};

// Does not say that the law is that of one hash.
class ForgetsWhatIsGiven final : public Wrapped {
 public:
  using Wrapped::Wrapped;
  std::vector<std::string> given() const override { return {}; }
};

// Declares that no key is exact.
class SaysAllAreDrawn final : public Wrapped {
 public:
  using Wrapped::Wrapped;
  SamplingLaw law(const Head<double>& head, Mask mask, Index row) const override {
    SamplingLaw law = Wrapped::law(head, mask, row);
    law.exact.clear();
    return law;
  }
};

const char* const of_blocks = "hyper:block=8,s=4";
const char* const of_collisions = "magicpig:bits=2,tables=6,sinks=1,window=1";
const char* const of_promises = "vattention:sinks=1,window=1,top=1,base=4,eps=0.3";

template <class Method>
Subject made_by(const std::string& spec) {
  Subject planted = subject(spec);
  planted.f64 = [](const Draw& draw) { return std::make_unique<Method>(draw); };
  return planted;
}

// Sums further from the exact ones by this factor: the variance is that of the law times its square.
template <int thousandths>
class Wider final : public Wrapped {
 public:
  using Wrapped::Wrapped;
  void sums(const Head<double>& head, Mask mask, Index first, Context& context, Out<double> numerators,
            std::span<double> denominators, std::span<double> log_scale) const override {
    Wrapped::sums(head, mask, first, context, numerators, denominators, log_scale);
    constexpr double factor = thousandths / 1000.0;
    for (Index i = 0; i < numerators.rows(); ++i) {
      const auto row = static_cast<size_t>(i);
      const Index seen = mask.visible(first + i, head.K.rows());
      const Eigen::RowVectorXd weights =
          (head.Q.row(first + i) * head.K.topRows(seen).transpose()).array() - log_scale[row];
      const Eigen::RowVectorXd exact = weights.array().exp();
      numerators.row(i) = factor * numerators.row(i) + (1 - factor) * exact * head.V.topRows(seen);
      denominators[row] = factor * denominators[row] + (1 - factor) * exact.sum();
    }
  }
};

// The denominator is 3 % too large.
class ThreePercentMore final : public Wrapped {
 public:
  using Wrapped::Wrapped;
  void sums(const Head<double>& head, Mask mask, Index first, Context& context, Out<double> numerators,
            std::span<double> denominators, std::span<double> log_scale) const override {
    Wrapped::sums(head, mask, first, context, numerators, denominators, log_scale);
    for (double& denominator : denominators) denominator *= 1.03;
  }
};

// Draws by value norms, and weighs as if all keys were alike.
class ForgetsTheWeight final : public Wrapped {
 public:
  using Wrapped::Wrapped;
  void sums(const Head<double>& head, Mask mask, Index first, Context&, Out<double> numerators,
            std::span<double> denominators, std::span<double> log_scale) const override {
    const Matrix<double> u = state().at("u");
    for (Index i = 0; i < numerators.rows(); ++i) {
      const auto p = law(head, mask, first + i).p;
      Eigen::RowVectorXd numerator = Eigen::RowVectorXd::Zero(head.V.cols());
      double denominator = 0;
      for (Index t = 0; t < u.cols(); ++t) {
        Index key = 0;
        for (double sum = p[0]; sum < u(first + i, t) && key + 1 < std::ssize(p); sum += p[static_cast<size_t>(++key)])
          ;
        const double weight = std::exp(head.Q.row(first + i).dot(head.K.row(key))) * static_cast<double>(p.size()) /
                              static_cast<double>(u.cols());
        denominator += weight;
        numerator += weight * head.V.row(key);
      }
      numerators.row(i) = numerator;
      denominators[static_cast<size_t>(i)] = denominator;
      log_scale[static_cast<size_t>(i)] = 0;
    }
  }
};

// Draws every number twice.
class DrawsTwice final : public Wrapped {
 public:
  explicit DrawsTwice(const Draw& draw) : DrawsTwice(draw, copied(draw)) {}

 private:
  DrawsTwice(Draw draw, const Tensors& state) : Wrapped((draw.state = &state, draw)) {}
  static Tensors copied(const Draw& draw) {
    Tensors state = make_approximation<double>(draw)->state();
    Matrix<double>& u = state.at("u");
    for (Index t = 1; t < u.cols(); t += 2) u.col(t) = u.col(t - 1);
    return state;
  }
};

// Declares independent draws, however it draws.
class SaysIndependent final : public Wrapped {
 public:
  using Wrapped::Wrapped;
  SamplingLaw law(const Head<double>& head, Mask mask, Index row) const override {
    SamplingLaw law = Wrapped::law(head, mask, row);
    law.draws = SamplingLaw::Draws::independent;
    return law;
  }
};

// Logits from sketched keys: sqrt(pi/2) |k| / m sum_w (w.q) sign(w.k), w normal (QJL). Their mean is q.k.
template <int thousandths>
class SketchedKeys final : public Approximation<double>, public EstimatedLogits<double>, public Kernel<double> {
 public:
  explicit SketchedKeys(const Draw& draw) {
    Generator generator = draw.streams.stream("sketch", draw.head, draw.replicate);
    W_ = standard_normal(generator, draw.params.integer("m"), draw.shape.d);
  }
  void attend(const Head<double>& head, Mask, Context& context, Out<double> out) const override {
    Matrix<double> weights(head.Q.rows(), head.K.rows());
    logits(head, context, weights);
    weights = weights.array().exp();
    out = weights.rowwise().sum().cwiseInverse().asDiagonal() * (weights * head.V);
  }
  void logits(const Head<double>& head, Context&, Out<double> block) const override {
    const Matrix<double> signs = (head.K * W_.transpose()).array().sign();
    block = head.Q * W_.transpose() * signs.transpose() * head.K.rowwise().norm().asDiagonal();
    block *= thousandths / 1000.0 * std::sqrt(M_PI / 2) / static_cast<double>(W_.rows());
  }
  const Kernel<double>* kernel() const override { return this; }
  void kernel(const Head<double>& head, Context& context, Out<double> block, std::span<double> log_rows,
              std::span<double> log_columns) const override {
    logits(head, context, block);
    block.array() = block.array().exp();
    std::fill(log_rows.begin(), log_rows.end(), 0);
    std::fill(log_columns.begin(), log_columns.end(), 0);
  }

 private:
  Matrix<double> W_;
};

template <int thousandths>
Subject sketched(const std::string& m) {
  Subject planted = made_by<SketchedKeys<thousandths>>("performer:projection=iid,m=" + m);
  planted.theory = [](const Params&, const Shape&, const Head<double>*) {
    return KernelTheory{.target = "exp(q.k)", .mean = [](const Pair& pair) { return pair.softmax(); }};
  };
  return planted;
}

// Randomised attention by the formula, from the method's own numbers. thousandths: of the size of its proposals;
// norms: whether |k_j|^2 / 2 is there.
template <int thousandths, bool norms>
class PlainRows final : public Approximation<double>, public UnbiasedRows<double> {
 public:
  explicit PlainRows(const Draw& draw) : inner_(make_approximation<double>(draw)) {}
  Tensors state() const override { return inner_->state(); }
  void attend(const Head<double>& head, Mask mask, Context&, Out<double> out) const override {
    const Matrix<double> u = state().at("u"), z = state().at("z");
    out.setZero();
    for (Index i = 0; i < out.rows(); ++i) {
      const Index seen = mask.visible(i, head.K.rows());
      const auto K = head.K.topRows(seen);
      const Eigen::ArrayXd a = softmax((K * head.Q.row(i).transpose()).array());
      for (Index t = 0; t < u.cols(); ++t) {
        Index key = 0;
        for (double sum = a[0]; sum <= u(i, t) && key + 1 < seen; sum += a[key]) ++key;
        const Eigen::RowVectorXd w = thousandths / 1000.0 * (head.Q.row(i) + K.row(key)) + z.row(i * u.cols() + t);
        Eigen::ArrayXd logits = (K * w.transpose()).array();
        if (norms) logits -= K.rowwise().squaredNorm().array() / 2;
        out.row(i) += softmax(logits).matrix().transpose() * head.V.topRows(seen) / static_cast<double>(u.cols());
      }
    }
  }

 private:
  static Eigen::ArrayXd softmax(const Eigen::ArrayXd& logits) {
    const Eigen::ArrayXd weights = (logits - logits.maxCoeff()).exp();
    return weights / weights.sum();
  }
  std::unique_ptr<Approximation<double>> inner_;
};

}  // namespace

TEST_CASE("rows that claim no bias are tested for it, and a wrong proposal or a forgotten norm is found",
          "[statistics]") {
  const auto found = outcomes(subject("randomised"));
  CHECK(found.at("mean-rows") == Outcome::pass);
  for (const auto& claim : {"mean-weights", "sampling-law", "mean-logits"}) CHECK(found.at(claim) == Outcome::skipped);
  CHECK(failing(made_by<PlainRows<1000, true>>("randomised")) == Names{});
  CHECK(failing(made_by<PlainRows<1150, true>>("randomised")) == Names{"mean-rows"});
  CHECK(failing(made_by<PlainRows<1000, false>>("randomised")) == Names{"mean-rows"});
}

TEST_CASE("every law of sampled keys passes its claims", "[statistics]") {
  for (const char* spec :
       {"sampled", "sampled:stratified=true", "sampled:replacement=false", "sampled:law=value-norm",
        "sampled:law=value-norm,stratified=true", "sampled:law=oracle", "sampled:law=oracle,stratified=true",
        "sampled:law=optimal", "sampled:s=1", "sampled:replacement=false,s=7"}) {
    INFO(spec);
    const auto found = outcomes(subject(spec));
    CHECK(found.at("mean-weights") == Outcome::pass);
    CHECK(found.at("sampling-law") == Outcome::pass);
    // The causal head's last row sees 8 keys: as many different ones, or a stratum for each, make it exact.
    const std::string text = spec;
    const bool exact = text.find("oracle") != std::string::npos ||
                       text.find("replacement=false") != std::string::npos || text == "sampled:stratified=true";
    CHECK(found.at("mean-rows") == (exact ? Outcome::pass : Outcome::skipped));
    CHECK(found.at("mean-logits") == Outcome::skipped);
  }
}

TEST_CASE("a law 5 % off, a forgotten weight and draws of another kind than declared are found", "[statistics]") {
  CHECK(failing(made_by<Wider<1000>>("sampled")) == Names{});
  CHECK(failing(made_by<Wider<1025>>("sampled")) == Names{"sampling-law"});  // a variance of 1.051
  CHECK(failing(made_by<Wider<975>>("sampled:law=oracle")) == Names{"sampling-law"});
  CHECK(failing(made_by<ThreePercentMore>("sampled:law=value-norm")).contains("mean-weights"));
  CHECK(failing(made_by<ThreePercentMore>("sampled:law=oracle")).contains("mean-rows"));
  CHECK(failing(made_by<ForgetsTheWeight>("sampled:law=value-norm")).contains("mean-weights"));
  CHECK(failing(made_by<ForgetsTheWeight>("sampled")) == Names{});  // with equal probabilities it forgets nothing
  CHECK(failing(made_by<DrawsTwice>("sampled")) == Names{"sampling-law"});
  CHECK(failing(made_by<SaysIndependent>("sampled")) == Names{});
  CHECK(failing(made_by<SaysIndependent>("sampled:stratified=true")) == Names{"sampling-law"});
  CHECK(failing(made_by<SaysIndependent>("sampled:replacement=false")).contains("sampling-law"));
}

TEST_CASE("laws with keys beside the draws pass their claims, given the hash or the base sample", "[statistics]") {
  for (const char* spec : {of_blocks, "kdeformer:block=8,s=4", of_collisions, of_promises}) {
    INFO(spec);
    const auto found = outcomes(subject(spec));
    CHECK(found.at("mean-weights") == Outcome::pass);
    CHECK(found.at("sampling-law") == (spec == of_collisions ? Outcome::skipped : Outcome::pass));
  }
}

TEST_CASE("blocks counted twice, a law 5 % off and a part that is not given are found", "[statistics]") {
  CHECK(failing(subject("hyper:block=8,s=4,mask_own=false")) == Names{"mean-weights", "sampling-law"});
  CHECK(failing(made_by<Wider<1025>>(of_blocks)) == Names{"sampling-law"});
  CHECK(failing(made_by<Wider<1025>>("kdeformer:block=8,s=4")) == Names{"sampling-law"});
  CHECK(failing(made_by<Wider<1025>>(of_promises)) == Names{"sampling-law"});
  for (const char* spec : {of_blocks, of_collisions, of_promises}) {
    INFO(spec);
    CHECK(failing(made_by<ThreePercentMore>(spec)).contains("mean-weights"));
  }
  CHECK(failing(made_by<ForgetsWhatIsGiven>(of_blocks)) == Names{"sampling-law"});
  CHECK(failing(made_by<SaysAllAreDrawn>(of_blocks)).contains("sampling-law"));
}

// One sketch vector, for which Var e is (pi/2) |q|^2 |k|^2 - (q.k)^2: weights are some percent too large.
TEST_CASE("logits without bias give weights with one, and the two claims say so", "[statistics]") {
  CHECK(outcomes(sketched<1000>("8")).at("mean-logits") == Outcome::pass);
  CHECK(outcomes(sketched<1000>("8")).at("mean-weights") == Outcome::skipped);
  CHECK(failing(sketched<1030>("8")) == Names{"mean-logits"});
  const Subject one_vector = sketched<1000>("1");
  const KernelPlans plans = plan_kernel_claims(one_vector, 1);
  Context context;
  const ClaimResults weights =
      test_kernel_claims(plans, z_threshold(1e-6, std::max(1.0, plans.tests())), default_work, context);
  CHECK(deciding(of_claim(weights, "unbiased")).outcome == Outcome::fail);
}

TEST_CASE("a method that samples nothing has the four lines with their reason", "[unit]") {
  for (const char* spec : {"softmax", "performer:m=8", "linformer:r=8"}) {
    INFO(spec);
    for (const auto& [claim, outcome] : outcomes(subject(spec))) CHECK(outcome == Outcome::skipped);
  }
}

}  // namespace attnbench::estimate_claims_test

}  // namespace attnbench::estimate_claims_test
