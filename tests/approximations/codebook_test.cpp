// Codebooks: k-means, where codes come from, what quantising costs in accuracy, and Performer read as soft vector
// quantisation. methods.md D, J 29 to 33.
#include <algorithm>
#include <cmath>
#include <set>

#include "approximations/codebook/kmeans.hpp"
#include "approximations/codebook/nearest_codes.hpp"
#include "harness/linalg/lapack.hpp"
#include "harness/measures/attention_matrix.hpp"
#include "tests/cases.hpp"
#include "tests/scores.hpp"

namespace attnbench::codebook_test {

namespace {

constexpr double tolerance = 1e-12;

Matrix<double> out_of(const std::string& spec, const TestHead& problem, const Tensors* state = nullptr,
                      Index replicate = 0) {
  return attend(*drawn(spec, problem, {}, state, replicate), problem.head, {});
}

double distance(const Matrix<double>& a, const Matrix<double>& b) { return (a - b).cwiseAbs().maxCoeff(); }

TestHead gaussian() { return gaussian_problem({.nq = 60, .nk = 90, .d = 4, .dv = 3}, 0.8); }

// The head for its own calibration.
TestHead own_calibration() {
  TestHead problem = gaussian();
  problem.calibration = problem.head;
  return problem;
}

Matrix<double> matrix_of(const Approximation<double>& method, const TestHead& problem) {
  Context context;
  return attention_matrix(method, problem.head.view(), {}, context);
}

Matrix<double> gaussian_rows(Index n, Index d, const char* name) {
  auto generator = Streams(test_seed).stream("codebook test", name, n, d);
  return standard_normal(generator, n, d);
}

Clustering clustered(const Matrix<double>& X, Index codes, Sweeps sweeps, int threads = 1) {
  Generator generator(test_seed);
  Context context(threads);
  return kmeans(context, X, codes, sweeps, generator);
}

// Softmax attention of q A to k, with a term for each key: the limits of methods.md D6.
Matrix<double> softmax_with(const TestHead& problem, double factor, double of_norms) {
  const Eigen::RowVectorXd bias = of_norms * problem.head.K.rowwise().squaredNorm().transpose();
  Matrix<double> A = factor * problem.head.Q * problem.head.K.transpose();
  A.rowwise() += bias;
  A = (A.colwise() - A.rowwise().maxCoeff()).array().exp();
  return (A.array().colwise() / A.rowwise().sum().array()).matrix() * problem.head.V;
}

}  // namespace

TEST_CASE("Lloyd's sweeps never increase the inertia, and moving averages without memory are Lloyd's", "[methods]") {
  const Matrix<double> X = gaussian_rows(700, 5, "inertia");
  const Clustering lloyd = clustered(X, 40, {.most = 12});
  REQUIRE(lloyd.inertia.size() == 12);
  for (size_t sweep = 1; sweep < lloyd.inertia.size(); ++sweep)
    CHECK(lloyd.inertia[sweep] <= lloyd.inertia[sweep - 1] * (1 + tolerance));
  CHECK(lloyd.inertia.back() < 0.95 * lloyd.inertia.front());
  const Clustering averaged = clustered(X, 40, {.most = 12, .decay = 0.5});
  CHECK(averaged.inertia.back() < 0.95 * averaged.inertia.front());
  CHECK(averaged.inertia.front() == lloyd.inertia.front());
  CHECK(distance(averaged.centres, lloyd.centres) > 1e-3);
  CHECK(distance(clustered(X, 40, {.most = 12, .decay = 1}).centres, clustered(X, 40, {.most = 0}).centres) <
        tolerance);
  const TestHead problem = gaussian();
  CHECK(identical(out_of("vq:codes=16,update=ema,decay=0", problem), out_of("vq:codes=16", problem)));
  // The test sees centres that are not means: seeds that never move have what k-means++ left.
  CHECK(clustered(X, 40, {.most = 1}).inertia.front() > lloyd.inertia.back());
}

// Rows 0 and 1 stay on the code that begins at 0, rows 10 and 12 on the one that begins at 10, from the first sweep on.
// Their averages 0.5 and 11 are approached by half of what is left in each sweep: Sigma / N, with N = 2 throughout.
TEST_CASE("moving averages go on after the assignments have settled, and are those computed by hand", "[methods]") {
  const Matrix<double> X{{0.0}, {1.0}, {10.0}, {12.0}}, seeds{{0.0}, {10.0}};
  Context context;
  for (const Index most : {1, 2, 3, 6}) {
    INFO(most << " sweeps");
    const Clustering found = kmeans(context, X, seeds, {.most = most, .decay = 0.5});
    const double left = std::exp2(-static_cast<double>(most));
    CHECK(std::abs(found.centres(0, 0) - 0.5 * (1 - left)) < tolerance);
    CHECK(std::abs(found.centres(1, 0) - (11 - left)) < tolerance);
    CHECK(std::ssize(found.inertia) == most);
  }
  const Clustering lloyd = kmeans(context, X, seeds, {.most = 6});  // nothing is left to do after the first
  CHECK(lloyd.inertia.size() == 1);
  CHECK(distance(lloyd.centres, Matrix<double>{{0.5}, {11.0}}) < tolerance);
}

TEST_CASE("k-means gives the same bits for any number of threads", "[methods]") {
  const Matrix<double> X = gaussian_rows(9000, 3, "threads");
  const Matrix<double> one = clustered(X, 50, {.most = 3}).centres;
  for (const int threads : {2, 5}) CHECK(identical(clustered(X, 50, {.most = 3}, threads).centres, one));
}

TEST_CASE("k-means takes equal rows, more codes than rows, and codes that lose all their rows", "[methods]") {
  const Matrix<double> equal = Matrix<double>::Constant(20, 3, 0.25);
  const Clustering of_equal = clustered(equal, 4, {.most = 5});
  CHECK(identical(of_equal.centres, Matrix<double>(Matrix<double>::Constant(4, 3, 0.25))));  // three are empty and stay
  CHECK(of_equal.inertia.front() == 0);
  const Matrix<double> few = gaussian_rows(6, 3, "few");
  const Clustering all = clustered(few, 50, {.most = 5});
  REQUIRE(all.centres.rows() == 6);
  CHECK(all.inertia.front() == 0);
  // Far clusters: seeding by distance finds each of them.
  Matrix<double> far = 0.01 * gaussian_rows(80, 2, "far");
  for (Index i = 0; i < 80; ++i) far.row(i).array() += 100 * static_cast<double>(i % 8);
  CHECK(clustered(far, 8, {.most = 2}).inertia.back() < 1);
}

TEST_CASE("the nearest code is found whatever the sizes of tiles", "[methods]") {
  for (const Index codes : {1, 2, 127, 128, 300}) {
    const Matrix<double> centres = gaussian_rows(codes, 7, "centres"), X = gaussian_rows(1100, 7, "vectors");
    Context context;
    const auto found = nearest_codes<double>(context, X, centres);
    const auto found_in_float = nearest_codes<float>(context, X.cast<float>().eval(), centres.cast<float>().eval());
    Index differing = 0;
    for (Index i = 0; i < X.rows(); ++i) {
      Index best = 0;
      (centres.rowwise() - X.row(i)).rowwise().squaredNorm().minCoeff(&best);
      CHECK(found[static_cast<size_t>(i)] == best);
      differing += found_in_float[static_cast<size_t>(i)] != best;
    }
    CHECK(differing < 10);  // those within float's rounding of halfway
  }
}

// Small integers, whose squared distances are exact: many rows are halfway between codes, and some codes are equal.
TEST_CASE("ties go to the lowest code, of one row as of many", "[methods]") {
  Matrix<double> centres(9, 2), X(25, 2);
  for (Index y = 0; y < 9; ++y) centres.row(y) << static_cast<double>(2 * (y % 3)), static_cast<double>(2 * (y % 2));
  for (Index i = 0; i < 25; ++i) X.row(i) << static_cast<double>(i % 5), static_cast<double>(i / 5);
  Context context;
  const auto together = nearest_codes<double>(context, X, centres);
  const auto in_float = nearest_codes<float>(context, X.cast<float>().eval(), centres.cast<float>().eval());
  Index ties = 0;
  for (Index i = 0; i < 25; ++i) {
    INFO("row " << i);
    const Eigen::VectorXd squared = (centres.rowwise() - X.row(i)).rowwise().squaredNorm();
    const Index lowest = std::find(squared.begin(), squared.end(), squared.minCoeff()) - squared.begin();
    ties += std::count(squared.begin(), squared.end(), squared.minCoeff()) > 1;
    const auto row = row_block(In<double>(X), i, 1);
    CHECK(together[static_cast<size_t>(i)] == lowest);
    CHECK(in_float[static_cast<size_t>(i)] == lowest);
    CHECK(nearest_codes<double>(context, row, centres) == std::vector<Index>{lowest});
    CHECK(nearest_codes<float>(context, Matrix<float>(row.cast<float>()), centres.cast<float>().eval()) ==
          std::vector<Index>{lowest});
  }
  CHECK(ties > 10);
}

TEST_CASE("codes are calibration keys drawn without replacement, fewer being the first of more", "[methods]") {
  const TestHead problem = gaussian();
  const auto codes_of = [&](const std::string& spec) { return drawn(spec, problem)->state().at("codebook"); };
  const Matrix<double> all = codes_of("vq:codebook=random,codes=1000"), few = codes_of("vq:codebook=random,codes=10");
  REQUIRE(all.rows() == 90);
  CHECK(identical(few, Matrix<double>(all.topRows(10))));
  std::vector<bool> taken(90, false);
  for (Index y = 0; y < 90; ++y) {
    Index key = 0;
    CHECK((problem.calibration.K.rowwise() - all.row(y)).rowwise().squaredNorm().minCoeff(&key) == 0);
    CHECK_FALSE(taken[static_cast<size_t>(key)]);
    taken[static_cast<size_t>(key)] = true;
  }
  CHECK_FALSE(identical(all, problem.calibration.K));
}

TEST_CASE("codes are standard normal vectors, whatever the keys", "[methods]") {
  TestHead problem = gaussian();
  const auto codes_of = [&](const std::string& spec) { return drawn(spec, problem)->state().at("codebook"); };
  const Matrix<double> all = codes_of("vq:codebook=normal,codes=2000"), few = codes_of("vq:codebook=normal,codes=10");
  REQUIRE(all.rows() == 2000);
  CHECK(identical(few, Matrix<double>(all.topRows(10))));
  problem.calibration.K *= 3;
  CHECK(identical(few, codes_of("vq:codebook=normal,codes=10")));
  // Mean square 1 within 6 standard errors sqrt(2 / N) of chi-squared numbers; a 5 % change of the scale is 10 %.
  const auto count = static_cast<double>(all.size());
  CHECK(std::abs(all.squaredNorm() / count - 1) < 6 * std::sqrt(2 / count));
}

TEST_CASE("a lattice is a grid over the box of the calibration keys", "[methods]") {
  TestHead problem = gaussian_problem({.nq = 30, .nk = 40, .d = 2, .dv = 3}, 0.8);
  problem.calibration.K.col(0) *= 3;
  const Matrix<double> grid = drawn("vq:codebook=lattice,codes=13", problem)->state().at("codebook");
  REQUIRE(grid.rows() == 12);  // 6 x 2 or 4 x 3: the longer axis has more levels
  const auto levels = [&](Index axis) {
    std::set<double> values(grid.col(axis).begin(), grid.col(axis).end());
    return values;
  };
  CHECK(levels(0).size() * levels(1).size() == 12);
  CHECK(levels(0).size() > levels(1).size());
  for (const Index axis : {0, 1}) {  // no key is farther than half a part
    const double low = problem.calibration.K.col(axis).minCoeff(), high = problem.calibration.K.col(axis).maxCoeff();
    const double half = (high - low) / static_cast<double>(levels(axis).size()) / 2;
    CHECK(std::abs(*levels(axis).begin() - low - half) < tolerance);
    CHECK(std::abs(*levels(axis).rbegin() - high + half) < tolerance);
  }
  const Matrix<double> point = drawn("vq:codebook=lattice,codes=1", problem)->state().at("codebook");
  CHECK(distance(point, (problem.calibration.K.colwise().maxCoeff() + problem.calibration.K.colwise().minCoeff()) / 2) <
        tolerance);
}

TEST_CASE("with the head's own keys for codes vq and a narrow soft-vq are softmax", "[methods]") {
  const TestHead problem = own_calibration();
  const Matrix<double> exact = out_of("softmax", problem);
  CHECK(distance(out_of("vq:codebook=keys", problem), exact) < tolerance);
  CHECK(distance(out_of("vq:codebook=random,codes=90", problem), exact) < tolerance);  // in any order
  CHECK(distance(out_of("vq:codes=90", problem), exact) < tolerance);
  CHECK(distance(out_of("soft-vq:codebook=keys,sigma=0.001", problem), exact) < tolerance);
  CHECK(distance(out_of("vq:codebook=keys", gaussian()), exact) > 1e-2);  // another head's keys are not
}

TEST_CASE("vq is softmax on quantised keys, and means with log counts are its stable form", "[methods]") {
  const TestHead problem = gaussian();
  const auto method = drawn("vq:codes=16", problem);
  const Matrix<double> codebook = method->state().at("codebook");
  Context context;
  const auto codes = nearest_codes<double>(context, problem.head.K, codebook);
  TestHead quantised = problem;
  Matrix<double> means = Matrix<double>::Zero(16, 3), counts = Matrix<double>::Zero(16, 1);
  for (Index j = 0; j < 90; ++j) {
    const Index y = codes[static_cast<size_t>(j)];
    quantised.head.K.row(j) = codebook.row(y);
    means.row(y) += problem.head.V.row(j);
    ++counts(y, 0);
  }
  const Matrix<double> want = out_of("softmax", quantised), got = attend(*method, problem.head, {});
  CHECK(distance(got, want) < tolerance);
  Matrix<double> stable = problem.head.Q * codebook.transpose();
  for (Index y = 0; y < 16; ++y) {
    stable.col(y).array() += std::log(counts(y, 0));
    if (counts(y, 0) > 0) means.row(y) /= counts(y, 0);
  }
  stable = stable.array().exp();
  stable = stable.array().colwise() / stable.rowwise().sum().array();
  CHECK(distance(stable * means, want) < tolerance);
  // Planted: means of values, and the counts forgotten.
  Matrix<double> uncounted = (problem.head.Q * codebook.transpose()).array().exp();
  uncounted = uncounted.array().colwise() / uncounted.rowwise().sum().array();
  CHECK(distance(uncounted * means, want) > 1e-3);
}

TEST_CASE("quantising moves a log weight by at most twice the largest error of a logit", "[methods]") {
  const TestHead problem = gaussian();
  const Matrix<double> exact = matrix_of(*drawn("softmax", problem), problem);
  for (const std::string codes : {"2", "8", "32"}) {
    const auto method = drawn("vq:codes=" + codes, problem);
    const Matrix<double> A = matrix_of(*method, problem), codebook = method->state().at("codebook");
    Context context;
    const auto nearest = nearest_codes<double>(context, problem.head.K, codebook);
    Matrix<double> error = problem.head.K;
    for (Index j = 0; j < error.rows(); ++j) error.row(j) -= codebook.row(nearest[static_cast<size_t>(j)]);
    const Matrix<double> of_logits = (problem.head.Q * error.transpose()).cwiseAbs();
    double tightest = 0;
    for (Index i = 0; i < A.rows(); ++i) {
      const double bound = 2 * of_logits.row(i).maxCoeff();
      const double moved = (A.row(i).array() / exact.row(i).array()).log().abs().maxCoeff();
      const double divergence = (A.row(i).array() * (A.row(i).array() / exact.row(i).array()).log()).sum();
      CHECK(moved <= bound + tolerance);
      CHECK(divergence <= bound + tolerance);
      CHECK(divergence >= -tolerance);
      CHECK(of_logits.row(i).maxCoeff() <=
            problem.head.Q.row(i).norm() * error.rowwise().norm().maxCoeff() + tolerance);
      tightest = std::max(tightest, moved / bound);
    }
    CHECK(tightest > 0.4);  // the bound says something
  }
}

TEST_CASE("the rank of vq is at most the number of codes that keys use", "[methods]") {
  TestHead problem = gaussian();
  problem.head.K = problem.head.K.topRows(5).replicate(18, 1).eval();
  const auto method = drawn("vq:codes=16", problem);
  Context context;
  const auto codes = nearest_codes<double>(context, problem.head.K, method->state().at("codebook"));
  const std::set<Index> used(codes.begin(), codes.end());
  REQUIRE(used.size() <= 5);
  const auto sigma = singular_values(matrix_of(*method, problem));
  CHECK(sigma[used.size()] < 1e-13 * sigma[0]);
}

TEST_CASE("the width of the mixture cancels on a fine lattice", "[methods]") {
  // The integral of exp(q w) N(w; k, sigma^2) is exp(q k + sigma^2 q^2 / 2): a factor of the query (methods.md D4).
  const TestHead problem = gaussian_problem({.nq = 40, .nk = 50, .d = 1, .dv = 3}, 0.8);
  Matrix<double> lattice(241, 1);
  for (Index y = 0; y < 241; ++y) lattice(y, 0) = 0.2 * static_cast<double>(y - 120);
  const Tensors state{{"codebook", lattice}};
  for (const std::string sigma : {"0.5", "1", "1.5"}) {
    INFO(sigma);
    CHECK(distance(out_of("soft-vq:sigma=" + sigma, problem, &state), out_of("softmax", problem)) < tolerance);
  }
}

TEST_CASE("codes with the weights of a Gaussian turn soft-vq into softmax at half the logits", "[methods]") {
  // The limit of performer-vq's softmax over codes, without drawing: p(w|k) = N(w; k/2, 1/2) exactly (methods.md D6).
  const TestHead problem = gaussian_problem({.nq = 40, .nk = 50, .d = 1, .dv = 3}, 0.8);
  Matrix<double> lattice(161, 1), density(161, 1);
  for (Index y = 0; y < 161; ++y) {
    lattice(y, 0) = 0.2 * static_cast<double>(y - 80);
    density(y, 0) = std::exp(-lattice(y, 0) * lattice(y, 0) / 2);
  }
  const Tensors state{{"codebook", lattice}, {"counts", density}};
  CHECK(distance(out_of("soft-vq", problem, &state), softmax_with(problem, 0.5, 0)) < tolerance);
  CHECK(distance(out_of("soft-vq", problem, &state), out_of("softmax", problem)) > 1e-2);
}

TEST_CASE("performer-vq with equal norms is performer with positive features, for the same omegas", "[methods]") {
  const TestHead problem = gaussian();
  // Seeds and state alike.
  CHECK(distance(out_of("performer-vq:m=24", problem),
                 out_of("performer:m=24,projection=orthogonal-fixed-norm", problem)) < tolerance);
  Matrix<double> W = gaussian_rows(24, 4, "omegas");
  const Tensors unequal{{"projection", W}};
  for (Index y = 0; y < 24; ++y) W.row(y) *= 1.7 / W.row(y).norm();  // any norm, so it be one
  const Tensors equal{{"projection", W}};
  const std::string given = "m=24,projection=iid";
  CHECK(distance(out_of("performer-vq:" + given, problem, &equal), out_of("performer:" + given, problem, &equal)) <
        tolerance);
  CHECK(distance(out_of("performer-vq:" + given, problem, &unequal), out_of("performer:" + given, problem, &unequal)) >
        1e-2);
  // The last step of source 001, to a softmax over codes, is no identity even with equal norms.
  CHECK(distance(out_of("performer-vq:form=softmax-over-codes," + given, problem, &equal),
                 out_of("performer:" + given, problem, &equal)) > 1e-2);
  // It is soft-vq with the omegas for codes.
  const Tensors codes{{"codebook", W}};
  CHECK(distance(out_of("performer-vq:form=softmax-over-codes," + given, problem, &equal),
                 out_of("soft-vq:codes=24", problem, &codes)) < tolerance);
}

// Means over draws of the normalised output, whose bias is O(1/m): with 16 draws of m = 32768 it is below a tenth of
// the standard error, which is about 1e-3. Family-wise error rate 1e-3.
TEST_CASE("performer-vq with Gaussian omegas tends to softmax at half the logits, or with a term of the norms",
          "[statistics]") {
  const TestHead problem = gaussian_problem({.nq = 3, .nk = 12, .d = 4, .dv = 2}, 0.5);
  const auto scores_against = [&](const std::string& spec, const Matrix<double>& want) {
    constexpr Index draws = 16;
    std::vector<Matrix<double>> outs;
    Matrix<double> mean = Matrix<double>::Zero(3, 2), variance = mean;
    for (Index replicate = 0; replicate < draws; ++replicate) {
      outs.push_back(out_of(spec, problem, nullptr, replicate));
      mean += outs.back() / draws;
    }
    for (const auto& out : outs) variance += (out - mean).cwiseAbs2() / (draws - 1);
    Scores scores;
    // Student's t of 15 degrees of freedom is beyond 1.9 times the normal threshold less often than the normal beyond
    // it.
    for (Index i = 0; i < mean.size(); ++i)
      scores.push_back({spec, (mean.data()[i] - want.data()[i]) / std::sqrt(variance.data()[i] / draws) / 1.4});
    return scores;
  };
  const std::string iid = "m=32768,projection=iid";
  const std::string over_codes = "performer-vq:form=softmax-over-codes," + iid, densities = "performer-vq:" + iid;
  const Scores half = scores_against(over_codes, softmax_with(problem, 0.5, 0));
  check_family(half);
  check_family(scores_against(densities, softmax_with(problem, 0.5, -0.25)));
  check_found("softmax itself", scores_against(over_codes, out_of("softmax", problem)), threshold(half));
  check_found("softmax itself", scores_against(densities, out_of("softmax", problem)), threshold(half));
}

// |omega|^2 / 2 of Gaussian omegas is half a chi-squared variable: variance d / 2 and excess kurtosis 12 / d
// (methods.md D8). Two z-scores, family-wise error rate 1e-3.
TEST_CASE("norms of Gaussian omegas are not equal inside an exponential", "[statistics]") {
  constexpr Index m = 16384, d = 64;
  const TestHead problem = gaussian_problem({.nq = 2, .nk = 2, .d = d, .dv = 1}, 0.5);
  const auto scores_of = [&](const std::string& projection) {
    const Matrix<double> W = drawn("performer-vq:m=16384,projection=" + projection, problem)->state().at("projection");
    const Eigen::VectorXd half = W.rowwise().squaredNorm() / 2;
    const double variance = (half.array() - half.mean()).square().sum() / (m - 1);
    const double of_mean = std::sqrt(d / 2.0 / m), of_variance = d / 2.0 * std::sqrt((2 + 12.0 / d) / m);
    return Scores{{"mean", (half.mean() - d / 2.0) / of_mean}, {"variance", (variance - d / 2.0) / of_variance}};
  };
  check_family(scores_of("iid"));
  check_family(scores_of("orthogonal"));
  check_found("norms sqrt(d)", scores_of("orthogonal-fixed-norm"), threshold(scores_of("iid")));
}

}  // namespace attnbench::codebook_test
