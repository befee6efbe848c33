// Methods without an attention matrix in the harness: what experiments and `check` say of them, and that `check` sees
// the bugs that such methods are published with.
#include <cmath>
#include <numbers>
#include <set>

#include "harness/claims/check.hpp"
#include "harness/experiment/experiment.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/measured.hpp"
#include "tests/misuse.hpp"
#include "tests/waves.hpp"

namespace attnbench::no_attention_matrix_test {

namespace {

Measured measured(const std::string& experiment, const std::string& method,
                  const Shape& shape = {.nq = 24, .nk = 24, .d = 4, .dv = 6}) {
  return measured(double_cell(experiment, method, shape));
}

using Names = std::set<std::string>;

// The claims of a spec that another implementation of it breaks.
template <template <class> class Planted>
Names broken_by(const std::string& spec) {
  Subject subject = subject_of(Params("methods", spec));
  subject.memory_assumed = subject.cost_assumed = true;  // what is planted is not declared
  subject.f32 = [](const Draw& draw) { return std::make_unique<Planted<float>>(draw); };
  subject.f64 = [](const Draw& draw) { return std::make_unique<Planted<double>>(draw); };
  Names names;
  const Report report = check({subject}, {});
  for (const Result& result : report.subjects[0].results)
    if (result.outcome == Outcome::fail) names.insert(result.claim);
  return names;
}

// Keeps what an instance says of itself, and attends in another way.
template <class T>
class Planted : public Approximation<T> {
 public:
  explicit Planted(const Draw& draw) : inner(make_approximation<T>(draw)) {}
  Tensors state() const override { return inner->state(); }
  const TokenMixing<T>* mixing() const override { return inner->mixing(); }

 protected:
  std::unique_ptr<Approximation<T>> inner;
};

}  // namespace

TEST_CASE("a method without an attention matrix has the rank of its token Jacobian, and says so", "[methods]") {
  for (const auto& [n, rank] : {std::pair<Index, double>{24, 13}, {25, 13}}) {
    const auto fourier = measured("rank", "fnet", {.nq = n, .nk = n, .d = 4, .dv = 6});
    CHECK(fourier["rank_of"] == 1);
    CHECK(fourier["numerical_rank"] == rank);  // cos(2 pi ij / n): the even sequences
    REQUIRE(fourier.notes.size() == 2);
    CHECK(contains(fourier.notes[0], "token Jacobian"));
    CHECK(contains(fourier.notes[1], "condition is left out"));
  }
  CHECK(measured("rank", "mixer:hidden=6,residual=false")["numerical_rank"] == 6);
  CHECK(measured("rank", "gmlp:init=identity")["effective_rank"] > 23.999);
  const auto softmax = measured("rank", "softmax");
  CHECK(softmax["rank_of"] == 0);
  CHECK(softmax.notes.empty());
}

TEST_CASE("experiments on attention matrices leave out, with the reason, what has none", "[methods]") {
  for (const char* spec : {"fnet", "mixer", "gmlp"}) {
    INFO(spec);
    CHECK(contains(skip_of(double_cell("sparsity", spec)), "no attention matrix"));
    CHECK(contains(skip_of(double_cell("kernel-error", spec)), "no kernel"));
    const auto error = measured("attention-error", spec);
    CHECK(error.has("relative_output_error"));
    CHECK(!error.has("relative_frobenius"));
    REQUIRE(error.notes.size() == 1);
    CHECK(contains(error.notes[0], "no attention matrix"));
    CHECK(measured("attention-error:matrix=false", spec).notes.empty());
    const Report report = check({subject_of(Params("methods", spec))}, {});
    for (const Result& result : report.subjects[0].results) {
      CAPTURE(result.claim, result.tested, result.reason);
      CHECK(result.outcome != Outcome::fail);
      if (result.claim == "row-sums" || result.claim == "rank") CHECK(contains(result.reason, "no attention matrix"));
      if (result.claim == "second-paths") CHECK(result.outcome == Outcome::pass);
    }
  }
  CHECK(measured("attention-error", "synthesizer").has("relative_frobenius"));
  CHECK(measured("sparsity", "synthesizer").has("entropy"));
}

// Power: each planted mistake was in published code or is one slip away from correct code.
namespace {

// Re(F X F^-1) = C X C + S X S.
template <class T>
class WrongSign final : public Planted<T> {
 public:
  using Planted<T>::Planted;
  void attend(const Head<T>& head, Mask, Context&, Out<T> out) const override {
    const Matrix<double> X = head.V.template cast<double>();
    out = (cosines(X.rows()) * X * cosines(X.cols()) + sines(X.rows()) * X * sines(X.cols())).template cast<T>();
  }
};

// Real and imaginary part added, as in a Hartley transform.
template <class T>
class NotTheRealPart final : public Planted<T> {
 public:
  using Planted<T>::Planted;
  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    this->inner->attend(head, mask, context, out);
    const Matrix<double> X = head.V.template cast<double>();
    out -= (cosines(X.rows()) * X * sines(X.cols()) + sines(X.rows()) * X * cosines(X.cols())).template cast<T>();
  }
};

// The softmax over all keys, then the causal cut.
template <class T>
class MaskedAfterSoftmax final : public Planted<T> {
 public:
  using Planted<T>::Planted;
  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    Mask all = mask;
    all.causal = false;
    Matrix<T> A(head.Q.rows(), head.K.rows());
    this->inner->rows()->attention_rows(head, all, 0, context, A);
    for (Index i = 0; i < A.rows(); ++i) A.row(i).tail(A.cols() - mask.visible(i, A.cols())).setZero();
    out = A * head.V;
  }
};

// W is not cut to its lower triangle.
template <class T>
class FullSpatialMatrix final : public Planted<T> {
 public:
  using Planted<T>::Planted;
  const TokenMixing<T>* mixing() const override { return nullptr; }
  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    mask.causal = false;
    this->inner->attend(head, mask, context, out);
  }
};

}  // namespace

TEST_CASE("a wrong sign, a part that is not real, a mask after the softmax and a full spatial matrix are seen",
          "[methods]") {
  // Neither looks at the padding.
  CHECK(broken_by<WrongSign>("fnet") == Names{"second-paths", "padding", "empty-rows"});
  CHECK(broken_by<NotTheRealPart>("fnet") == Names{"second-paths", "padding", "empty-rows"});
  CHECK(broken_by<MaskedAfterSoftmax>("synthesizer") == Names{"finite", "row-sums"});
  CHECK(broken_by<FullSpatialMatrix>("gmlp") == Names{"causal"});
}

}  // namespace attnbench::no_attention_matrix_test
