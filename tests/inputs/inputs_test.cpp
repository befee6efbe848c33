// Inputs: what a request may ask for, what laws draw and what captured heads give.
//
// Every statistic is a z-score with a known or measured standard error and the limit 6: P(|z| > 6) = 2e-9 for normal
// scores, 1e-8 for the ones whose standard error comes from 200 replicates (Student), 3e-7 over the fewer than 30
// checks of this file. "... is told from ..." are the power tests: the same score on data with a planted error.
#include <fmt/format.h>

#include <Eigen/QR>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <set>

#include "harness/inputs/input.hpp"
#include "harness/inputs/tensor_file.hpp"
#include "harness/inputs/write_safetensors.hpp"
#include "tests/catch.hpp"
#include "tests/folder.hpp"
#include "tests/inputs/tensor_bytes.hpp"

namespace attnbench::inputs_test {

namespace {

constexpr double z_limit = 6;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

InputRequest sized(Index nq, Index nk, Index d, Index dv) {
  return {.nq = nq, .nk = nk, .d = d, .dv = dv, .streams = Streams(1)};
}

// Unscaled, as a law draws it.
HeadData<double> drawn(const std::string& spec, const InputRequest& request) {
  const Params params("inputs", spec);
  return find<InputEntry>(params.name()).draw(params, request);
}

HeadData<double> scaled(const std::string& spec, const InputRequest& request) {
  return draw_head(Params("inputs", spec), request);
}

// Of sum x^2 for independent x ~ N(0, variance): chi-squared with X.size() degrees of freedom.
double variance_score(const Matrix<double>& X, double variance) {
  const auto count = static_cast<double>(X.size());
  return (X.squaredNorm() / variance - count) / std::sqrt(2 * count);
}

// Of the mean of independent samples with this mean and variance.
double mean_score(const std::vector<double>& samples, double mean, double variance) {
  double sum = 0;
  for (const double x : samples) sum += x - mean;
  return sum / std::sqrt(variance * static_cast<double>(samples.size()));
}

// Likewise, the variance measured.
double mean_score(const std::vector<double>& samples, double mean) {
  const auto count = static_cast<double>(samples.size());
  double average = 0, variance = 0;
  for (const double x : samples) average += x / count;
  for (const double x : samples) variance += (x - average) * (x - average) / (count - 1);
  return mean_score(samples, mean, variance);
}

// Of the products of two independent standard normal matrices, entry by entry.
double correlation_score(const Matrix<double>& X, const Matrix<double>& Y) {
  return X.cwiseProduct(Y).sum() / std::sqrt(static_cast<double>(X.size()));
}

const char* const laws[] = {"gaussian", "sphere", "clustered", "ar1", "low-rank", "needle", "signs:positive=0.3"};

}  // namespace

TEST_CASE("sizes that no machine has memory for are refused with what they would take", "[unit]") {
  const auto message = misuse([] { refuse_absurd_sizes(1'000'000'000, 1'000'000'000, 64, 64); });
  CHECK(contains(message, "nq=1000000000"));
  CHECK(contains(message, "2.56 TB"));  // 8 bytes (4 n 64 + 64 n)
  CHECK(contains(message, "is available"));
  constexpr Index largest = std::numeric_limits<Index>::max();
  CHECK(contains(misuse([] { refuse_absurd_sizes(largest, largest, largest, largest); }), "is available"));
  CHECK(misuse([] { refuse_absurd_sizes(4096, 4096, 64, 64); }) == "");
  CHECK(contains(misuse([] { scaled("gaussian", sized(1'000'000'000, 1'000'000'000, 64, 64)); }), "is available"));
}

TEST_CASE("sizes below one are refused", "[unit]") {
  CHECK(contains(misuse([] { refuse_absurd_sizes(0, 1, 1, 1); }), "at least 1"));
  CHECK(contains(misuse([] { refuse_absurd_sizes(1, -3, 1, 1); }), "nk=-3"));
  CHECK(contains(misuse([] { refuse_absurd_sizes(1, 1, 0, 1); }), "at least 1"));
  CHECK(contains(misuse([] { refuse_absurd_sizes(1, 1, 1, -1); }), "at least 1"));
}

TEST_CASE("Q and K are scaled by sqrt(logit_scale) d^-1/4 and V is not", "[unit]") {
  const auto request = sized(5, 7, 16, 3);
  const auto raw = drawn("gaussian", request);
  const auto head = draw_head(Params("inputs", "gaussian"), request, 4);
  CHECK((head.Q - raw.Q).norm() < 1e-14 * raw.Q.norm());  // sqrt(4) 16^-1/4 = 1
  CHECK((head.K - raw.K).norm() < 1e-14 * raw.K.norm());
  CHECK(head.V == raw.V);
  for (const double bad : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()})
    CHECK(contains(misuse([&] { draw_head(Params("inputs", "gaussian"), request, bad); }), "logit_scale"));
}

TEST_CASE("parameters of laws outside their range are refused", "[unit]") {
  for (const auto* spec :
       {"gaussian:scale=-1", "clustered:clusters=0", "clustered:spread=2", "ar1:correlation=1.5", "low-rank:rank=0",
        "needle:strength=nan", "sphere:radius=-1", "file:head=-1", "model:layer=-1", "gaussian:width=2", "gausian"}) {
    INFO(spec);
    CHECK(misuse([&] { Params("inputs", std::string(spec)); }) != "");
  }
}

TEST_CASE("the rows of a smaller head are the first rows of a larger one, whatever the other sizes", "[unit]") {
  for (const auto* law : laws) {
    INFO(law);
    const auto small = drawn(law, sized(9, 17, 8, 4)), large = drawn(law, sized(13, 40, 8, 4));
    CHECK(large.Q.topRows(9) == small.Q);
    CHECK(large.K.topRows(17) == small.K);
    CHECK(large.V.topRows(17) == small.V);
    CHECK(drawn(law, sized(9, 17, 8, 2)).K == small.K);
  }
}

TEST_CASE("a law gives the same numbers every time, and others for another seed, head, replicate or purpose",
          "[unit]") {
  for (const auto* law : laws) {
    INFO(law);
    const auto request = sized(6, 6, 4, 4);
    const auto first = drawn(law, request), again = drawn(law, request);
    CHECK((first.Q == again.Q && first.K == again.K && first.V == again.V));
    auto seed = request, head = request, replicate = request, purpose = request;
    seed.streams = Streams(2);
    head.head = 1;
    replicate.replicate = 1;
    purpose.purpose = Purpose::calibration;
    for (const auto& other : {seed, head, replicate, purpose}) {
      const auto another = drawn(law, other);
      CHECK((another.Q != first.Q && another.K != first.K && another.V != first.V));
    }
  }
}

TEST_CASE("Q, K and V, heads, replicates, seeds and purposes are uncorrelated", "[unit]") {
  auto request = sized(1024, 1024, 16, 16);
  const auto first = drawn("gaussian", request);
  CHECK(std::abs(correlation_score(first.Q, first.K)) < z_limit);
  CHECK(std::abs(correlation_score(first.Q, first.V)) < z_limit);
  CHECK(std::abs(correlation_score(first.K, first.V)) < z_limit);
  auto seed = request, head = request, replicate = request, purpose = request;
  seed.streams = Streams(2);
  head.head = 1;
  replicate.replicate = 1;
  purpose.purpose = Purpose::calibration;
  for (const auto& other : {seed, head, replicate, purpose})
    CHECK(std::abs(correlation_score(first.Q, drawn("gaussian", other).Q)) < z_limit);
}

TEST_CASE("gaussian: entries are N(0, scale^2), values N(0, 1)", "[unit]") {
  const auto head = drawn("gaussian:scale=2", sized(512, 512, 64, 64));
  CHECK(std::abs(variance_score(head.Q, 4)) < z_limit);
  CHECK(std::abs(variance_score(head.K, 4)) < z_limit);
  CHECK(std::abs(variance_score(head.V, 1)) < z_limit);
  CHECK(std::abs(head.Q.sum() / (2 * std::sqrt(512.0 * 64))) < z_limit);
}

TEST_CASE("a scale of 2 is told from 2.1", "[unit]") {
  CHECK(std::abs(variance_score(drawn("gaussian:scale=2.1", sized(512, 1, 64, 1)).Q, 4)) > z_limit);
}

namespace {

// One row of a Gaussian head per replicate: support, participation and uniform-baseline error against their limits in
// the logit variance s^2 = (stretch scale^2 |g| d^-1/2)^2. At n = 4096 the bias, of order 1/n, is below 0.3 standard
// errors of 200 replicates.
std::vector<double> gaussian_scores(double stretch) {
  constexpr Index n = 4096, d = 32;
  std::vector<double> entropy, participation, baseline;
  for (Index replicate = 0; replicate < 200; ++replicate) {
    auto request = sized(1, n, d, 1);
    request.replicate = replicate;
    const auto head = scaled("gaussian:scale=0.9", request);
    const double s2 = stretch * stretch * 0.81 * head.Q.squaredNorm() / std::sqrt(static_cast<double>(d));
    const Eigen::ArrayXd logits = (head.K * head.Q.row(0).transpose()).array();
    const Eigen::ArrayXd p = logits.exp() / logits.exp().sum();
    const double squares = p.square().sum();
    entropy.push_back(-(p * p.log()).sum() - std::log(static_cast<double>(n)) + s2 / 2);
    participation.push_back(1 / (n * squares) - std::exp(-s2));
    baseline.push_back(std::sqrt((p - 1.0 / n).square().sum() / squares) - std::sqrt(1 - std::exp(-s2)));
  }
  return {mean_score(entropy, 0), mean_score(participation, 0), mean_score(baseline, 0)};
}

}  // namespace

TEST_CASE("gaussian: support, participation and baseline error have their known limits", "[unit]") {
  for (const double score : gaussian_scores(1)) CHECK(std::abs(score) < z_limit);
}

TEST_CASE("the known limits are told from those of logits a tenth larger", "[unit]") {
  for (const double score : gaussian_scores(1.1)) CHECK(std::abs(score) > z_limit);
}

TEST_CASE("sphere: norms are the radius, cosines have their moments", "[unit]") {
  constexpr Index n = 20'000, d = 5;
  const auto head = drawn("sphere", sized(n, n, d, 1));
  CHECK((head.Q.rowwise().norm().array() - std::sqrt(5.0)).abs().maxCoeff() < 1e-12);
  CHECK((drawn("sphere:radius=3", sized(9, 9, d, 1)).K.rowwise().norm().array() - 3).abs().maxCoeff() < 1e-12);

  // Independent pairs (q_i, k_i) once scaled: E exp(c u) = sum_j (c/2)^2j / (j! (d/2)_j) with c = |q| |k| = sqrt(d).
  const auto hypergeometric = [](double c) {
    double term = 1, sum = 1;
    for (int j = 0; j < 60; ++j) sum += term *= c * c / 4 / ((j + 1) * (d / 2.0 + j));
    return sum;
  };
  const auto pairs = scaled("sphere", sized(n, n, d, 1));
  std::vector<double> squares, exponentials;
  for (Index i = 0; i < n; ++i) {
    const double logit = pairs.Q.row(i).dot(pairs.K.row(i));
    squares.push_back(logit * logit);
    exponentials.push_back(std::exp(logit));
  }
  CHECK(std::abs(mean_score(squares, 1, 2.0 * (d - 1) / (d + 2))) < z_limit);
  const double c = std::sqrt(static_cast<double>(d)), mean = hypergeometric(c);
  CHECK(std::abs(mean_score(exponentials, mean, hypergeometric(2 * c) - mean * mean)) < z_limit);
  CHECK(std::abs(mean_score(exponentials, hypergeometric(1.2 * c), hypergeometric(2 * c) - mean * mean)) > z_limit);
}

// The number of entries above 0 is binomial; the magnitudes are those of a normal variate, for any signs.
TEST_CASE("signs: so many entries are above 0, and squares are those of the Gaussian", "[unit]") {
  constexpr Index n = 2000, d = 16;
  for (const double positive : {0.0, 0.25, 0.5, 1.0}) {
    const auto head = drawn(fmt::format("signs:positive={},scale=2", positive), sized(n, n, d, 1));
    for (const Matrix<double>& X : {head.Q, head.K}) {
      const double above = static_cast<double>((X.array() > 0).count()), count = static_cast<double>(X.size());
      CHECK(std::abs(above - positive * count) <= z_limit * std::sqrt(positive * (1 - positive) * count));
      CHECK(std::abs(variance_score(X, 4)) < z_limit);
      CHECK(std::abs(variance_score(X, 4.4)) > z_limit);
    }
  }
  const auto few = drawn("signs:positive=0.5", sized(n, n, d, 1));
  CHECK(std::abs(correlation_score(few.Q, few.K)) < z_limit);
}

TEST_CASE("clustered: without spread, queries and keys are the centres, and the calibration head has the same ones",
          "[unit]") {
  const auto points = [](const Matrix<double>& X) {
    std::set<std::vector<double>> rows;
    for (Index i = 0; i < X.rows(); ++i) rows.emplace(X.row(i).begin(), X.row(i).end());
    return rows;
  };
  auto request = sized(400, 400, 4, 1);
  const auto head = drawn("clustered:clusters=5,spread=0", request);
  CHECK(points(head.K).size() == 5);  // a centre missed among 400: 5 (4/5)^400 = 1e-38
  CHECK(points(head.Q) == points(head.K));
  request.purpose = Purpose::calibration;
  CHECK(points(drawn("clustered:clusters=5,spread=0", request).K) == points(head.K));
}

TEST_CASE("clustered: the variance within a cluster is (scale spread)^2, the whole scale^2", "[unit]") {
  constexpr Index n = 1000, d = 16;
  const auto head = drawn("clustered:clusters=1,spread=0.5,scale=3", sized(n, n, d, 1));
  const Matrix<double> residual = head.K.rowwise() - head.K.colwise().mean();
  const double freedom = (n - 1) * d;
  CHECK(std::abs(residual.squaredNorm() / 2.25 - freedom) / std::sqrt(2 * freedom) < z_limit);
  CHECK(std::abs(residual.squaredNorm() / 2.5 - freedom) / std::sqrt(2 * freedom) > z_limit);
  Matrix<double> singles(4000, 4);
  for (Index replicate = 0; replicate < singles.rows(); ++replicate) {
    auto request = sized(1, 1, 4, 1);
    request.replicate = replicate;
    singles.row(replicate) = drawn("clustered:spread=0.5", request).Q;
  }
  CHECK(std::abs(variance_score(singles, 1)) < z_limit);
}

TEST_CASE("ar1: innovations and margins are those of a stationary process", "[unit]") {
  constexpr Index n = 4000, d = 64;
  const auto innovations = [](double correlation) -> Matrix<double> {
    const auto head = drawn("ar1:correlation=0.9,scale=2", sized(n, 2, d, 1));
    return head.Q.bottomRows(n - 1) - correlation * head.Q.topRows(n - 1);
  };
  CHECK(std::abs(variance_score(innovations(0.9), 4 * 0.19)) < z_limit);
  CHECK(std::abs(variance_score(innovations(0.85), 4 * (1 - 0.85 * 0.85))) > z_limit);
  Matrix<double> last(2000, 8), last_values(2000, 8);
  for (Index replicate = 0; replicate < last.rows(); ++replicate) {
    auto request = sized(1, 12, 8, 8);
    request.replicate = replicate;
    const auto head = drawn("ar1:correlation=0.7", request);
    last.row(replicate) = head.K.row(11);
    last_values.row(replicate) = head.V.row(11);
  }
  CHECK(std::abs(variance_score(last, 1)) < z_limit);
  CHECK(std::abs(variance_score(last_values, 1)) < z_limit);
}

TEST_CASE("ar1: with correlation 1 all keys are equal, with correlation 0 the law is the Gaussian", "[unit]") {
  const auto equal = drawn("ar1:correlation=1", sized(5, 20, 4, 1));
  CHECK((equal.K.rowwise() - equal.K.row(0)).norm() == 0);
  const auto free = drawn("ar1:correlation=0", sized(1000, 2, 16, 1));
  CHECK(std::abs(correlation_score(free.Q.topRows(999), free.Q.bottomRows(999))) < z_limit);
  const auto bound = drawn("ar1:correlation=0.2", sized(1000, 2, 16, 1));
  CHECK(std::abs(correlation_score(bound.Q.topRows(999), bound.Q.bottomRows(999))) > z_limit);
}

TEST_CASE(
    "low-rank: logits have the rank and the variance that are stated, for the calibration head in the same subspace",
    "[unit]") {
  constexpr Index n = 4000, d = 24, r = 3;
  auto request = sized(n, n, d, 1);
  const auto head = scaled("low-rank:rank=3", request);
  const auto rank = [](const Matrix<double>& X) {
    Eigen::ColPivHouseholderQR<Eigen::MatrixXd> qr(X);
    qr.setThreshold(1e-10);
    return qr.rank();
  };
  request.purpose = Purpose::calibration;
  const auto calibration = scaled("low-rank:rank=3", request);
  Matrix<double> all(40, d);
  all << head.Q.topRows(10), head.K.topRows(10), calibration.Q.topRows(10), calibration.K.topRows(10);
  CHECK(rank(all) == r);
  CHECK(rank(scaled("low-rank:rank=3", sized(9, 9, 2, 1)).Q) == 2);

  std::vector<double> squares;
  for (Index i = 0; i < n; ++i) squares.push_back(std::pow(head.Q.row(i).dot(head.K.row(i)), 2));
  const double variance = d / 3.0, fourth = double{d} * d / (r * r * r * r) * (2.0 * r * r + 6 * r);
  CHECK(std::abs(mean_score(squares, variance, fourth)) < z_limit);
  CHECK(std::abs(mean_score(squares, 1, fourth)) > z_limit);
}

TEST_CASE("needle: one logit is the strength exactly, at a key that a causal mask shows", "[unit]") {
  const auto head = scaled("needle:strength=40", sized(50, 30, 64, 1));
  const Matrix<double> logits = head.Q * head.K.transpose();
  std::set<Index> needles;
  for (Index i = 0; i < 50; ++i) {
    Index needle = 0;
    CHECK(logits.row(i).maxCoeff(&needle) == Approx(40).epsilon(1e-12));
    CHECK(needle <= i);
    needles.insert(needle);
  }
  CHECK(needles.size() > 10);
}

TEST_CASE("needle: its weight has the stated mean odds", "[unit]") {
  constexpr Index n = 256;
  double sum = 0, variance = 0, planted = 0;
  for (Index replicate = 0; replicate < 400; ++replicate) {
    auto request = sized(1, n, 64, 1);  // row 0: the needle is key 0
    request.replicate = replicate;
    const auto head = scaled("needle:strength=8", request);
    const Eigen::ArrayXd logits = (head.K * head.Q.row(0).transpose()).array();
    const double s2 = 64 / drawn("needle:strength=8", request).K.row(0).squaredNorm();
    const double odds = (logits.exp().sum() - std::exp(logits(0))) / std::exp(8.0);
    sum += odds - (n - 1) * std::exp(s2 / 2 - 8);
    planted += odds - n * std::exp(s2 / 2 - 7.9);
    variance += (n - 1) * (std::exp(2 * s2) - std::exp(s2)) * std::exp(-16.0);
  }
  CHECK(std::abs(sum) / std::sqrt(variance) < z_limit);
  CHECK(std::abs(planted) / std::sqrt(variance) > z_limit);
}

namespace {

Tensor numbered(std::vector<Index> shape, double step) {
  Tensor tensor{std::move(shape), {}};
  Index count = 1;
  for (const Index axis : tensor.shape) count *= axis;
  for (Index i = 0; i < count; ++i) tensor.values.push_back(step * static_cast<double>(i));
  return tensor;
}

void write_heads(const std::filesystem::path& path, Index layers, Index heads, double step) {
  write_safetensors(path,
                    {{"q", numbered({layers, heads, 6, 4}, step)},
                     {"k", numbered({layers, heads, 8, 4}, step)},
                     {"v", numbered({layers, heads, 8, 3}, step)}},
                    Precision::f64);
}

class ModelFolder {
 public:
  explicit ModelFolder(const std::filesystem::path& path) { setenv("ATTNBENCH_MODEL", path.c_str(), 1); }
  ModelFolder(const ModelFolder&) = delete;
  ModelFolder& operator=(const ModelFolder&) = delete;
  ~ModelFolder() { unsetenv("ATTNBENCH_MODEL"); }
};

}  // namespace

TEST_CASE("file: gives the first tokens of the head asked for, scaled", "[unit]") {
  const Folder folder;
  write_heads(folder / "h.safetensors", 2, 3, 1);
  const std::string spec = "file:" + (folder / "h.safetensors");
  const Params params("inputs", spec);
  const auto& entry = find<InputEntry>("file");
  const auto limits = entry.limits(params);
  CHECK((limits.queries == 6 && limits.keys == 8 && limits.d == 4 && limits.dv == 3));
  CHECK(!entry.has_calibration);
  auto request = sized(5, 7, 4, 3);
  request.head = 1;
  const auto head = drawn(spec + ",batch=1,head=1", request);  // batch 1, head 1 + 1: the last
  CHECK(head.Q(0, 0) == 5 * 6 * 4);
  CHECK(head.K(6, 3) == 5 * 8 * 4 + 27);
  CHECK((head.V.rows() == 7 && head.V(0, 0) == 5 * 8 * 3));
  CHECK(scaled(spec, request).Q(0, 1) == Approx(25 / std::sqrt(2.0)));  // head 1: 24 + 1, times 4^-1/4
}

TEST_CASE("file: sizes and heads that the file does not have are refused", "[unit]") {
  const Folder folder;
  write_heads(folder / "h.safetensors", 2, 3, 1);
  const std::string spec = "file:" + (folder / "h.safetensors");
  CHECK(contains(misuse([&] { scaled(spec, sized(7, 8, 4, 3)); }), "nq <= 6"));
  CHECK(contains(misuse([&] { scaled(spec, sized(6, 1'000'000'000, 4, 3)); }), "nk <= 8"));
  CHECK(contains(misuse([&] { scaled(spec, sized(6, 8, 8, 3)); }), "d=4"));
  CHECK(contains(misuse([&] { scaled(spec, sized(6, 8, 4, 4)); }), "dv=3"));
  CHECK(contains(misuse([&] { scaled(spec, sized(-6, 8, 4, 3)); }), "at least 1"));
  CHECK(contains(misuse([&] { scaled(spec + ",head=3", sized(6, 8, 4, 3)); }), "a head from 0 to 2"));
  CHECK(contains(misuse([&] { scaled(spec + ",batch=2", sized(6, 8, 4, 3)); }), "a batch from 0 to 1"));
  CHECK(contains(misuse([] { scaled("file", sized(6, 8, 4, 3)); }), "file:PATH"));
  CHECK(contains(misuse([&] { scaled("file:" + (folder / "none"), sized(6, 8, 4, 3)); }), "no such file"));
}

TEST_CASE("file: a file that is written again is read again, and its content hash changes", "[unit]") {
  const Folder folder;
  const auto path = folder / "h.safetensors";
  const Params params("inputs", "file:" + path);
  const auto& entry = find<InputEntry>("file");
  const auto request = sized(1, 1, 4, 3);
  write_heads(path, 1, 1, 1);
  const auto first = entry.content(params);
  CHECK(first.size() == 16);
  CHECK(entry.content(params) == first);
  CHECK(entry.draw(params, request).Q(0, 1) == 1);
  write_heads(path, 1, 1, 2);  // the same size
  CHECK(entry.draw(params, request).Q(0, 1) == 2);
  CHECK(entry.content(params) != first);
}

TEST_CASE("file: values that overflow once scaled are refused with their place", "[unit]") {
  const Folder folder;
  const auto path = folder / "h.safetensors";
  write_safetensors(path, {{"q", {{1, 2}, {0, 1.7e308}}}, {"k", {{1, 2}, {1, 1}}}, {"v", {{1, 1}, {1}}}},
                    Precision::f64);
  const Params params("inputs", "file:" + path);
  CHECK(contains(misuse([&] { draw_head(params, sized(1, 1, 2, 1), 100); }), "Q(0, 1) is inf"));
  write_safetensors(path, {{"q", {{1, 2}, {1, 1}}}, {"k", {{1, 2}, {0, 1.7e308}}}, {"v", {{1, 1}, {1}}}},
                    Precision::f64);
  CHECK(contains(misuse([&] { draw_head(params, sized(1, 1, 2, 1), 100); }), "K(0, 1) is inf"));
}

TEST_CASE("model: gives the captured heads, those for calibration from their own text", "[unit]") {
  const Folder folder;
  const ModelFolder chosen(folder.path());
  write_heads(folder / "measured.safetensors", 4, 3, 1);
  write_heads(folder / "calibration.safetensors", 4, 3, -1);
  const Params params("inputs", "model");
  const auto& entry = find<InputEntry>("model");
  CHECK((entry.causal_by_default && entry.has_calibration));
  CHECK((params.integer("layer") == 2 && params.integer("head") == 1));
  CHECK(entry.limits(params).keys == 8);
  CHECK(entry.content(params).size() == 32);
  auto request = sized(2, 2, 4, 3);
  CHECK(drawn("model", request).Q(0, 0) == 7 * 24);
  CHECK(drawn("model:layer=0,head=2", request).Q(0, 1) == 2 * 24 + 1);
  request.head = 1;
  CHECK(drawn("model", request).Q(0, 0) == 8 * 24);
  request.purpose = Purpose::calibration;
  CHECK(drawn("model", request).Q(0, 0) == -8 * 24);
}

TEST_CASE("model: captures without texts are one text, and texts of another capture or of no bytes are refused",
          "[unit]") {
  const Folder folder;
  const ModelFolder chosen(folder.path());
  write_heads(folder / "measured.safetensors", 4, 3, 1);
  write_heads(folder / "calibration.safetensors", 4, 3, -1);
  const auto replicates = [] { return find<InputEntry>("model").limits(Params("inputs", "model")).replicates; };
  auto request = sized(2, 2, 4, 3);
  CHECK(replicates() == 1);
  request.replicate = 1;
  CHECK(contains(misuse([&] { drawn("model", request); }), "expected one from 0 to 0"));
  CHECK(drawn("model:text=0", request).Q(0, 0) == 7 * 24);

  const auto model = std::filesystem::path(ATTNBENCH_SOURCE_DIR) / "harness/inputs/model";
  for (const char* name : {"measured", "calibration", "weights"})
    std::filesystem::copy_file(model / (name + std::string(".safetensors")),
                               folder / (name + std::string(".safetensors")),
                               std::filesystem::copy_options::overwrite_existing);
  request = sized(2, 2, 64, 64);
  request.replicate = 1;
  const auto write_texts = [&](std::vector<double> bytes) {
    const auto columns = static_cast<Index>(bytes.size()) / 2;
    write_safetensors(folder / "texts.safetensors", {{"bytes", {{2, columns}, std::move(bytes)}}}, Precision::f64);
  };
  write_texts({1, 2, 3, 4});
  CHECK(replicates() == 2);
  CHECK(contains(misuse([&] { drawn("model", request); }), "its first text is not the one that was captured"));
  write_texts({1, 2, 3, 256});
  CHECK(contains(misuse([&] { replicates(); }), "byte 1 of text 1 is 256"));
  write_texts({1, 0.5, 3, 4});
  CHECK(contains(misuse([&] { replicates(); }), "byte 1 of text 0 is 0.5"));
  write_texts({});
  CHECK(contains(misuse([&] { replicates(); }), "there is no text in it"));
}

TEST_CASE("model: layers, heads and captures that do not exist are refused", "[unit]") {
  const Folder folder;
  const ModelFolder chosen(folder.path());
  const auto request = sized(2, 2, 4, 3);
  CHECK(contains(misuse([&] { scaled("model", request); }), "scripts/train_byte_lm.py"));
  write_heads(folder / "measured.safetensors", 2, 3, 1);
  CHECK(contains(misuse([&] { scaled("model", request); }), "a layer from 0 to 1"));
  CHECK(contains(misuse([&] { scaled("model:layer=1,head=3", request); }), "a head from 0 to 2"));
  auto calibration = request;
  calibration.purpose = Purpose::calibration;
  CHECK(contains(misuse([&] { scaled("model:layer=1", calibration); }), "calibration.safetensors"));
  write_safetensors(
      folder / "calibration.safetensors",
      {{"q", numbered({2, 3, 1, 4}, 1)}, {"k", numbered({2, 3, 1, 4}, 1)}, {"v", numbered({2, 3, 1, 3}, 1)}},
      Precision::f64);
  CHECK(contains(misuse([&] { scaled("model:layer=1", calibration); }), "calibration file has nq=1"));
}

}  // namespace attnbench::inputs_test
