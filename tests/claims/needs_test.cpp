// Inputs beside Q, K and V: what a method needs is given, checked, cut with its head, and part of every claim.
#include "harness/core/needs.hpp"

#include <set>

#include "harness/claims/check.hpp"
#include "harness/experiment/cell.hpp"
#include "tests/catch.hpp"
#include "tests/misuse.hpp"

namespace attnbench::needs_test {

namespace attnbench::needs_test {
namespace {

using Names = std::set<std::string>;

// A_ij = w_j exp(q_i.k_j) / sum over the keys that row i sees, w_j the weight of key j times that of query i, which
// cancels. `mistake` plants one.
enum Mistake { none, next_key, padded_keys, first_keys };

template <class T>
class Weighted final : public Approximation<T>, public Kernel<T> {
 public:
  explicit Weighted(const Draw& draw) : mistake_(draw.params.integer("mistake")) {}

  void attend(const Head<T>& head, Mask mask, Context&, Out<T> out) const override {
    const Index nk = head.K.rows();
    const Matrix<T> K = weights(head);
    for (Index i = 0; i < out.rows(); ++i) {
      const Index seen = mask.visible(i, nk);
      out.row(i).setZero();
      if (seen == 0) continue;
      Matrix<T> row = K.row(i).head(seen);
      if (mistake_ == next_key) row(0, seen - 1) *= 1 + factor(head, std::min(seen, nk - 1));
      if (mistake_ == padded_keys) row(0, 0) *= factor(head, nk - 1);
      out.row(i) = row * head.V.topRows(seen) / row.sum();
    }
  }
  const Kernel<T>* kernel() const override { return this; }
  void kernel(const Head<T>& head, Context&, Out<T> block, std::span<T> log_rows,
              std::span<T> log_columns) const override {
    block = weights(head);
    std::fill(log_rows.begin(), log_rows.end(), T(0));
    std::fill(log_columns.begin(), log_columns.end(), T(0));
  }

 private:
  static T factor(const Head<T>& head, Index key) { return static_cast<T>(head.needed("weight")(key, 0)); }
  Matrix<T> weights(const Head<T>& head) const {
    Matrix<T> K = (head.Q * head.K.transpose()).array().exp();
    for (Index j = 0; j < K.cols(); ++j) K.col(j) *= factor(head, mistake_ == first_keys ? 0 : j);
    for (Index i = 0; i < K.rows(); ++i) K.row(i) *= static_cast<T>(head.needed("query_weight")(i, 0));
    return K;
  }

  Index mistake_;
};

Matrix<double> transcription(const Draw&, const Approximation<double>&, const Head<double>& head, Mask mask) {
  Matrix<double> out = Matrix<double>::Zero(head.Q.rows(), head.V.cols());
  for (Index i = 0; i < out.rows(); ++i) {
    double sum = 0;
    for (Index j = 0; j < mask.visible(i, head.K.rows()); ++j) {
      const double weight = head.needed("weight")(j, 0) * std::exp(head.Q.row(i).dot(head.K.row(j)));
      sum += weight;
      out.row(i) += weight * head.V.row(j);
    }
    if (sum > 0) out.row(i) /= sum;
  }
  return out;
}

// Registered when a test asks for it, so that no other test sees more methods than the program has.
void register_weighted() {
  static const bool once = [] {
    return add(method<Weighted>({
        .text = {.name = "weighted", .summary = "softmax with a weight for each key"},
        .parameters = {Parameter::integer("mistake", 0, "one of this file's mistakes", 0, 9).as_published()},
        .claims =
            [](const Params&, const Shape&) {
              return Claims{.row_stochastic = true,
                            .non_negative = true,
                            .permutation_equivariant = true,
                            .causal_exact = true,
                            .no_extremes = "its exponentials are plain"};
            },
        .memory = [](const Params&, const Shape&) { return 0.0; },
        .cost = [](const Params&, const Shape&) { return Work{}; },
        .memory_assumed = true,
        .cost_assumed = true,
        .needs = {{.name = "weight", .values = Need::Values::uniform, .meaning = "of each key"},
                  {.name = "query_weight", .rows = "nq", .values = Need::Values::uniform}},
        .transcription = transcription,
    }));
  }();
  (void)once;
}

Report checked(const std::string& spec) {
  register_weighted();
  return check({subject_of(Params("methods", spec))}, {});
}

Names failing(const std::string& spec) {
  Names names;
  const Report report = checked(spec);
  for (const Result& result : report.subjects[0].results)
    if (result.outcome == Outcome::fail) names.insert(result.claim);
  return names;
}

Extras extras_of(const Params& method, const Shape& shape, const Extras& given) {
  return extras_for(method, shape, given, "the test", [](const Need& need) { return "give " + need.name; });
}

}  // namespace

TEST_CASE("every claim is tested of a method that needs more than Q, K and V", "[unit]") {
  const Report report = checked("weighted");
  Names passed;
  for (const Result& result : report.subjects[0].results) {
    INFO(result.claim << ": " << result.tested << " " << result.reason);
    CHECK(result.outcome != Outcome::fail);
    if (result.outcome == Outcome::pass) passed.insert(result.claim);
  }
  for (const char* claim : {"formula", "second-paths", "precision", "repeatable", "views", "padding", "empty-rows",
                            "linear", "row-sums", "non-negative", "permutation", "causal"})
    CHECK(passed.contains(claim));
}

TEST_CASE("a method that reads the weight of a later, a padded or another key is found", "[unit]") {
  CHECK(failing("weighted:mistake=1").contains("causal"));
  CHECK(failing("weighted:mistake=2").contains("padding"));
  CHECK(failing("weighted:mistake=3") ==
        Names{"formula", "lengths", "second-paths"});  // a part of the head has another first key
}

TEST_CASE("what a base needs is given to it, cut to the block that its wrapper asks for", "[unit]") {
  CHECK(failing("truncated:base=weighted,window=5") == Names{});
  CHECK(failing("truncated:base=weighted,window=5,renormalise=false") == Names{});
  CHECK(failing("combine:[local:window=5],[weighted]") == Names{});
  CHECK(failing("per-head:[weighted],[local]") == Names{});
  // The band of the weights, normalised, is computed here by hand.
  const Params spec("methods", "truncated:base=weighted,window=5");
  CHECK(needs_of(spec).size() == 2);
  const Shape shape{.nq = 70, .nk = 70, .d = 4, .dv = 3, .precision = Precision::f64};
  Generator generator = Streams(1).stream("needs");
  HeadData<double> head{standard_normal(generator, 70, 4), standard_normal(generator, 70, 4),
                        standard_normal(generator, 70, 3), drawn_extras(spec, shape, 1)};
  Matrix<double> out(70, 3);
  Context context;
  make_approximation<double>({.shape = shape, .params = spec, .streams = Streams(1)})
      ->attend(head.view(), {}, context, out);
  for (Index i = 0; i < 70; ++i) {
    double sum = 0;
    Eigen::RowVector3d want = Eigen::RowVector3d::Zero();
    for (Index j = std::max<Index>(0, i - 5); j <= std::min<Index>(69, i + 5); ++j) {
      const double weight = head.extra.at("weight").numbers(j, 0) * std::exp(head.Q.row(i).dot(head.K.row(j)));
      sum += weight;
      want += weight * head.V.row(j);
    }
    CHECK((out.row(i) - want / sum).norm() < 1e-12);
  }
  // Exact weights on the band, the base's beside it.
  const Params combined("methods", "combine:[local:window=5],[weighted]");
  make_approximation<double>({.shape = shape, .params = combined, .streams = Streams(1)})
      ->attend(head.view(), {}, context, out);
  for (Index i = 0; i < 70; ++i) {
    double sum = 0;
    Eigen::RowVector3d want = Eigen::RowVector3d::Zero();
    for (Index j = 0; j < 70; ++j) {
      const double exact = std::exp(head.Q.row(i).dot(head.K.row(j)));
      const double base = head.extra.at("query_weight").numbers(i, 0) * head.extra.at("weight").numbers(j, 0) * exact;
      const double weight = std::abs(i - j) <= 5 ? exact : base;
      sum += weight;
      want += weight * head.V.row(j);
    }
    CHECK((out.row(i) - want / sum).norm() < 1e-12);
  }
}

TEST_CASE("what is given is checked against the shape that is needed", "[unit]") {
  register_weighted();
  const Params weighted("methods", "weighted");
  const Shape shape{.nq = 2, .nk = 3, .d = 4, .dv = 5};
  Extras given{{"weight", {Matrix<double>::Ones(3, 1)}}, {"query_weight", {Matrix<double>::Ones(2, 1)}}};
  const Extras chosen = extras_of(weighted, shape, given);
  CHECK(chosen.at("weight").rows == Extra::Axis::keys);
  CHECK(chosen.at("query_weight").rows == Extra::Axis::queries);
  given["other"].numbers = Matrix<double>::Ones(1, 1);
  CHECK(extras_of(weighted, shape, given).size() == 2);
  given["weight"].numbers = Matrix<double>::Ones(2, 1);
  CHECK(misuse_of([&] { extras_of(weighted, shape, given); }) ==
        "weighted needs 'weight' of shape n x 1 = 3 x 1, and the test gives 2 x 1; give it that shape");
  given["weight"].numbers = Matrix<double>::Constant(3, 1, std::numeric_limits<double>::infinity());
  CHECK_THAT(misuse_of([&] { extras_of(weighted, shape, given); }), ContainsSubstring("gives NaN or infinity"));
  given.erase("weight");
  CHECK_THROWS_WITH(extras_of(weighted, shape, given),
                    "weighted needs 'weight' of shape n x 1 = 3 x 1, and the test does not give it; give weight");
  MethodEntry other = find<MethodEntry>("uniform");
  other.text = {.name = "weighted-pairs"};
  other.needs = {{.name = "weight", .rows = "nq", .columns = "n"}};
  add(std::move(other));
  CHECK(misuse_of([&] { needs_of(Params("methods", "per-head:[weighted],[weighted-pairs]")); }) ==
        "weighted-pairs needs 'weight' of shape nq x n, and another part of this spec of shape n x 1; they cannot be "
        "combined");
  CHECK_THAT(misuse_of([&] { size_of(Need{.name = "gate", .rows = "m"}, shape); }),
             ContainsSubstring("need 'gate' has an axis 'm'; expected n (one a key)"));
}

TEST_CASE("a head is cut with the rows of its further inputs", "[unit]") {
  const Matrix<double> Q = Matrix<double>::Random(4, 2), K = Matrix<double>::Random(5, 2), V = K;
  Matrix<double> numbers(4, 5);
  for (Index i = 0; i < 20; ++i) numbers.data()[i] = static_cast<double>(i);
  const Extras extras{{"bias", {numbers, Extra::Axis::queries, Extra::Axis::keys}},
                      {"gate", {numbers.row(0).transpose(), Extra::Axis::keys, Extra::Axis::fixed}},
                      {"table", {numbers, Extra::Axis::fixed, Extra::Axis::fixed}}};
  const HeadPart<double> part({Q, K, V, &extras}, 1, 2, 2, 3);
  CHECK(part.view().Q == Q.middleRows(1, 2));
  CHECK(part.view().K == K.middleRows(2, 3));
  CHECK(part.view().V == V.middleRows(2, 3));
  CHECK(part.view().needed("bias") == numbers.block(1, 2, 2, 3));
  CHECK(part.view().needed("gate") == numbers.row(0).segment(2, 3).transpose());
  CHECK(part.view().needed("table") == numbers);
  CHECK_THROWS_WITH(part.view().needed("gait"), ContainsSubstring("the head has no 'gait'"));
  CHECK_THROWS_WITH((Head<double>{Q, K, V}.needed("gate")), ContainsSubstring("the head has no 'gate'"));
}

TEST_CASE("an input that does not give what a method needs is a reason to skip its cells", "[unit]") {
  register_weighted();
  const Cell cell{.experiment = Params("experiments", "attention-error"),
                  .method = Params("methods", "weighted"),
                  .input = Params("inputs", "gaussian"),
                  .problem = {.shape = {.nq = 8, .nk = 8, .d = 4, .dv = 4}}};
  CHECK_THROWS_AS(draw_cell_head(cell, 0, 0, Purpose::measured), Skip);
  CHECK_THROWS_WITH(draw_cell_head(cell, 0, 0, Purpose::measured),
                    "weighted needs 'weight' of shape n x 1 = 8 x 1, and the input gaussian does not give it; inputs "
                    "that do: file:PATH with an array 'weight' beside q, k and v");
}

}  // namespace attnbench::needs_test

}  // namespace attnbench::needs_test
