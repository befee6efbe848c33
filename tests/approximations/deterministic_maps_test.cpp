// Deterministic feature maps and the methods made of them: inputs whose answer is known (methods.md J24 to J27), scalar
// kernels, and the edges where a row is left without weight.
#include <cmath>
#include <numbers>

#include "harness/linalg/lapack.hpp"
#include "harness/measures/attention_matrix.hpp"
#include "tests/cases.hpp"
#include "tests/catch.hpp"
#include "tests/misuse.hpp"

namespace attnbench::deterministic_maps_test {

namespace {

constexpr double tolerance = 1e-12;  // see methods_test.cpp

TestHead small_problem() { return gaussian_problem({.nq = 40, .nk = 50, .d = 6, .dv = 4}, 0.8); }

template <class T = double>
Matrix<T> result(const std::string& spec, const TestHead& problem, Mask mask = {}) {
  Shape shape = problem.shape;
  shape.mask = mask;
  return attend(*draw_method<T>(Params("methods", spec), shape, problem), problem.head.template cast<T>(), mask);
}

Matrix<double> matrix_of(const std::string& spec, const TestHead& problem, Mask mask = {}) {
  Shape shape = problem.shape;
  shape.mask = mask;
  Context context;
  return attention_matrix(*draw_method<double>(Params("methods", spec), shape, problem), problem.head.view(), mask,
                          context);
}

double difference(const Matrix<double>& a, const Matrix<double>& b) { return (a - b).cwiseAbs().maxCoeff(); }

// The weights of the method in place of exp(q.k), for all pairs.
Matrix<double> weights_of(const std::string& spec, const TestHead& problem) {
  const auto method = draw_method<double>(Params("methods", spec), problem.shape, problem);
  Matrix<double> block(problem.shape.nq, problem.shape.nk);
  std::vector<double> log_rows(static_cast<size_t>(block.rows())), log_columns(static_cast<size_t>(block.cols()));
  Context context;
  method->kernel()->kernel(problem.head.view(), context, block, log_rows, log_columns);
  for (Index i = 0; i < block.rows(); ++i)
    for (Index j = 0; j < block.cols(); ++j)
      block(i, j) *= std::exp(log_rows[static_cast<size_t>(i)] + log_columns[static_cast<size_t>(j)]);
  return block;
}

Matrix<double> column_sums_of_exponentials(const Matrix<double>& K) { return K.array().exp().colwise().sum(); }

}  // namespace

TEST_CASE("Hedgehog begins as softmax over the channels of unscaled inputs, and learns to imitate softmax attention",
          "[methods]") {
  TestHead problem = small_problem();
  CHECK(difference(result("linear:features=hedgehog,steps=0", problem),
                   result("linear:features=softmax,inputs=unscaled", problem)) < tolerance);
  problem.head = problem.calibration;
  problem.head.V.setIdentity(50, 50);
  problem.shape.dv = 50;
  const Matrix<double> A = result("softmax", problem);
  // The divergence of the map's attention from softmax attention (Kullback and Leibler), mean over rows.
  const auto divergence = [&](const std::string& spec) {
    return (A.array() * (A.array().log() - result(spec, problem).array().log())).rowwise().sum().mean();
  };
  const double before = divergence("linear:features=hedgehog,steps=0"),
               after = divergence("linear:features=hedgehog,steps=50");
  CHECK(after < 0.9 * before);
  CHECK(divergence("linear:features=hedgehog,steps=1000") < 0.9 * after);
  CHECK(contains(misuse_of([&] { drawn("linear:features=hedgehog,inputs=unscaled", problem); }), "fitted to scaled"));
}

TEST_CASE("DPFP multiplies neighbours of the positive and negative parts of a token", "[methods]") {
  TestHead problem = gaussian_problem({.nq = 1, .nk = 2, .d = 2, .dv = 1}, 1);
  problem.head.Q << 1, 2;         // u = (1, 2, 0, 0)
  problem.head.K << 3, 4, -1, 5;  // u = (3, 4, 0, 0) and (0, 5, 1, 0)
  const Matrix<double> one = weights_of("linear:features=dpfp", problem);
  CHECK(std::abs(one(0, 0) - 2 * 12) < tolerance);
  CHECK(one(0, 1) == 0);
  const Matrix<double> two = weights_of("linear:features=dpfp,nu=3", problem);
  CHECK(std::abs(two(0, 0) - 2 * 2 * 12) < tolerance);  // shift 3 has u_1 u_0
}

TEST_CASE("elu attention is exp attention when no number is above 0", "[methods]") {
  TestHead problem = small_problem();
  CHECK(difference(result("linear", problem), result("linear:features=exp", problem)) > 1e-3);
  problem.head.Q = -problem.head.Q.cwiseAbs();
  problem.head.K = -problem.head.K.cwiseAbs();
  for (const Mask mask : {Mask{}, Mask{.causal = true, .offset = 10}, Mask{.keys = 30}})
    CHECK(difference(result("linear", problem, mask), result("linear:features=exp", problem, mask)) < tolerance);
}

TEST_CASE("in one dimension every row of exp attention is the softmax of the keys", "[methods]") {
  const TestHead problem = gaussian_problem({.nq = 20, .nk = 30, .d = 1, .dv = 4}, 2);
  const Eigen::VectorXd weights = problem.head.K.col(0).array().exp();
  const Eigen::RowVectorXd want = weights.transpose() * problem.head.V / weights.sum();
  CHECK((result("linear:features=exp", problem).rowwise() - want).cwiseAbs().maxCoeff() < tolerance);
}

TEST_CASE("exp-norm is exp with keys weighed by exp(-|k|^2/2)", "[methods]") {
  TestHead problem = small_problem();
  const Eigen::ArrayXd norm_factor = (-problem.head.K.rowwise().squaredNorm().array() / 2).exp();
  const Matrix<double> plain = weights_of("linear:features=exp", problem);
  const Matrix<double> want = plain * norm_factor.matrix().asDiagonal();
  CHECK(((weights_of("linear:features=exp-norm", problem) - want).array() / want.array()).abs().maxCoeff() < tolerance);
  for (Index j = 0; j < 50; ++j) problem.head.K.row(j) *= 1.3 / problem.head.K.row(j).norm();
  CHECK(difference(result("linear:features=exp-norm", problem), result("linear:features=exp", problem)) < tolerance);
}

TEST_CASE("efficient attention does not see a number added to a channel of all keys; linear attention does",
          "[methods]") {
  const TestHead problem = small_problem();
  TestHead shifted = problem;
  shifted.head.K.rowwise() += Eigen::RowVectorXd::LinSpaced(6, -2, 3);
  for (const std::string spec : {"efficient", "efficient:inputs=unscaled"}) {
    INFO(spec);
    CHECK(difference(result(spec, shifted), result(spec, problem)) < tolerance);
  }
  CHECK(difference(result("linear:features=exp", shifted), result("linear:features=exp", problem)) > 1e-2);
}

TEST_CASE("efficient attention is exp attention if and only if the columns of e^k have equal sums", "[methods]") {
  TestHead problem = small_problem();
  CHECK(difference(result("efficient", problem), result("linear:features=exp", problem)) > 1e-2);
  const Matrix<double> sums = column_sums_of_exponentials(problem.head.K);
  problem.head.K.rowwise() -= sums.array().log().matrix().row(0);
  CHECK(difference(column_sums_of_exponentials(problem.head.K), Matrix<double>::Ones(1, 6)) < tolerance);
  CHECK(difference(result("efficient", problem), result("linear:features=exp", problem)) < tolerance);
}

TEST_CASE("a softmax over the channels of a query leaves exp attention as it is, and moves its kernel", "[methods]") {
  const TestHead problem = small_problem();
  for (const Mask mask : {Mask{}, Mask{.causal = true, .offset = 10}, Mask{.keys = 30}})
    CHECK(difference(result("linear:features=softmax-exp", problem, mask),
                     result("linear:features=exp", problem, mask)) < tolerance);
  const Matrix<double> ours = weights_of("linear:features=softmax-exp", problem),
                       exp = weights_of("linear:features=exp", problem);
  const Matrix<double> quotient = exp.cwiseQuotient(ours);
  CHECK(difference(quotient, problem.head.Q.array().exp().rowwise().sum().matrix().replicate(1, ours.cols())) <
        tolerance * quotient.maxCoeff());
}

TEST_CASE("efficient attention of unscaled inputs is that of inputs d^1/4 as large", "[methods]") {
  TestHead problem = small_problem();
  const Matrix<double> unscaled = result("efficient:inputs=unscaled", problem);
  problem.head.Q *= std::pow(6, 0.25);
  problem.head.K *= std::pow(6, 0.25);
  CHECK(difference(result("efficient", problem), unscaled) < tolerance);
}

TEST_CASE("efficient attention is right in float when channels rise or fall by hundreds along the keys", "[methods]") {
  TestHead problem = gaussian_problem({.nq = 30, .nk = 2600, .d = 4, .dv = 3}, 1);
  for (Index c = 0; c < 4; ++c)
    problem.head.K.col(c) += Eigen::VectorXd::LinSpaced(2600, c % 2 == 0 ? -300 : 300, c % 2 == 0 ? 300 : -300);
  problem.head.K = problem.head.K.cast<float>().cast<double>();
  const Matrix<double> want = result("efficient", problem);
  const Matrix<float> got = result<float>("efficient", problem);
  // An exponent k - max of numbers that float holds is exact up to half an ulp of 600, 3e-5, and moves its weight by as
  // much; the sums of up to 2600 of them are right to 2600 eps.
  const double allowed = 2 * (3e-5 + 2600 * static_cast<double>(std::numeric_limits<float>::epsilon()));
  CHECK(difference(got.cast<double>(), want) < allowed * problem.head.V.cwiseAbs().maxCoeff());
}

TEST_CASE("products of channels give the square of q.k, and the Taylor series to its second term", "[methods]") {
  const TestHead problem = small_problem();
  const Matrix<double> s = problem.head.Q * problem.head.K.transpose();
  const double largest = problem.head.Q.rowwise().norm().maxCoeff() * problem.head.K.rowwise().norm().maxCoeff();
  const double rounding = tolerance * (1 + largest) * (1 + largest);
  CHECK(difference(weights_of("polynomial", problem), s.array().square()) < rounding);
  CHECK(difference(weights_of("polynomial:degree=1", problem), s) < rounding);
  const Matrix<double> taylor = weights_of("taylor", problem);
  CHECK(difference(taylor, 1 + s.array() + s.array().square() / 2) < rounding);
  CHECK(taylor.minCoeff() >= 0.5);
  const Eigen::ArrayXXd bound = s.array().max(0).exp() * s.array().abs().cube() / 6;
  CHECK(((taylor.array() - s.array().exp()).abs() - bound).maxCoeff() < rounding);
  const Shape& shape = problem.shape;
  for (const auto& [spec, features] : {std::pair<const char*, Index>{"polynomial", 21},
                                       {"polynomial:degree=1", 6},
                                       {"taylor", 28},
                                       {"taylor:order=1", 7},
                                       {"cosformer", 12},
                                       {"efficient", 6}}) {
    const Params params("methods", spec);
    CHECK(find<MethodEntry>(params.name()).claims(params, shape).rank_at_most == features);
  }
}

TEST_CASE("Taylor weights of unit vectors are 1 plus the cosine, whatever the lengths, and 1 without a direction",
          "[methods]") {
  TestHead problem = small_problem();
  Matrix<double> want = problem.head.Q.rowwise().normalized() * problem.head.K.rowwise().normalized().transpose();
  want.array() += 1;
  CHECK(difference(weights_of("taylor:order=1", problem), want) < tolerance);
  problem.head.Q *= 1e3;
  problem.head.K *= 1e-3;
  problem.head.Q.row(3).setZero();
  problem.head.K.row(5).setZero();
  want.row(3).setOnes();
  want.col(5).setOnes();
  CHECK(difference(weights_of("taylor:order=1", problem), want) < tolerance);
}

TEST_CASE("a key opposite to the query has no weight in Taylor attention of order 1", "[methods]") {
  TestHead problem = gaussian_problem({.nq = 2, .nk = 1, .d = 1, .dv = 3}, 1);
  problem.head.Q << 0.7, -0.3;
  problem.head.K << 1.9;
  const Matrix<double> out = result("taylor:order=1", problem);
  CHECK(difference(out.row(0), problem.head.V.row(0)) < tolerance);
  CHECK((out.row(1).array() == 0).all());
}

TEST_CASE("cosFormer weighs relu(q).relu(k) by the cosine of the distance, wherever rows stand", "[methods]") {
  const TestHead problem = small_problem();  // 40 rows, 50 keys
  const Matrix<double> content = problem.head.Q.cwiseMax(0) * problem.head.K.cwiseMax(0).transpose();
  for (const auto& [mask, M] : {std::pair<Mask, double>{{}, 50},
                                {{.causal = true}, 50},
                                {{.causal = true, .offset = 10}, 50},
                                {{.offset = 30}, 70},
                                {{.offset = -5}, 55}}) {
    INFO(to_string(mask));
    Matrix<double> want = Matrix<double>::Zero(40, 50);
    for (Index i = 0; i < 40; ++i) {
      const Index seen = mask.visible(i, 50);
      for (Index j = 0; j < seen; ++j)
        want(i, j) = content(i, j) * std::cos(std::numbers::pi / 2 * static_cast<double>(i + mask.offset - j) / M);
      CHECK(want.row(i).minCoeff() >= 0);
      if (const double sum = want.row(i).sum(); sum > 0) want.row(i) /= sum;
    }
    CHECK(difference(matrix_of("cosformer", problem, mask), want) < tolerance);
  }
}

TEST_CASE("relu leaves rows without weight, and an epsilon brings them back", "[methods]") {
  TestHead problem = small_problem();
  problem.head.Q.row(7) = -problem.head.Q.row(7).cwiseAbs();
  for (const char* map : {"relu", "relu2"}) {
    INFO(map);
    const std::string spec = std::string("linear:features=") + map;
    CHECK((result(spec, problem).row(7).array() == 0).all());
    // That query weighs all channels alike.
    const int power = map == std::string("relu") ? 1 : 2;
    const Eigen::VectorXd weights = (problem.head.K.array().max(0).pow(power) + 0.01).matrix().rowwise().sum();
    const Eigen::RowVectorXd want = weights.transpose() * problem.head.V / weights.sum();
    CHECK(difference(result(spec + ",epsilon=0.01", problem).row(7), want) < tolerance);
  }
}

TEST_CASE("softmax features have one direction less than there are of them", "[methods]") {
  const TestHead problem = gaussian_problem({.nq = 30, .nk = 30, .d = 3, .dv = 1}, 1);
  const auto sigma = singular_values(matrix_of("linear:features=softmax", problem));
  CHECK(sigma[4] > 1e-6);
  CHECK(sigma[5] < 1e-14);
}

TEST_CASE("identity gives each row its own value, and zero gives nothing", "[methods]") {
  const TestHead problem = small_problem();
  CHECK(identical<double>(result("identity", problem), problem.head.V.topRows(40)));
  CHECK(identical<double>(result("identity", problem, {.causal = true, .offset = 10}), problem.head.V.bottomRows(40)));
  const Matrix<double> padded = result("identity", problem, {.offset = -5, .keys = 20});
  CHECK((padded.topRows(5).array() == 0).all());
  CHECK(identical<double>(padded.middleRows(5, 20), problem.head.V.topRows(20)));
  CHECK((padded.bottomRows(15).array() == 0).all());
  CHECK((result("zero", problem).array() == 0).all());
}

}  // namespace attnbench::deterministic_maps_test
