// Chosen keys where the answer is known: bounds of pages, planted columns and diagonals, keys that few channels or
// components decide on, and the smallest set of a mass. Forgotten signs and hidden keys are planted. methods.md U.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "approximations/selection/chosen_keys.hpp"
#include "approximations/selection/page_bounds.hpp"
#include "harness/claims/structural.hpp"
#include "harness/core/shared_budget.hpp"
#include "tests/cases.hpp"
#include "tests/misuse.hpp"
#include "tests/oracle/oracle.hpp"

namespace attnbench::selection_test {

namespace {

constexpr double tolerance = 1e-12;
constexpr double seen = 1e-2;  // what a planted mistake moves outputs of size 1 by, at least

using Sets = std::vector<std::vector<Index>>;

TestHead gaussian(Index n, Index d = 8, double scale = 0.8) {
  return gaussian_problem({.nq = n, .nk = n, .d = d, .dv = 4}, scale);
}

Matrix<double> out_of(const std::string& spec, const TestHead& problem, Mask mask = {}) {
  return attend(*drawn(spec, problem, mask), problem.head, mask);
}

Sets keys_of(const std::string& spec, const TestHead& problem, Mask mask = {}) {
  const auto method = drawn(spec, problem, mask);
  REQUIRE(method->pattern());
  Sets keys(static_cast<size_t>(problem.shape.nq));
  Context context;
  method->pattern()->keys_of_rows(problem.head.view(), mask, 0, context, keys);
  return keys;
}

Matrix<double> rows_of(const std::string& spec, const TestHead& problem, Mask mask = {}) {
  const auto method = drawn(spec, problem, mask);
  REQUIRE(method->rows());
  Matrix<double> A(problem.shape.nq, problem.shape.nk);
  Context context;
  method->rows()->attention_rows(problem.head.view(), mask, 0, context, A);
  return A;
}

double distance(const Matrix<double>& a, const Matrix<double>& b) { return (a - b).cwiseAbs().maxCoeff(); }

std::vector<Index> range(Index begin, Index end) {
  std::vector<Index> indices(static_cast<size_t>(end - begin));
  std::iota(indices.begin(), indices.end(), begin);
  return indices;
}

Matrix<double> bounds_of(const Matrix<double>& Q, const Matrix<double>& K, Index size) {
  const Matrix<double> extremes = page_extremes<double>(K, size);
  Matrix<double> bounds(Q.rows(), extremes.rows());
  Context context;
  page_bounds<double>(context, Q, extremes, bounds);
  return bounds;
}

// The largest logit of each page.
Matrix<double> largest_logits(const Matrix<double>& Q, const Matrix<double>& K, Index size) {
  const Matrix<double> S = Q * K.transpose();
  Matrix<double> largest(Q.rows(), (K.rows() + size - 1) / size);
  for (Index page = 0; page < largest.cols(); ++page)
    largest.col(page) = S.middleCols(page * size, std::min(size, K.rows() - page * size)).rowwise().maxCoeff();
  return largest;
}

// The mass that softmax gives each row's keys.
std::vector<double> masses(const TestHead& problem, const Sets& keys, Mask mask = {}) {
  const Matrix<double> A = rows_of("softmax", problem, mask);
  std::vector<double> sums;
  for (Index i = 0; i < A.rows(); ++i) {
    double sum = 0;
    for (const Index j : keys[static_cast<size_t>(i)]) sum += A(i, j);
    sums.push_back(sum);
  }
  return sums;
}

// Query i has the logit size^2 cos(2 pi (i - j - apart) / n) with key j: largest on the diagonal i - j = apart.
TestHead diagonal_head(Index n, Index apart, double size) {
  TestHead problem = gaussian(n, 2);
  for (Index i = 0; i < n; ++i) {
    const double of_query = 2 * M_PI * static_cast<double>(i) / static_cast<double>(n);
    const double of_key = 2 * M_PI * static_cast<double>(i + apart) / static_cast<double>(n);
    problem.head.Q.row(i) << size * std::cos(of_query), size * std::sin(of_query);
    problem.head.K.row(i) << size * std::cos(of_key), size * std::sin(of_key);
  }
  return problem;
}

}  // namespace

// ---- Pages

TEST_CASE("the bound of a page is above every logit in it, and is the largest one where it must be", "[methods]") {
  for (const Index size : {1, 4, 16, 100}) {
    const auto& [Q, K, V, extra] = gaussian(70).head;
    const Matrix<double> bounds = bounds_of(Q, K, size), largest = largest_logits(Q, K, size);
    CHECK((bounds - largest).minCoeff() > -tolerance);
    if (size == 1) CHECK(distance(bounds, largest) < tolerance);
    if (size > 1) CHECK((bounds - largest).maxCoeff() > seen);
    // Planted: the greatest entry of each channel, also where the query is negative, bounds nothing.
    const Matrix<double> extremes = page_extremes<double>(K, size);
    const Matrix<double> unsigned_bounds = Q * extremes.leftCols(Q.cols()).transpose();
    if (size > 1) CHECK((unsigned_bounds - largest).minCoeff() < -seen);
    const TestHead line = gaussian(70, 1);
    CHECK(distance(bounds_of(line.head.Q, line.head.K, size), largest_logits(line.head.Q, line.head.K, size)) <
          tolerance);
  }
}

TEST_CASE("Quest keeps the row's own page and those with the largest bounds", "[methods]") {
  // Page 5 has the key that row 0 looks for; page 9 is the last one, of 4 keys.
  TestHead problem = gaussian(76, 4, 0.1);
  problem.head.Q.row(0) << 3, -3, 0, 0;
  problem.head.K.row(43) << 2, -2, 0, 0;
  const auto keys = keys_of("quest:page=8,keep=2", problem);
  std::vector<Index> want = range(0, 8);
  for (const Index j : range(40, 48)) want.push_back(j);
  CHECK(keys[0] == want);
  for (Index i = 0; i < 76; ++i) {
    const auto& of_row = keys[static_cast<size_t>(i)];
    CHECK(std::binary_search(of_row.begin(), of_row.end(), i));
    CHECK(std::ssize(of_row) == (of_row.back() == 75 ? 12 : 16));
  }
  CHECK(keys_of("quest:page=8,keep=1", problem)[75] == range(72, 76));
  // Under a causal mask the own page ends at the row.
  CHECK(keys_of("quest:page=8,keep=1", problem, {.causal = true})[45] == range(40, 46));
  CHECK(keys_of("quest:page=8,keep=2", problem, {.causal = true})[12] == range(0, 13));
  // Rows before the first key and rows after the last have no page of their own.
  CHECK(keys_of("quest:page=8,keep=1", problem, {.causal = true, .offset = -3})[2].empty());
  CHECK(keys_of("quest:page=8,keep=1", problem, {.offset = 1000})[0] == range(40, 48));
}

TEST_CASE("a key that the mean of its block hides is found by Quest and not by MoBA", "[methods]") {
  // Block 3 has one large key among keys that point away from it; block 6 has many middling ones.
  TestHead problem = gaussian(80, 4, 0.01);
  problem.head.Q.row(79) << 2, 0, 0, 0;
  for (Index j = 24; j < 32; ++j) problem.head.K.row(j) << (j == 29 ? 4.0 : -1.0), 0, 0, 0;
  for (Index j = 48; j < 56; ++j) problem.head.K.row(j) << 0.5, 0, 0, 0;
  const auto quest = keys_of("quest:page=8,keep=2", problem)[79], moba = keys_of("moba:block=8,keep=2", problem)[79];
  CHECK(std::binary_search(quest.begin(), quest.end(), 29));
  CHECK_FALSE(std::binary_search(moba.begin(), moba.end(), 29));
  CHECK(std::binary_search(moba.begin(), moba.end(), 48));
  // Blocks of one key have that key as their mean: both are top-k with the row's own key.
  const TestHead plain = gaussian(60);
  CHECK(keys_of("quest:page=1,keep=7", plain) == keys_of("moba:block=1,keep=7", plain));
}

TEST_CASE("where no unread bound exceeds a logit that was read, the row has its largest weight", "[methods]") {
  const TestHead problem = gaussian(96, 4);
  const auto keys = keys_of("quest:page=4,keep=12", problem);
  const Matrix<double> bounds = bounds_of(problem.head.Q, problem.head.K, 4);
  const Matrix<double> S = problem.head.Q * problem.head.K.transpose();
  Index certified = 0, missed = 0;
  for (Index i = 0; i < 96; ++i) {
    const auto& of_row = keys[static_cast<size_t>(i)];
    double read = -INFINITY, unread = -INFINITY;
    for (const Index j : of_row) read = std::max(read, S(i, j));
    for (Index page = 0; page < 24; ++page)
      if (!std::binary_search(of_row.begin(), of_row.end(), 4 * page)) unread = std::max(unread, bounds(i, page));
    Index best = 0;
    S.row(i).maxCoeff(&best);
    const bool found = std::binary_search(of_row.begin(), of_row.end(), best);
    if (unread <= read) {
      ++certified;
      CHECK(found);
    }
    missed += !found;
  }
  CHECK(certified > 30);
  CHECK(missed <= 96 - certified);
}

// ---- Lines

TEST_CASE("vertical-slash finds the column and the diagonal that the last queries look at", "[methods]") {
  const std::string none = ",first=1,last=1,rows=16";
  const Mask causal{.causal = true};
  const TestHead along = diagonal_head(120, 23, 4);
  for (const auto& [spec, want] : {std::pair("vertical-slash:vertical=0,slash=1" + none, 23),
                                   std::pair("vertical-slash:vertical=0,slash=2" + none, 22)}) {
    const auto keys = keys_of(spec, along, causal);
    const auto& row = keys[70];
    CHECK(std::binary_search(row.begin(), row.end(), 70 - 23));
    CHECK(std::ssize(row) == 2 + 24 - want);
  }
  TestHead column = gaussian(120, 4, 0.05);
  column.head.Q.rightCols(1).setConstant(3);
  column.head.K.row(37) << 0, 0, 0, 3;
  const auto keys = keys_of("vertical-slash:vertical=1,slash=0" + none, column, causal);
  CHECK(keys[100] == std::vector<Index>{0, 37, 100});
  CHECK(keys[36] == std::vector<Index>{0, 36});
  // Queries before the last ones do not count.
  column.head.Q.bottomRightCorner(16, 1).setConstant(-3);
  CHECK(keys_of("vertical-slash:vertical=1,slash=0" + none, column, causal)[100] != keys[100]);
}

TEST_CASE("the A shape is sinks and a window, and the tri shape also has full rows", "[methods]") {
  const TestHead problem = gaussian(90);
  for (const Mask& mask : {Mask{.causal = true}, {.causal = true, .offset = -5}, {.causal = true, .keys = 60}}) {
    const Matrix<double> a = out_of("vertical-slash:shape=a,first=3,last=7,rows=11", problem, mask);
    CHECK(distance(a, out_of("sink-window:sinks=3,window=6", problem, mask)) < tolerance);
    const Matrix<double> tri = out_of("vertical-slash:shape=tri,first=3,last=7,rows=11", problem, mask);
    CHECK(distance(tri.topRows(79), a.topRows(79)) < tolerance);
    CHECK(distance(tri.bottomRows(11), out_of("softmax", problem, mask).bottomRows(11)) < tolerance);
  }
}

TEST_CASE("the unscaled estimate of vertical-slash chooses other lines", "[methods]") {
  const TestHead problem = gaussian(90, 16);
  const std::string spec = "vertical-slash:first=1,last=1,vertical=4,slash=4";
  CHECK(keys_of(spec, problem, {.causal = true}) != keys_of(spec + ",scaled=false", problem, {.causal = true}));
}

// ---- Few channels

TEST_CASE("SparQ with all channels is top-k, and its mean value takes the mass that is left", "[methods]") {
  const TestHead problem = gaussian(70);
  for (const Mask& mask : {Mask{}, {.causal = true}, {.causal = true, .keys = 50}}) {
    const Matrix<double> top = out_of("top-k:k=9", problem, mask);
    CHECK(distance(out_of("sparq:r=8,k=9,local=0,mean=false", problem, mask), top) < tolerance);
    const auto mass = masses(problem, keys_of("top-k:k=9", problem, mask), mask);
    Matrix<double> want = top;
    for (Index i = 0; i < 70; ++i) {
      const Index visible = mask.visible(i, 70);
      const Eigen::RowVectorXd mean = problem.head.V.topRows(visible).colwise().mean();
      const double p = mass[static_cast<size_t>(i)];
      want.row(i) = p * top.row(i) + (1 - p) * mean;
    }
    CHECK(distance(out_of("sparq:r=8,k=9,local=0", problem, mask), want) < tolerance);
    CHECK(distance(top, want) > seen);
  }
}

TEST_CASE("SparQ chooses by the largest channels of the query at its temperature", "[methods]") {
  // Channels 0 and 2 decide. Key 40 is best in them, key 60 in all.
  TestHead problem = gaussian(80, 4, 0.01);
  problem.head.Q.row(79) << 2, 0.5, -2, 0.5;
  problem.head.K.row(40) << 1, -3, -1, -3;
  problem.head.K.row(60) << 0.5, 5, -0.5, 5;
  const std::string spec = "sparq:r=2,k=1,local=0,mean=false";
  CHECK(keys_of(spec, problem)[79] == std::vector<Index>{40});
  CHECK(keys_of("sparq:r=4,k=1,local=0,mean=false", problem)[79] == std::vector<Index>{60});
  CHECK(keys_of("sparq:r=2,k=3,local=2,mean=false", problem)[79] == std::vector<Index>{40, 78, 79});
  // The estimates of its logits are q_R.k_R / sqrt(4 / 5), and alpha is their softmax.
  const Matrix<double> A = rows_of("sparq:r=2,k=1,local=0", problem);
  double all = 0;
  const auto e = [&](Index j) {
    return std::exp((2 * problem.head.K(j, 0) - 2 * problem.head.K(j, 2)) / std::sqrt(0.8));
  };
  for (Index j = 0; j < 80; ++j) all += e(j);
  const double alpha = e(40) / all;
  CHECK(std::abs(A(79, 40) - (alpha + (1 - alpha) / 80)) < tolerance);
  CHECK(std::abs(A(79, 60) - (1 - alpha) / 80) < tolerance);
}

TEST_CASE("of equal scores the first keys are among the largest, however the scores come in", "[unit]") {
  const double least = -std::numeric_limits<double>::infinity();
  const auto largest = [](Index count, const std::vector<double>& scores, size_t together) {
    LargestScores<double> best(count);
    best.add(0, {});
    best.clear();
    for (size_t begin = 0; begin < scores.size(); begin += together)
      best.add(10 + static_cast<Index>(begin),
               std::span(scores).subspan(begin, std::min(together, scores.size() - begin)));
    std::vector<Index> keys;
    for (const auto& [score, key] : best.found()) {
      CHECK(score == scores[static_cast<size_t>(key - 10)]);
      keys.push_back(key);
    }
    std::sort(keys.begin(), keys.end());
    return keys;
  };
  const std::vector<double> few{2, 5, 2, 7, 2, least};
  for (const size_t together : {1u, 4u, 6u}) {
    CHECK(largest(0, few, together).empty());
    CHECK(largest(2, few, together) == std::vector<Index>{11, 13});
    CHECK(largest(4, few, together) == std::vector<Index>{10, 11, 12, 13});
    CHECK(largest(5, few, together) == std::vector<Index>{10, 11, 12, 13, 14});
    CHECK(largest(9, few, together) == std::vector<Index>{10, 11, 12, 13, 14, 15});
  }
  // Long enough for candidates to be cut several times, with many equal scores: 7 comes at 3, 104, 205, ...
  std::vector<double> many(2000);
  for (size_t j = 0; j < many.size(); ++j) many[j] = static_cast<double>((j + 7) % 101 == 10 ? 7 : j % 5);
  for (const size_t together : {1u, 100u, 2000u}) {
    CHECK(largest(3, many, together) == std::vector<Index>{13, 114, 215});
    // 20 sevens, and of the fours the first 30.
    std::vector<Index> expected, fours;
    for (Index j = 0; j < 2000; ++j)
      if (many[static_cast<size_t>(j)] == 7)
        expected.push_back(10 + j);
      else if (many[static_cast<size_t>(j)] == 4)
        fours.push_back(10 + j);
    const Index sevens = std::ssize(expected);
    expected.insert(expected.end(), fours.begin(), fours.begin() + 30);
    std::sort(expected.begin(), expected.end());
    CHECK(largest(sevens + 30, many, together) == expected);
  }
  // Scores of all sizes, some of them infinite, beside a sort; many wanted of them and few.
  Generator generator(7);
  const Matrix<double> normal = standard_normal(generator, 1, 3000);
  for (const bool infinite : {false, true}) {
    std::vector<double> scores(normal.data(), normal.data() + normal.size());
    for (size_t j = 0; j < scores.size(); ++j) scores[j] = infinite && j % 9 == 4 ? least : std::exp(3 * scores[j]);
    std::vector<Index> order(scores.size());
    std::iota(order.begin(), order.end(), Index(0));
    std::sort(order.begin(), order.end(),
              [&](Index a, Index b) { return scores[static_cast<size_t>(a)] > scores[static_cast<size_t>(b)]; });
    for (const Index count : {1, 40, 300, 1400, 2600})
      for (const size_t together : {500u, 3000u}) {
        std::vector<Index> expected;
        for (Index place = 0; place < count; ++place) expected.push_back(10 + order[static_cast<size_t>(place)]);
        std::sort(expected.begin(), expected.end());
        CHECK(largest(count, scores, together) == expected);
      }
  }
}

TEST_CASE("SparQ of a query 0 gives every key the same weight", "[methods]") {
  TestHead problem = gaussian(30);
  problem.head.Q.setZero();
  CHECK(distance(out_of("sparq:r=2,k=5,local=0", problem), out_of("uniform", problem)) > seen);  // its 5 keys twice
  const Matrix<double> A = rows_of("sparq:r=2,k=5,local=0", problem);
  CHECK(std::abs(A(3, 0) - (5.0 / 30 / 5 + 25.0 / 30 / 30)) < tolerance);
  CHECK(std::abs(A(3, 29) - 25.0 / 30 / 30) < tolerance);
}

TEST_CASE("Loki's basis is that of the principal components of the calibration keys", "[methods]") {
  const TestHead problem = gaussian(90, 6);
  const Matrix<double> B = drawn("loki:r=6", problem)->state().at("basis");
  const Matrix<double>& K = problem.calibration.K;
  const Matrix<double> centred = K.rowwise() - K.colwise().mean();
  const Matrix<double> covariance = B * centred.transpose() * centred * B.transpose();
  CHECK(distance(B * B.transpose(), Matrix<double>::Identity(6, 6)) < tolerance);
  CHECK((covariance - Matrix<double>(covariance.diagonal().asDiagonal())).cwiseAbs().maxCoeff() < 1e-10);
  for (Index a = 1; a < 6; ++a) CHECK(covariance(a, a) < covariance(a - 1, a - 1));
  // Planted: moments without the mean have other components where keys have one.
  TestHead moved = problem;
  moved.calibration.K.rowwise() += Eigen::RowVectorXd::LinSpaced(6, 1, 5);
  CHECK(distance(drawn("loki:r=6", moved)->state().at("basis").cwiseAbs(), B.cwiseAbs()) < 1e-9);
}

TEST_CASE("Loki is top-k with all components, and with as many as keys vary in", "[methods]") {
  TestHead problem = gaussian(70);
  for (const Mask& mask : {Mask{}, {.causal = true}})
    CHECK(distance(out_of("loki:r=8,k=9", problem, mask), out_of("top-k:k=9", problem, mask)) < tolerance);
  CHECK(keys_of("loki:r=2,k=9", problem) != keys_of("top-k:k=9", problem));
  Matrix<double> plane = gaussian(8, 8).head.Q.leftCols(2);
  for (HeadData<double>* head : {&problem.head, &problem.calibration})
    head->K = (head->K.leftCols(2) * plane.transpose()).eval();
  CHECK(keys_of("loki:r=2,k=9", problem) == keys_of("top-k:k=9", problem));
}

// ---- A share of the weight

TEST_CASE("top-p keeps the fewest keys with its share of the weight", "[methods]") {
  const TestHead problem = gaussian(90);
  for (const Mask& mask : {Mask{}, {.causal = true}}) {
    const auto keys = keys_of("top-p:p=0.8", problem, mask);
    const auto mass = masses(problem, keys, mask);
    const Matrix<double> A = rows_of("softmax", problem, mask);
    for (Index i = 0; i < 90; ++i) {
      const auto& of_row = keys[static_cast<size_t>(i)];
      double least = 1;
      for (const Index j : of_row) least = std::min(least, A(i, j));
      CHECK(mass[static_cast<size_t>(i)] >= 0.8);
      CHECK(mass[static_cast<size_t>(i)] - least < 0.8);  // one key fewer is not enough
      for (Index j = 0; j < mask.visible(i, 90); ++j)
        if (!std::binary_search(of_row.begin(), of_row.end(), j)) CHECK(A(i, j) <= least);
    }
    CHECK(distance(out_of("top-p:p=1", problem, mask), out_of("softmax", problem, mask)) < tolerance);
  }
  // Equal weights: the first ceil(0.8 n) keys.
  TestHead flat = problem;
  flat.head.Q.setZero();
  CHECK(keys_of("top-p:p=0.795", flat)[5] == range(0, 72));
}

TEST_CASE("the share of keys that top-p takes of normal logits is its closed form", "[methods]") {
  // 40 rows of 4000 keys with logits of variance 1: a share of standard error below 0.006, all rows 0.001; 6 of them.
  TestHead problem = gaussian_problem({.nq = 40, .nk = 4000, .d = 16, .dv = 1}, 1);
  for (Index i = 0; i < 40; ++i) problem.head.Q.row(i) /= problem.head.Q.row(i).norm();
  double share = 0;
  for (const auto& row : keys_of("top-p:p=0.9", problem)) share += static_cast<double>(row.size()) / 4000 / 40;
  CHECK(std::abs(share - std::erfc((1 - 1.2815515655) / std::sqrt(2.0)) / 2) < 0.006);
}

// ---- Pairs of blocks

TEST_CASE("SpargeAttn keeps predicted blocks and those that are not alike", "[methods]") {
  // Blocks of 8 keys that are alike, but for block 4. Rows look along channel 0; block 2 has most of it.
  TestHead problem = gaussian(64, 4, 0.01);
  problem.head.Q.col(0).array() += 2;
  problem.head.K.col(1).array() += 1;
  problem.head.K.block(16, 0, 8, 1).setConstant(3);
  for (Index j = 32; j < 40; ++j) problem.head.K.row(j) *= j % 2 == 0 ? 1 : -1;
  const std::string pooled = "sparge:rows=16,block=8,mass=0.5,sink=false", spec = pooled + ",similar=0.5";
  std::vector<Index> want = range(16, 24);
  for (const Index j : range(32, 40)) want.push_back(j);
  for (const auto& row : keys_of(spec, problem)) CHECK(row == want);
  CHECK(keys_of(pooled + ",similar=-1", problem)[0] == range(16, 24));
  // Rows of a block that are not alike keep everything.
  for (Index i = 16; i < 32; ++i) problem.head.Q.row(i) *= i % 2 == 0 ? 1 : -1;
  const auto keys = keys_of(spec, problem);
  CHECK(keys[16] == range(0, 64));
  CHECK(keys[15] == want);
}

TEST_CASE("SpargeAttn without the first block leaves rows empty under a causal mask", "[methods]") {
  TestHead problem = gaussian(64, 4, 0.01);
  problem.head.Q.col(0).array() += 3;
  for (Index j = 0; j < 64; ++j) problem.head.K(j, 0) += static_cast<double>(j / 8);
  const std::string spec = "sparge:rows=32,block=8,mass=0.5,similar=-1";
  const auto published = keys_of(spec + ",sink=false", problem, {.causal = true});
  CHECK(published[0].empty());
  CHECK(published[31] == range(24, 32));
  CHECK(keys_of(spec, problem, {.causal = true})[0] == range(0, 1));
  CHECK(out_of(spec + ",sink=false", problem, {.causal = true}).row(0).isZero(0));
}

TEST_CASE("XAttention finds blocks whose antidiagonals cross a column or a diagonal", "[methods]") {
  const TestHead along = diagonal_head(128, 32, 5);
  for (const auto& row : {40, 70, 127}) {
    const auto keys =
        keys_of("xattention:block=16,stride=4,mass=0.3", along, {.causal = true})[static_cast<size_t>(row)];
    CHECK(std::binary_search(keys.begin(), keys.end(), row - 32));
    CHECK(std::binary_search(keys.begin(), keys.end(), 0));
    CHECK(std::binary_search(keys.begin(), keys.end(), row));
  }
  TestHead column = gaussian(128, 4, 0.05);
  column.head.Q.rightCols(1).setConstant(3);
  column.head.K.row(53) << 0, 0, 0, 12;
  const auto keys = keys_of("xattention:block=16,stride=8,mass=0.5", column, {.causal = true});
  CHECK(std::binary_search(keys[120].begin(), keys[120].end(), 53));
  CHECK(std::ssize(keys[120]) == 16 + 16 + 9);
  CHECK(contains(misuse_of([] { drawn("xattention:block=16,stride=5", gaussian(8)); }), "block=128,stride=8"));
}

// All entries are 1, so that sums are exact and all four blocks have the same score, a quarter of the whole.
TEST_CASE("of blocks with equal scores the first are kept", "[methods]") {
  TestHead equal = gaussian(16);
  equal.head.Q.setOnes();
  equal.head.K.setOnes();
  for (const std::string spec : {"sparge:rows=4,block=4,mass=0.5,sink=false", "xattention:block=4,stride=2,mass=0.5"}) {
    INFO(spec);
    CHECK(keys_of(spec, equal) == Sets(16, range(0, 8)));
  }
}

// ---- One set for all rows

TEST_CASE("eviction keeps the keys of largest score and each row's own", "[methods]") {
  TestHead problem = gaussian(40, 4, 0.3);
  problem.head.K.row(7).setZero();
  problem.head.K.row(21) *= 1e-3;
  const auto small = keys_of("evict:score=knorm,keep=2", problem);
  CHECK(small[30] == std::vector<Index>{7, 21, 30});
  CHECK(small[21] == std::vector<Index>{7, 21});
  CHECK(keys_of("evict:score=knorm,keep=2", problem, {.causal = true})[5] == std::vector<Index>{5});
  // All keys point one way, but for key 13.
  TestHead one_way = gaussian(40, 4, 0.01);
  one_way.head.K.col(2).array() += 1;
  one_way.head.K.row(13) << 1, 0, -1, 0;
  CHECK(keys_of("evict:score=keydiff,keep=1", one_way)[3] == std::vector<Index>{3, 13});
  CHECK(keys_of("evict:score=leverage,keep=1", one_way)[3] == std::vector<Index>{3, 13});
  CHECK(keys_of("evict:score=random,keep=5", problem)[0] != keys_of("evict:score=knorm,keep=5", problem)[0]);
}

TEST_CASE("a score of the mean query, its spread and values keeps the key that all three call for", "[methods]") {
  TestHead problem = gaussian(50, 3, 0.01);
  problem.head.Q.col(0).array() += 2;              // the mean query
  problem.head.Q.topRows(25).col(1).array() += 3;  // queries spread along the second channel
  problem.head.Q.bottomRows(25).col(1).array() -= 3;
  problem.head.V.setOnes();
  problem.head.K.row(11) << 2, 0, 0;  // 2 * 2 = 4
  problem.head.K.row(22) << 0, 1, 0;  // 9 / 2 = 4.5: with the mean alone it would not be seen
  problem.head.V.row(33) *= 200;      // log 200 = 5.3
  CHECK(keys_of("evict:score=expected,keep=1", problem)[0] == std::vector<Index>{0, 33});
  CHECK(keys_of("evict:score=expected,keep=2", problem)[0] == std::vector<Index>{0, 22, 33});
  CHECK(keys_of("evict:score=expected,keep=3", problem)[0] == std::vector<Index>{0, 11, 22, 33});
}

// Of heads of one layer, how many keys each keeps.
std::vector<Index> kept_by_heads(const std::vector<std::string>& specs, const std::vector<TestHead>& problems) {
  std::vector<std::unique_ptr<Approximation<double>>> instances;
  std::vector<HeadData<double>> heads;
  for (size_t h = 0; h < problems.size(); ++h) {
    instances.push_back(drawn(specs[h], problems[h]));
    heads.push_back(problems[h].head);
  }
  Context context;
  divide_budget<double>(instances, heads, {}, context);
  std::vector<Index> kept;
  for (size_t h = 0; h < heads.size(); ++h) {
    Sets keys(static_cast<size_t>(heads[h].Q.rows()));
    instances[h]->pattern()->keys_of_rows(heads[h].view(), {}, 0, context, keys);
    const auto shared = [&](Index j) {  // kept keys are those of every row
      return std::all_of(keys.begin(), keys.end(),
                         [&](const auto& of_row) { return std::binary_search(of_row.begin(), of_row.end(), j); });
    };
    Index count = 0;
    for (Index j = 0; j < heads[h].K.rows(); ++j) count += shared(j);
    kept.push_back(count);
  }
  return kept;
}

std::vector<Index> kept_by_heads(const std::string& spec, const std::vector<TestHead>& problems) {
  return kept_by_heads(std::vector<std::string>(problems.size(), spec), problems);
}

TEST_CASE("a budget that heads share goes to the largest scores of all, a fifth of it to each head", "[methods]") {
  // Scores -|k_j| of the heads: all of head 0 above those of head 1, but for keys 0 to 6 of head 1.
  TestHead small = gaussian(40, 4, 0.1), large = gaussian(40, 4, 0.3);
  for (Index j = 0; j < 40; ++j) {
    small.head.K.row(j) *= 0.1 / small.head.K.row(j).norm();
    large.head.K.row(j) *= 10 / large.head.K.row(j).norm();
  }
  CHECK(kept_by_heads("evict:score=knorm,keep=10,allocation=adaptive", {small, large}) == std::vector<Index>{18, 2});
  CHECK(kept_by_heads("evict:score=knorm,keep=10,allocation=adaptive", {large, small, large}) ==
        std::vector<Index>{2, 26, 2});
  for (Index j = 0; j < 7; ++j) large.head.K.row(j) *= 1e-3;
  CHECK(kept_by_heads("evict:score=knorm,keep=10,allocation=adaptive", {large, small}) == std::vector<Index>{7, 13});
  // More than a head has keys: the rest goes to the others.
  CHECK(kept_by_heads("evict:score=knorm,keep=30,allocation=adaptive", {small, large}) == std::vector<Index>{40, 20});
  CHECK(kept_by_heads("evict:score=knorm,keep=40,allocation=adaptive", {small, large}) == std::vector<Index>{40, 40});
  CHECK(kept_by_heads("evict:score=knorm,keep=3,allocation=adaptive", {small, large}) == std::vector<Index>{1, 5});
  // Keys of the last queries come before others of any head, and so do protected ones.
  CHECK(kept_by_heads("evict:rows=5,keep=6,allocation=adaptive", {small, large}) != std::vector<Index>{11, 1});
  CHECK(kept_by_heads("evict:score=knorm,keep=10,protect=9,allocation=adaptive", {small, large}) ==
        std::vector<Index>{11, 9});
  // Heads of two specs keep their own.
  const std::vector<std::string> two{"evict:score=knorm,keep=4,allocation=adaptive",
                                     "evict:score=knorm,keep=16,allocation=adaptive"};
  CHECK(kept_by_heads(two, {small, large}) == std::vector<Index>{4, 16});
  for (const char* allocation : {"uniform", "pyramid"})
    CHECK(kept_by_heads(std::string("evict:score=knorm,keep=10,allocation=") + allocation, {small, large}) ==
          std::vector<Index>{10, 10});
  CHECK(keys_of("evict:score=knorm,keep=10,allocation=adaptive", small)[0] ==
        keys_of("evict:score=knorm,keep=10", small)[0]);
}

TEST_CASE("a pyramid of budgets falls linearly over the layers and has the mean that was asked for", "[methods]") {
  const TestHead problem = gaussian(200, 4, 0.3);
  const Params params("methods", "evict:score=knorm,keep=40,allocation=pyramid");
  const auto kept = [&](Index layer, Index layers) {
    const auto method = make_approximation<double>(
        {.shape = problem.shape, .params = params, .streams = Streams(1), .layer = layer, .layers = layers});
    Sets keys(200);
    Context context;
    method->pattern()->keys_of_rows(problem.head.view(), {.causal = true}, 0, context, keys);
    return std::ssize(keys[199]) - (std::binary_search(keys[198].begin(), keys[198].end(), 199) ? 1 : 0);
  };
  std::vector<Index> of_layers;
  for (Index layer = 0; layer < 4; ++layer) of_layers.push_back(kept(layer, 4));
  // 78, 52.67, 27.33 and 2, and the row's own key.
  for (Index layer = 0; layer < 4; ++layer) {
    const Index wanted = std::vector<Index>{78, 53, 27, 2}[static_cast<size_t>(layer)];
    CHECK((of_layers[static_cast<size_t>(layer)] == wanted || of_layers[static_cast<size_t>(layer)] == wanted + 1));
  }
  CHECK((kept(0, 1) == 40 || kept(0, 1) == 41));
}

TEST_CASE("accumulated weights are those of all rows, and protected keys come first", "[methods]") {
  TestHead problem = gaussian(40, 3, 0.01);
  problem.head.K(5, 0) = 3;
  problem.head.K(30, 1) = 3;
  problem.head.Q.topRows(35).col(0).array() += 3;    // most rows look at key 5
  problem.head.Q.bottomRows(5).col(1).array() += 3;  // the last ones at key 30
  CHECK(keys_of("evict:score=accumulated,keep=1", problem)[39] == std::vector<Index>{5, 39});
  CHECK(keys_of("evict:score=tova,keep=2", problem)[38] == std::vector<Index>{30, 38, 39});
  CHECK(keys_of("evict:score=accumulated,keep=3,protect=2", problem)[39] == std::vector<Index>{0, 1, 5, 39});
  std::vector<Index> want = range(0, 9);
  want.push_back(39);
  CHECK(keys_of("evict:score=accumulated,keep=9,protect=9", problem)[39] == want);
}

TEST_CASE("SnapKV keeps what the last queries look at, with its neighbours, and their own keys", "[methods]") {
  TestHead problem = gaussian(60, 4, 0.02);
  problem.head.Q.bottomRows(6).col(0).array() += 4;
  problem.head.K(20, 0) += 4;
  const Mask causal{.causal = true};
  std::vector<Index> want = range(54, 60);
  CHECK(keys_of("evict:keep=6,rows=6,pool=1", problem, causal)[59] == want);
  want.insert(want.begin(), 20);
  CHECK(keys_of("evict:keep=7,rows=6,pool=1", problem, causal)[59] == want);
  want = range(54, 60);
  for (const Index j : {18, 19, 20, 21, 22}) want.push_back(j);
  std::sort(want.begin(), want.end());
  CHECK(keys_of("evict:keep=11,rows=6,pool=5", problem, causal)[59] == want);
  CHECK(keys_of("evict:keep=2,score=tova", problem, causal)[59] == std::vector<Index>{20, 59});
  CHECK(distance(out_of("evict:keep=9,score=tova", problem, causal),
                 out_of("evict:keep=9,rows=1,pool=1", problem, causal)) < tolerance);
  CHECK(contains(misuse_of([&] { drawn("evict:pool=4", problem); }), "evict:pool=5"));
}

TEST_CASE("rows of a prompt see all keys, later ones what is kept of it and all that follows", "[methods]") {
  const TestHead problem = gaussian(40, 4, 0.3);
  const Mask causal{.causal = true};
  const auto keys = keys_of("evict:score=knorm,keep=3,prompt=20", problem, causal);
  CHECK(keys[0] == range(0, 1));
  CHECK(keys[19] == range(0, 20));
  std::vector<Index> by_norm = range(0, 20);
  std::sort(by_norm.begin(), by_norm.end(),
            [&](Index a, Index b) { return problem.head.K.row(a).norm() < problem.head.K.row(b).norm(); });
  std::vector<Index> want(by_norm.begin(), by_norm.begin() + 3);
  std::sort(want.begin(), want.end());
  want.push_back(20);
  CHECK(keys[20] == want);
  for (Index j = 21; j < 40; ++j) want.push_back(j);
  CHECK(keys[39] == want);
  // Queries behind the prompt do not choose.
  TestHead other = problem;
  other.head.Q.bottomRows(20) *= -7;
  const std::string observed = "evict:keep=9,rows=5,pool=1";
  CHECK(keys_of(observed + ",prompt=20", other, causal)[39] == keys_of(observed + ",prompt=20", problem, causal)[39]);
  CHECK(keys_of(observed, other, causal)[39] != keys_of(observed, problem, causal)[39]);
}

TEST_CASE("dropped keys that equal a kept one are merged without an error", "[methods]") {
  TestHead problem = gaussian(40, 4, 0.8);
  const Mask causal{.causal = true};
  for (Index j = 3; j < 20; ++j) problem.head.K.row(j) = problem.head.K.row(j % 3);  // values differ
  const Matrix<double> exact = out_of("softmax", problem, causal);
  CHECK(distance(out_of("evict:score=knorm,keep=3,protect=3,prompt=20,merge=true", problem, causal), exact) <
        tolerance);
  CHECK(distance(out_of("evict:score=knorm,keep=3,protect=3,prompt=20", problem, causal), exact) > seen);
  CHECK(contains(misuse_of([&] { drawn("evict:merge=true", problem, causal); }), "evict:prompt=512,merge=true"));
}

TEST_CASE("a decoder of an evicted prompt holds what is kept of it and what follows", "[methods]") {
  const TestHead problem = gaussian(40, 4, 0.3);
  for (const std::string spec :
       {"evict:keep=5,prompt=20", "evict:score=tova,keep=5,prompt=20", "evict:score=expected,keep=5,prompt=20",
        "evict:score=random,keep=5,prompt=20", "evict:score=knorm,keep=5,prompt=20,merge=true"})
    for (const Index prefilled : {0, 7, 20, 33}) {
      const Mask causal{.causal = true};
      const auto method = drawn(spec, problem, causal);
      const Matrix<double> want = attend(*method, problem.head, causal);
      Shape shape{.nq = 40, .nk = 40, .d = 4, .dv = problem.head.V.cols()};
      const auto decoder = method->decoder(shape);
      Context context;
      const size_t token = static_cast<size_t>(4 + problem.head.V.cols()) * sizeof(double);
      decoder->prefill(HeadPart<double>::tokens(problem.head.view(), 0, prefilled).view(), context);
      Matrix<double> row(1, problem.head.V.cols());
      INFO(spec << " after " << prefilled);
      for (Index t = prefilled; t < 40; ++t) {
        decoder->step(HeadPart<double>::tokens(problem.head.view(), t, 1).view(), context, row);
        CHECK(distance(row, want.row(t)) < tolerance);
        const bool merged = t >= 20 && contains(spec, "merge");  // the logarithm of a number of members beside each key
        CHECK(decoder->bytes() ==
              (token + (merged ? sizeof(double) : 0)) * static_cast<size_t>(t < 20 ? t + 1 : 5 + t - 19));
      }
      const auto more = HeadPart<double>::tokens(problem.head.view(), 0, 1);
      CHECK(contains(misuse_of([&] { decoder->step(more.view(), context, row); }), "larger shape.nk"));
    }
  CHECK(drawn("evict:keep=5", problem, {.causal = true})->decoder({.nq = 40, .nk = 40, .d = 4, .dv = 4}) == nullptr);
}

// ---- All of them

TEST_CASE("chosen keys agree with their transcription where few channels and odd sizes decide", "[methods]") {
  // The last has fewer keys than some prompts below have tokens, and more queries.
  const std::vector<Shape> shapes{{.nq = 75, .nk = 75, .d = 9, .dv = 3},
                                  {.nq = 40, .nk = 130, .d = 5, .dv = 2},
                                  {.nq = 60, .nk = 33, .d = 4, .dv = 2}};
  for (const std::string spec : {"quest:page=7,keep=3",
                                 "moba:block=9,keep=2",
                                 "sparq:r=2,k=6,local=3",
                                 "sparq:r=3,k=4,local=0,mean=false",
                                 "loki:r=2,k=7",
                                 "top-p:p=0.6",
                                 "evict:keep=9,rows=7,pool=3",
                                 "evict:keep=9,score=tova",
                                 "evict:keep=9,score=knorm",
                                 "evict:keep=9,score=keydiff",
                                 "evict:keep=9,score=leverage",
                                 "evict:keep=9,score=random",
                                 "evict:keep=9,score=expected",
                                 "evict:keep=9,score=accumulated",
                                 "evict:keep=9,score=knorm,protect=4",
                                 "evict:keep=9,rows=7,protect=20",
                                 "evict:keep=9,rows=7,prompt=31",
                                 "evict:keep=9,score=tova,prompt=40",
                                 "evict:keep=9,score=random,prompt=74",
                                 "evict:keep=9,score=accumulated,prompt=20,protect=2",
                                 "evict:keep=9,score=keydiff,prompt=5",
                                 "evict:keep=9,prompt=1000",
                                 "evict:keep=9,rows=7,prompt=31,merge=true",
                                 "evict:keep=3,score=knorm,prompt=50,merge=true",
                                 "evict:keep=1,score=random,prompt=20,merge=true",
                                 "evict:keep=9,prompt=1000,merge=true",
                                 "sparge:rows=16,block=4,mass=0.6,similar=0.2,sink=false",
                                 "sparge:rows=5,block=7,mass=0.8,similar=-1",
                                 "xattention:block=12,stride=3,mass=0.6",
                                 "vertical-slash:vertical=4,slash=5,first=1,last=2,rows=9",
                                 "vertical-slash:vertical=4,slash=5,first=1,last=2,rows=9,scaled=false"})
    for (const Shape& shape : shapes)
      for (const Mask& mask : masks(shape)) {
        const Params params("methods", spec);
        Shape masked = shape;
        masked.mask = mask;
        if (!find<MethodEntry>(params.name()).claims(params, masked).no_form.empty()) continue;
        const TestHead problem = gaussian_problem(shape, 0.8);
        INFO(spec << ", nk = " << shape.nk << ", " << to_string(mask));
        const auto method = drawn(spec, problem, mask);
        const auto want = oracle::attention(params, method->state(), problem.head, mask);
        CHECK(distance(attend(*method, problem.head, mask), want.out) < tolerance);
        CHECK(distance(rows_of(spec, problem, mask), want.A) < tolerance);
      }
}

}  // namespace attnbench::selection_test
