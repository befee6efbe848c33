// The claims gate: every planted bug fails the claim that it breaks and no other, what is not planted passes, and the
// error rate, the promises and the program's answers are what they are said to be.
#include <fmt/format.h>

#include <cmath>
#include <mutex>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "harness/claims/print.hpp"
#include "tests/catch.hpp"
#include "tests/program.hpp"

namespace attnbench::check_test {

namespace {

using Names = std::set<std::string>;

Subject subject(const std::string& spec) { return subject_of(Params("methods", spec)); }

Report checked(const Subject& one, double work = default_work, int threads = 1) {
  return check({one}, {.threads = threads, .work = work});
}

Names claims_with(const Report& report, Outcome outcome) {
  Names names;
  for (const SubjectReport& one : report.subjects)
    for (const Result& result : one.results)
      if (result.outcome == outcome) names.insert(result.claim);
  return names;
}
Names failing(const Report& report) { return claims_with(report, Outcome::fail); }

void check_passes(const Report& report) {
  for (const SubjectReport& one : report.subjects) {
    INFO(text_of(one));
    CHECK(deciding(one.results).outcome == Outcome::pass);
    CHECK(one.notes.empty());
  }
}

// attend altered by Alteration()(inner, head, mask, context, out); the kernel of the inner method, or no second path.
template <class T, class Alteration>
class Altered final : public Approximation<T> {
 public:
  explicit Altered(const Draw& draw) : inner_(make_approximation<T>(draw)) {}
  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    Alteration::template attend<T>(*inner_, head, mask, context, out);
  }
  Tensors state() const override { return inner_->state(); }
  const Kernel<T>* kernel() const override { return Alteration::keeps_kernel ? inner_->kernel() : nullptr; }

 private:
  std::unique_ptr<Approximation<T>> inner_;
};

template <template <class> class Method>
Subject made_by(const std::string& spec) {
  Subject planted = subject(spec);
  planted.memory_assumed = true;  // what a wrapper takes is not declared
  planted.f32 = [](const Draw& draw) { return std::make_unique<Method<float>>(draw); };
  planted.f64 = [](const Draw& draw) { return std::make_unique<Method<double>>(draw); };
  return planted;
}

template <class Alteration>
Subject altered(const std::string& spec) {
  Subject planted = subject(spec);
  planted.memory_assumed = true;
  planted.f32 = [](const Draw& draw) { return std::make_unique<Altered<float, Alteration>>(draw); };
  planted.f64 = [](const Draw& draw) { return std::make_unique<Altered<double, Alteration>>(draw); };
  return planted;
}

// The registered method with these projection vectors.
template <class Project>
Subject projected(const std::string& spec, const Project& project) {
  Subject planted = subject(spec);
  const auto with = [project](const Draw& draw, const auto& make) {
    if (draw.state) return make(draw);
    const Tensors state{{"projection", project(draw, draw.params.integer("m"))}};
    Draw injected = draw;
    injected.state = &state;
    return make(injected);
  };
  planted.f32 = [with](const Draw& draw) { return with(draw, make_approximation<float>); };
  planted.f64 = [with](const Draw& draw) { return with(draw, make_approximation<double>); };
  return planted;
}

struct LeaksOneToken {
  static constexpr bool keeps_kernel = false;
  template <class T>
  static void attend(const Approximation<T>& inner, const Head<T>& head, Mask mask, Context& context, Out<T> out) {
    if (mask.causal) ++mask.offset;
    inner.attend(head, mask, context, out);
  }
};

struct OnePercentOfLogitsMore {
  static constexpr bool keeps_kernel = true;
  template <class T>
  static void attend(const Approximation<T>& inner, const Head<T>& head, Mask mask, Context& context, Out<T> out) {
    const Matrix<T> Q = T(1.01) * head.Q;
    inner.attend({Q, head.K, head.V, head.extra}, mask, context, out);
  }
};

// Weight 1 moves from key 0 to key 1, in one row.
struct OneNegativeEntry {
  static constexpr bool keeps_kernel = false;
  template <class T>
  static void attend(const Approximation<T>& inner, const Head<T>& head, Mask mask, Context& context, Out<T> out) {
    inner.attend(head, mask, context, out);
    if (out.rows() > 40) out.row(40) += head.V.row(1) - head.V.row(0);
  }
};

struct SumsToOneAndAMillionth {
  static constexpr bool keeps_kernel = false;
  template <class T>
  static void attend(const Approximation<T>& inner, const Head<T>& head, Mask mask, Context& context, Out<T> out) {
    inner.attend(head, mask, context, out);
    out *= T(1) + T(1e-6);
  }
};

struct ClippedAtOne {
  static constexpr bool keeps_kernel = false;
  template <class T>
  static void attend(const Approximation<T>& inner, const Head<T>& head, Mask mask, Context& context, Out<T> out) {
    inner.attend(head, mask, context, out);
    out = out.cwiseMin(T(1));
  }
};

// Its A^T G is A G.
template <class T>
class ForgetsToTranspose final : public Approximation<T>, public Rows<T> {
 public:
  explicit ForgetsToTranspose(const Draw& draw) : inner_(make_approximation<T>(draw)) {}
  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    inner_->attend(head, mask, context, out);
  }
  const Rows<T>* rows() const override { return this; }
  void attention_rows(const Head<T>& head, Mask mask, Index first, Context& context, Out<T> A) const override {
    inner_->rows()->attention_rows(head, mask, first, context, A);
  }
  void transposed_times(const Head<T>& head, Mask mask, const In<T>& G, Context& context, Out<T> out) const override {
    if (head.Q.rows() != head.K.rows()) return inner_->rows()->transposed_times(head, mask, G, context, out);
    inner_->attend({head.Q, head.K, G, head.extra}, mask, context, out);
  }

 private:
  std::unique_ptr<Approximation<T>> inner_;
};

// A tenth of the identity, which has full rank and is tied to positions.
struct TenthOfTheIdentity {
  static constexpr bool keeps_kernel = false;
  template <class T>
  static void attend(const Approximation<T>& inner, const Head<T>& head, Mask mask, Context& context, Out<T> out) {
    inner.attend(head, mask, context, out);
    out *= T(0.9);
    const Index behind = head.V.rows() - out.rows();
    out += T(0.1) * head.V.bottomRows(head.V.rows() - behind);
  }
};

struct NoNumber {
  static constexpr bool keeps_kernel = false;
  template <class T>
  static void attend(const Approximation<T>& inner, const Head<T>& head, Mask mask, Context& context, Out<T> out) {
    inner.attend(head, mask, context, out);
    out(out.rows() - 1, 0) = std::numeric_limits<T>::quiet_NaN();
  }
};

// exp(2 q.k), everywhere.
template <class T>
class DoubledLogits final : public Approximation<T>, public Kernel<T> {
 public:
  explicit DoubledLogits(const Draw& draw) : inner_(make_approximation<T>(draw)) {}
  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    const Matrix<T> Q = factor * head.Q, K = factor * head.K;
    inner_->attend({Q, K, head.V, head.extra}, mask, context, out);
  }
  Tensors state() const override { return inner_->state(); }
  const Kernel<T>* kernel() const override { return this; }
  void kernel(const Head<T>& head, Context& context, Out<T> block, std::span<T> log_rows,
              std::span<T> log_columns) const override {
    const Matrix<T> Q = factor * head.Q, K = factor * head.K;
    inner_->kernel()->kernel({Q, K, head.V, head.extra}, context, block, log_rows, log_columns);
  }

 private:
  static constexpr T factor = T(M_SQRT2);
  std::unique_ptr<Approximation<T>> inner_;
};

// Every instance is another draw.
template <class T>
class HiddenRedraw final : public Approximation<T> {
 public:
  explicit HiddenRedraw(const Draw& draw) {
    static Index count = 0;
    Draw other = draw;
    other.replicate = ++count;
    inner_ = make_approximation<T>(other);
  }
  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    inner_->attend(head, mask, context, out);
  }

 private:
  std::unique_ptr<Approximation<T>> inner_;
};

// An instance that keeps the first key that it is given for later heads.
template <class T>
class KeepsFirstKey final : public Approximation<T> {
 public:
  explicit KeepsFirstKey(const Draw& draw) : inner_(make_approximation<T>(draw)) {}
  void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const override {
    std::call_once(called_, [&] { key_ = head.K.row(0); });
    Matrix<T> K = head.K;
    K.row(0) = key_;
    inner_->attend({head.Q, K, head.V}, mask, context, out);
  }

 private:
  std::unique_ptr<Approximation<T>> inner_;
  mutable std::once_flag called_;
  mutable Eigen::Matrix<T, 1, Eigen::Dynamic> key_;
};

struct DoublesAQuery {
  static constexpr bool keeps_kernel = false;
  template <class T>
  static void attend(const Approximation<T>& inner, const Head<T>& head, Mask mask, Context& context, Out<T> out) {
    inner.attend(head, mask, context, out);
    const_cast<T*>(head.Q.data())[0] *= 2;
  }
};

// Closed forms with another mean or variance.
Subject with_theory(const std::string& spec, const std::function<void(KernelTheory&)>& change) {
  Subject planted = subject(spec);
  planted.theory = [stated = planted.theory, change](const Params& params, const Shape& shape,
                                                     const Head<double>* calibration) {
    auto theory = stated(params, shape, calibration);
    change(*theory);
    return theory;
  };
  return planted;
}

std::vector<Subject> unplanted() {
  std::vector<Subject> all;
  for (const char* spec : {"performer:m=16", "performer:features=trig,m=16", "performer:m=16,projection=iid", "local",
                           "linear", "softmax", "uniform", "linformer"})
    all.push_back(subject(spec));
  return all;
}

// The program, without its standard error.
Answer output_of(const std::string& arguments) { return program(arguments, "2>/dev/null"); }

}  // namespace

TEST_CASE("what is not planted passes every claim", "[statistics]") {
  const Report report = check(unplanted(), {});
  check_passes(report);
  CHECK(report.exit_code() == 0);
}

TEST_CASE("what published libraries do fails the claim that it breaks", "[statistics]") {
  struct Published {
    std::string switches;
    Names broken;    // must fail
    Names possible;  // fail by less than the test promises to find, or with some draws only; no other may fail
  };
  const std::vector<Published> all{
      {"sign_fix=false", {"unbiased", "variance"}, {}},
      {"norms=same-block", {"unbiased"}, {"variance"}},
      {"norms=sqrt-d", {"unbiased"}, {"variance"}},
      // The stabiliser that scales an epsilon is a maximum over all keys, later ones included.
      {"epsilon=1e-4", {"exact-pairs"}, {"causal", "unbiased"}},
      {"epsilon=1e-4,epsilon_kind=plain", {"exact-pairs"}, {"causal", "unbiased", "variance"}},
      {"stabiliser=per-key", {"exact-pairs", "unbiased", "variance"}, {"finite"}},
      {"stabiliser=projection-only", {"causal", "finite"}, {}}};
  for (const auto& [switches, broken, possible] : all) {
    const Report report = checked(subject("performer:" + switches));
    INFO(text_of(report.subjects[0]));
    Names others = failing(report);
    for (const auto& claim : broken) {
      INFO(claim);
      CHECK(others.erase(claim) == 1);
    }
    for (const auto& claim : possible) others.erase(claim);
    others.erase("memory");  // features of all keys at once: the declared memory is that of the method
    CHECK(others == Names{});
    CHECK(report.exit_code() == 1);
    if (switches != "norms=same-block") continue;
    for (const Result& result : of_claim(report.subjects[0].results, "unbiased")) {  // methods.md B
      INFO(result.tested);
      if (result.tested == "d = 4, m = 10: q + k along +e1") CHECK(result.outcome == Outcome::fail);
      if (result.tested == "d = 4, m = 10: q + k along +1") CHECK(result.outcome == Outcome::pass);
    }
  }
}

TEST_CASE("sin(2 pi omega.x) and doubled logits are biased", "[statistics]") {
  const Report trap = checked(projected("performer:features=trig,m=16", [](const Draw& draw, Index m) {
    return Matrix<double>(2 * M_PI * draw_projection(draw, m));
  }));
  INFO(text_of(trap.subjects[0]));
  CHECK(failing(trap) == Names{"unbiased", "variance"});
  const Report doubled = checked(made_by<DoubledLogits>("performer:m=16"), 1e6);
  INFO(text_of(doubled.subjects[0]));
  CHECK(failing(doubled) == Names{"exact-pairs", "unbiased", "variance"});
}

TEST_CASE("vectors that are orthogonal across the wrong axis fail geometry, and the variance of trig features",
          "[statistics]") {
  // Row i is taken from a block of its own, as if the axes of [block, row] were exchanged: each row is right by itself,
  // and what is orthogonal to it is not used.
  const auto wrong_axis = [](const Draw& draw, Index m) {
    const Index d = draw.shape.d;
    Generator generator = draw.streams.stream("wrong axis", draw.head, draw.replicate);
    Matrix<double> W(m, d);
    for (Index i = 0; i < m; ++i) {
      const Matrix<double> Q = haar_orthogonal(generator, d);
      W.row(i) = chi(generator, 1, d)[0] * Q.row(i % d);
    }
    return W;
  };
  const Report trig = checked(projected("performer:features=trig,m=16", wrong_axis));
  INFO(text_of(trig.subjects[0]));
  CHECK(failing(trig) == Names{"effect", "geometry", "variance"});  // the spec's own projection is not read
}

TEST_CASE("an attend that is not its kernel fails the first gate, and the report says what that means",
          "[statistics]") {
  const Report report = checked(altered<OnePercentOfLogitsMore>("performer:m=16"));
  INFO(text_of(report.subjects[0]));
  CHECK(failing(report) == Names{"second-paths"});
  CHECK_THAT(report.subjects[0].notes.at(0), ContainsSubstring("not what attend runs"));
  CHECK(text_of(report.subjects[0]).find("not what attend runs") != std::string::npos);
}

TEST_CASE("bugs of the attention matrix fail the claims that they break", "[unit]") {
  const auto fails = [](const Subject& planted, const Names& claims) {
    const Report report = checked(planted);
    INFO(text_of(report.subjects[0]));
    CHECK(failing(report) == claims);
    CHECK(report.exit_code() == 1);
  };
  fails(altered<LeaksOneToken>("uniform"), {"causal", "empty-rows"});
  fails(altered<LeaksOneToken>("linear"), {"causal", "empty-rows"});
  fails(altered<OneNegativeEntry>("local"), {"non-negative", "exact-when", "empty-rows"});
  fails(altered<ClippedAtOne>("local"), {"linear", "exact-when"});
  fails(altered<SumsToOneAndAMillionth>("local"), {"row-sums", "exact-when"});
  fails(altered<TenthOfTheIdentity>("linear"), {"rank", "permutation", "padding", "empty-rows"});
  fails(altered<NoNumber>("linear"), {"linear", "row-sums", "non-negative", "permutation", "rank", "precision", "views",
                                      "empty-rows", "finite", "lengths"});
  fails(made_by<HiddenRedraw>("linformer"), {"repeatable", "precision", "draws", "finite", "lengths"});
  fails(altered<DoublesAQuery>("uniform"), {"inputs-kept"});
  CHECK(failing(checked(made_by<KeepsFirstKey>("efficient"))).contains("repeatable"));
  fails(made_by<ForgetsToTranspose>("local"), {"second-paths"});
}

// The promises, where they are least: at every pair by itself.
TEST_CASE("a mean 2 % of its scale off and a variance 10 % off are found wherever they are", "[statistics]") {
  for (const auto& [spec, sign] :
       {std::pair<std::string, double>{"performer:m=16", 1}, {"performer:features=trig,m=16", -1}}) {
    const Report biased = checked(with_theory(spec, [by = sign * least_bias](KernelTheory& theory) {
      theory.mean = [stated = theory.mean, by](const Pair& p) {
        if (p.minus2() < 1e-12) return stated(p);  // q = k: the scale stays
        const double promised = std::max(p.plus2(), p.minus2()) > 2 ? least_far_bias / least_bias : 1;
        return stated(p) + by * promised * std::exp((p.q2 + p.k2) / 2);
      };
    }));
    for (const Result& result : of_claim(biased.subjects[0].results, "unbiased")) {
      INFO(result.tested << ": z = " << result.evidence->z << " in " << result.evidence->draws << " draws");
      CHECK(result.outcome == Outcome::fail);
    }
    const Report off = checked(with_theory(spec, [factor = 1 + sign * least_variance_error](KernelTheory& theory) {
      theory.variance = [stated = theory.variance, factor](const Pair& p) { return stated(p) / factor; };
    }));
    INFO(text_of(off.subjects[0]));
    CHECK(failing(off) == Names{"variance"});
    for (const Result& result : of_claim(off.subjects[0].results, "variance")) CHECK(result.outcome == Outcome::fail);
  }
}

TEST_CASE("the threshold is Bonferroni's over all statistical tests of all specs", "[unit]") {
  constexpr double few = 2e4;  // numbers drawn: quick, and undecided
  const Subject performer = subject("performer:m=16"), softmax = subject("softmax");
  const Report one = check({performer}, {.work = few});
  // 2 dimensions, 20 means and 2 variances in each.
  CHECK(one.tests == 44);
  CHECK(one.threshold == z_threshold(1e-6, 44));
  CHECK(check({performer, softmax}, {.work = few}).threshold == one.threshold);  // exact in every draw: no such test
  CHECK(check({performer, performer}, {.work = few}).threshold == z_threshold(1e-6, 88));
  CHECK(check({performer}, {.error_rate = 1e-3, .work = few}).threshold == z_threshold(1e-3, 44));
  double statistical = 0;
  for (const Result& result : one.subjects[0].results) statistical += result.evidence.has_value();
  CHECK(statistical == one.tests);
}

TEST_CASE("too little work leaves claims undecided, with the draws that would decide", "[unit]") {
  const Report report = checked(subject("performer:m=16"), 2e4);
  INFO(text_of(report.subjects[0]));
  CHECK(claims_with(report, Outcome::undecided) == Names{"unbiased", "variance"});
  CHECK(failing(report).empty());
  CHECK(report.exit_code() == 3);
  const double errors = (report.threshold + power_quantile) / least_bias;
  for (const Result& result : of_claim(report.subjects[0].results, "unbiased")) {
    if (result.outcome != Outcome::undecided || result.tested != "d = 4, m = 10: q + k along +e1") continue;
    const auto theory = subject("performer:m=10")
                            .theory(Params("methods", "performer:m=10"), {.nq = 1, .nk = 1, .d = 4, .dv = 1}, nullptr);
    const Pairs pairs = mean_pairs(4, 1);
    const Pair pair = pairs[1];
    const double sigma2 = theory->variance(pair) / std::exp(pair.q2 + pair.k2);
    CHECK(result.evidence->draws <= 500);  // 2e4 numbers, 40 a draw or a few more
    CHECK(result.evidence->draws_to_decide >= sigma2 * errors * errors);
    CHECK(result.evidence->draws_to_decide <= 3 * sigma2 * errors * errors);
  }
  CHECK(summary_of(report, 0).starts_with("UNDECIDED"));
  // A failure beside it decides the exit code.
  CHECK(checked(subject("performer:m=16,epsilon=1e-4"), 2e4).exit_code() == 1);
}

TEST_CASE("the results do not depend on the number of threads", "[statistics]") {
  const auto json = [](int threads) {
    return json_of(
        check({subject("performer:m=16"), subject("performer:features=sderf,m=16")}, {.threads = threads, .work = 3e5}),
        0);
  };
  const std::string one = json(1);
  CHECK(json(2) == one);
  CHECK(json(5) == one);
}

TEST_CASE("claims that cannot be tested are skipped with the reason", "[unit]") {
  const auto reason = [](const std::string& spec, const std::string& claim) {
    const Report report = checked(subject(spec), 2e4);
    const ClaimResults results = of_claim(report.subjects[0].results, claim);
    REQUIRE(results.size() == 1);
    CHECK(results[0].outcome == Outcome::skipped);
    return results[0].reason;
  };
  CHECK_THAT(reason("linformer", "causal"), ContainsSubstring("no causal form"));
  CHECK_THAT(reason("linear", "unbiased"), ContainsSubstring("no closed form is known"));
  CHECK_THAT(reason("linformer:r=1000", "rank"), ContainsSubstring("bound of 1000"));
  CHECK_THAT(reason("softmax", "variance"), ContainsSubstring("variance is 0"));
  CHECK_THAT(reason("linear", "geometry"), ContainsSubstring("no ensemble"));
}

TEST_CASE("what features imply is tested where a test fits, and is said to be implied either way", "[unit]") {
  const auto lines = [](const std::string& spec) { return checked(subject(spec), 2e4).subjects[0]; };
  const auto one = [](const SubjectReport& report, const char* claim) {
    return deciding(of_claim(report.results, claim));
  };
  const SubjectReport positive = lines("performer:m=16");
  const std::pair<const char*, const char*> implied[] = {
      {"row-sums", "the division by row sums of its features' products"},
      {"non-negative", "features that are not negative"},
      {"rank", "the number of its features"}};
  for (const auto& [claim, by] : implied) {
    CHECK(one(positive, claim).outcome == Outcome::pass);
    CHECK(one(positive, claim).implied == by);
  }
  CHECK(one(positive, "causal").implied.empty());
  CHECK_THAT(text_of(positive), ContainsSubstring("tests); implied by the division by row sums"));

  const SubjectReport wide = lines("performer:m=1000");
  CHECK(one(wide, "rank").outcome == Outcome::implied);
  CHECK_THAT(text_of(wide),
             ContainsSubstring("IMPLIED") &&
                 ContainsSubstring("implied by the number of its features, not tested: a bound of 1000"));
  CHECK(one(wide, "row-sums").outcome == Outcome::pass);

  // Signed features imply no sign of the weights, and features that may all be 0 no row sum.
  const Result sign = one(lines("performer:features=trig,m=16"), "non-negative");
  CHECK((sign.outcome == Outcome::skipped && sign.implied.empty()));
  const Result vanishing = one(lines("linear:features=relu"), "row-sums");
  CHECK((vanishing.outcome == Outcome::skipped && vanishing.implied.empty()));
  // Softmax is no product of features: the same claims are tested, and nothing implies them.
  CHECK((one(lines("softmax"), "row-sums").outcome == Outcome::pass &&
         one(lines("softmax"), "row-sums").implied.empty()));
  // A claim that fails stays a failure, even where something implies it.
  const Subject negative = altered<OneNegativeEntry>("performer:m=64");
  const Result failed = one(checked(negative, 2e4).subjects[0], "non-negative");
  CHECK((failed.outcome == Outcome::fail && !failed.implied.empty()));
}

TEST_CASE("the bias of a kernel that claims no mean is measured and not judged", "[statistics]") {
  // The measured mean is 1/1.1 of the stated one. The natural scale grows with the means: the effect is 1/1.1 - 1.
  const Subject approximate = with_theory("performer:m=16", [](KernelTheory& theory) {
    theory.exact = false;
    theory.mean = [mean = theory.mean](const Pair& pair) { return 1.1 * mean(pair); };
  });
  const Report report = checked(approximate, 1e7);
  CHECK(report.tests == 0);
  CHECK(report.outcome() == Outcome::pass);  // of the other claims
  for (const char* claim : {"exact-pairs", "unbiased", "variance"}) {
    const ClaimResults results = of_claim(report.subjects[0].results, claim);
    REQUIRE(results.size() == 1);
    CHECK(results[0].outcome == Outcome::skipped);
    CHECK_THAT(results[0].reason, ContainsSubstring("its mean is not claimed"));
  }
  const Result measured = of_claim(report.subjects[0].results, "unbiased")[0];
  INFO(measured.reason);
  CHECK_THAT(measured.reason, ContainsSubstring("the target is exp(q.k); the largest bias of "));
  REQUIRE(measured.evidence);
  CHECK(measured.evidence->interval.high < 0);
  CHECK(measured.evidence->effect < -0.04);
}

TEST_CASE("every claim has its line in every report, also where it cannot be tested", "[unit]") {
  Subject causal_only = subject("local");
  causal_only.claims = [](const Params&, const Shape& shape) {
    return Claims{.no_form = shape.mask.causal ? "" : "a recurrence", .causal_exact = true};
  };
  Subject no_form = subject("local");
  no_form.claims = [](const Params&, const Shape&) { return Claims{.no_form = "there is none"}; };
  for (const Subject& one : {subject("softmax"), subject("performer:m=8"), causal_only, no_form}) {
    const Report report = checked(one, 2e4);
    for (const auto& [claim, meaning] : claim_meanings()) {
      INFO(one.params.spec() << ": " << claim);
      CHECK_FALSE(of_claim(report.subjects[0].results, claim).empty());
    }
  }
}

TEST_CASE("every method, feature map and ensemble is in check --all", "[unit]") {
  Names specs;
  for (const Subject& one : all_subjects()) CHECK(specs.insert(one.params.spec()).second);
  const auto has = [&](const std::string& spec) {
    INFO(spec);
    CHECK(specs.contains(Params("methods", spec).spec()));
  };
  for (const auto& name : catalogue("methods").names()) has(name);
  for (const auto& name : catalogue("projections").names())
    for (const std::string features : {"positive", "trig"})
      has("performer:features=" + features + ",projection=" + name);
  for (const auto& name : catalogue("features").names()) {
    const Params performer("methods", "performer:features=" + name);
    has(performer.has("projection") ? performer.with("projection", "iid").spec() : performer.spec());
  }
  for (const auto& name : catalogue("deterministic-features").names()) has("linear:features=" + name);
}

TEST_CASE("check exits with 0, 1 or 2, and its JSON holds every result", "[end-to-end]") {
  const auto passes = output_of("check uniform softmax --json --seed 7");
  CHECK(passes.code == 0);
  const auto json = nlohmann::json::parse(passes.text);
  CHECK(json["outcome"] == "PASS");
  CHECK(json["seed"] == 7);
  REQUIRE(json["subjects"].size() == 2);
  CHECK(json["subjects"][0]["spec"] == "uniform");
  for (const auto& result : json["subjects"][1]["results"])
    CHECK((result["outcome"] == "PASS" || !result["reason"].get<std::string>().empty()));

  const auto fails = output_of("check performer:m=8,epsilon=1e-4 --threads 1");
  INFO(fails.text);
  CHECK(fails.code == 1);
  CHECK(fails.text.find("exact-pairs   FAIL") != std::string::npos);
  CHECK(fails.text.find("family-wise error rate of 1e-06") != std::string::npos);

  for (const char* misuse : {"check", "check preformer", "check performer:M=4", "check softmax --all",
                             "check softmax --error-rate 0", "check softmax --threads 0", "check softmax --sed 1"}) {
    INFO(misuse);
    CHECK(program(misuse).code == 2);
  }
  const auto help = output_of("check --help");
  CHECK(help.code == 0);
  const auto in_one_line = [](const std::string& text) { return std::regex_replace(text, std::regex("\\s+"), " "); };
  for (const auto& [claim, meaning] : claim_meanings())
    CHECK(in_one_line(help.text).find(in_one_line(meaning)) != std::string::npos);
}

}  // namespace attnbench::check_test
