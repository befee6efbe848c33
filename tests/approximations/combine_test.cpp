// Sparse plus low rank beyond the default pair, which methods_test.cpp covers.
#include "tests/cases.hpp"
#include "tests/catch.hpp"
#include "tests/misuse.hpp"
#include "tests/oracle/oracle.hpp"

namespace attnbench::combine_test {

namespace {

struct Drawn {
  Case one;
  std::unique_ptr<Approximation<double>> method;

  Matrix<double> out() const { return attend(*method, one.problem.head, one.shape.mask); }
  // The largest distance of the output to an answer's, over the row's condition.
  double error_to(const oracle::Answer& answer) const {
    return worst_error(out(), answer.out, answer.condition, one.problem.head.V.cwiseAbs().maxCoeff());
  }
};

Drawn drawn_case(const std::string& spec, const TestHead& problem, Mask mask) {
  const Params params("methods", spec);
  Shape shape = problem.shape;
  shape.mask = mask;
  Case one{params, find<MethodEntry>(params.name()).claims(params, shape), shape, problem};
  auto method = one.draw<double>();
  return {std::move(one), std::move(method)};
}

oracle::Answer transcribed(const Drawn& d) {
  return oracle::attention(d.one.params, d.method->state(), d.one.problem.head, d.one.shape.mask);
}

const TestHead& problem() {
  static const TestHead head = gaussian_problem({.nq = 150, .nk = 150, .d = 8, .dv = 5}, 0.8);
  return head;
}

}  // namespace

TEST_CASE("patterns and bases of every kind combine as their transcription does", "[methods]") {
  const std::pair<const char*, bool> specs[] = {{"combine:[top-k:k=5],[performer:m=32]", true},
                                                {"combine:[bigbird:block=8,window=1,random=1],[linear]", true},
                                                {"combine:[strided:stride=4],[performer:features=trig,m=32]", true},
                                                {"combine:[local:window=5],[vq:codes=8]", true},
                                                {"combine:[local:window=0],[taylor]", true},
                                                {"combine:[local:window=5],[nystrom:landmarks=6]", false},
                                                {"combine:[top-k:k=5],[nystrom:landmarks=6]", false}};
  for (const auto& [spec, causal] : specs)
    for (const Mask& mask : {Mask{}, Mask{.keys = 100}, Mask{.causal = true}, Mask{.causal = true, .keys = 100}}) {
      if (mask.causal && !causal) continue;
      INFO(spec << ", " << to_string(mask));
      const Drawn d = drawn_case(spec, problem(), mask);
      CHECK(d.error_to(transcribed(d)) < 1e-12);
    }
}

TEST_CASE("a pattern of all keys leaves nothing of the base", "[methods]") {
  const auto exact = oracle::attention(Params("methods", "softmax"), {}, problem().head, {});
  const Drawn d = drawn_case("combine:[local:window=1000],[linear]", problem(), {});
  auto answer = transcribed(d);
  CHECK((answer.out - exact.out).cwiseAbs().maxCoeff() < 1e-12);
  CHECK(d.error_to(answer) < 1e-12);
}

TEST_CASE("where the base has no weight at all, the pattern's logits may be as small as they like", "[methods]") {
  // relu features of the queries are 0, so the base's weights and normalisers are; all logits are -800, whose
  // exponential is 0 as well. Every key of the window has the same weight.
  TestHead head = gaussian_problem({.nq = 20, .nk = 20, .d = 2, .dv = 3}, 1);
  head.head.Q.setZero();
  head.head.K.setZero();
  head.head.Q.col(0).setConstant(-40);
  head.head.K.col(0).setConstant(20);
  const Matrix<double> out = drawn_case("combine:[local:window=1],[linear:features=relu]", head, {}).out();
  for (Index i = 0; i < 20; ++i) {
    const Index first = std::max<Index>(0, i - 1), count = std::min<Index>(20, i + 2) - first;
    CHECK((out.row(i) - head.head.V.middleRows(first, count).colwise().mean()).cwiseAbs().maxCoeff() < 1e-14);
  }
}

TEST_CASE("the test of combinations sees what is counted twice", "[methods]") {
  const Drawn d = drawn_case("combine:[local:window=5],[linear]", problem(), {});
  const auto& head = problem().head;
  const auto pattern = oracle::attention(Params("methods", "local:window=5"), {}, head, {});
  const auto base = oracle::kernel(Params("methods", "linear"), {}, head);
  REQUIRE(base);
  Matrix<double> twice(head.Q.rows(), head.K.rows());
  for (Index i = 0; i < twice.rows(); ++i)
    for (Index j = 0; j < twice.cols(); ++j)
      twice(i, j) = base->weight(i, j) * std::exp(base->log(i, j)) +
                    (pattern.A(i, j) > 0 ? std::exp(head.Q.row(i).dot(head.K.row(j))) : 0);
  for (Index i = 0; i < twice.rows(); ++i) twice.row(i) /= twice.row(i).sum();
  CHECK((twice * head.V - d.out()).cwiseAbs().maxCoeff() > 1e-3);
}

TEST_CASE("a weight of the base that underflows to 0 leaves the row what the pattern makes it", "[methods]") {
  const Params params("methods", "combine:[local:window=0],[performer:m=8]");
  TestHead one = gaussian_problem({.nq = 1, .nk = 1, .d = 16, .dv = 3}, 1);
  size_t underflowed = 0;
  for (Index replicate = 0; replicate < 200; ++replicate) {
    HeadData<double>& head = one.head;
    head.K = -head.Q;  // a logit of -10,000: no random vector is large for both
    const double scale = 100 / head.Q.norm();
    head.Q *= scale;
    head.K *= scale;
    const auto method = draw_method<float>(params, one.shape, one, nullptr, replicate);
    const HeadData<float> narrow = head.cast<float>();
    const auto base = draw_method<float>(Params("methods", "performer:m=8"), one.shape, one, nullptr, replicate);
    Matrix<float> weight(1, 1);
    std::vector<float> rows(1), columns(1);
    Context context;
    base->kernel()->kernel(narrow.view(), context, weight, rows, columns);
    underflowed += weight(0, 0) == 0;
    CHECK((attend(*method, narrow, {}) - narrow.V).norm() < 1e-6F);
  }
  CHECK(underflowed > 0);
}

TEST_CASE("what cannot be combined is refused with the reason", "[methods]") {
  const auto refused = [](const char* spec, const char* reason, bool causal = false) {
    INFO(spec);
    CHECK_THROWS_WITH(drawn_case(spec, problem(), {.causal = causal}), ContainsSubstring(reason));
  };
  refused("combine:[local]", "expected two");
  refused("combine:[local],[vq],[vq]", "expected two");
  refused("combine:[performer],[local]", "performer declares no pattern of keys; expected one that does");
  refused("combine:[local],[reformer]", "no weight of a pair");
  refused("combine:[local],[cosformer]", "kernel of content alone", true);
  CHECK_THROWS_WITH(Params("methods", "combine:[local:window=-1],[performer]"), ContainsSubstring("window=-1"));
  CHECK_THROWS_WITH(Params("methods", "combine:m=3"), ContainsSubstring("unknown parameter 'm'"));
}

TEST_CASE("a base with another normaliser than row sums is refused before it is drawn", "[methods]") {
  // Registered here, so that no other test sees more methods than the program has.
  for (const auto& [name, normaliser] : {std::pair("unnormalised", Normaliser::none), {"unit-rows", Normaliser::l2}}) {
    MethodEntry entry = find<MethodEntry>("softmax");
    entry.text.name = name;
    entry.text.aliases.clear();
    entry.claims = [normaliser = normaliser](const Params&, const Shape&) { return Claims{.normaliser = normaliser}; };
    add(std::move(entry));
  }
  const auto refusal = [](const std::string& spec) {
    const Params params("methods", spec);
    return misuse_of([&] { find<MethodEntry>(params.name()).check(params); });
  };
  CHECK(
      refusal("combine:[local],[unnormalised]") ==
      "combine: [unnormalised] has the normaliser none; expected row_sums, a method that divides its weights by their "
      "row sums, such as linear or performer");
  CHECK_THAT(refusal("combine:[local],[unit-rows]"), ContainsSubstring("[unit-rows] has the normaliser l2"));
  CHECK_THAT(refusal("truncated:base=unnormalised"), ContainsSubstring("truncated: [unnormalised] has the normaliser"));
  CHECK_NOTHROW(find<MethodEntry>("combine").check(Params("methods", "combine:[local],[performer]")));
  CHECK_NOTHROW(find<MethodEntry>("truncated").check(Params("methods", "truncated:base=softmax")));
}

TEST_CASE("specs in specs have one spelling", "[unit]") {
  const auto spelled = [](const char* spec) { return Params("methods", spec).spec(); };
  CHECK(spelled("combine:[local],[performer]") == "combine");
  CHECK(spelled("combine:local,performer:m=256") == "combine");
  CHECK(spelled("combine:[local:window=8],vq") == "combine:local:window=8,vq");
  CHECK(spelled("combine:[local:window=8],[performer:features=trig,m=64]") ==
        "combine:local:window=8,[performer:features=trig,m=64]");
  CHECK(Params("methods", spelled("combine:[local:window=8],[vq]")).all_nested("parts")[0].integer("window") == 8);
}

}  // namespace attnbench::combine_test
