#include "harness/claims/pairs.hpp"

#include <fmt/format.h>

#include <cmath>

#include "harness/random/streams.hpp"

namespace attnbench {

namespace {

Matrix<double> random_directions(Index count, Index d, std::uint64_t seed, const char* name) {
  Generator generator = Streams(seed).stream("check", "directions", name, d);
  return standard_normal(generator, count, d).rowwise().normalized();
}

// The directions 1 and e1, then `random` random directions.
Matrix<double> directions(Index random, Index d, std::uint64_t seed, const char* name) {
  Matrix<double> all(2 + random, d);
  all.row(0).setConstant(1 / std::sqrt(static_cast<double>(d)));
  all.row(1).setZero();
  all(1, 0) = 1;
  all.bottomRows(random) = random_directions(random, d, seed, name);
  return all;
}

Pairs pairs_of(const Matrix<double>& plus, const Matrix<double>& minus, std::vector<std::string> names) {
  return {(plus + minus) / 2, (plus - minus) / 2, std::move(names)};
}

std::span<const double> row(const Matrix<double>& X, Index i) {
  return {X.data() + i * X.cols(), static_cast<size_t>(X.cols())};
}

}  // namespace

Pair Pairs::operator[](Index p) const { return pair_of(row(Q, p), row(K, p)); }

void Pairs::append(const Pairs& more) {
  const Index before = size();
  Q.conservativeResize(before + more.size(), more.Q.cols());
  K.conservativeResize(before + more.size(), more.K.cols());
  Q.bottomRows(more.size()) = more.Q;
  K.bottomRows(more.size()) = more.K;
  names.insert(names.end(), more.names.begin(), more.names.end());
}

Pairs mean_pairs(Index d, std::uint64_t seed) {
  const Matrix<double> half = directions(2, d, seed, "means");
  Matrix<double> seen(8, d);
  seen << half, -half;
  const Matrix<double> other = std::sqrt(0.1) * random_directions(8, d, seed, "beside means");
  std::vector<std::string> sums, differences;
  for (const char* sign : {"+", "-"})
    for (const char* direction : {"1", "e1", "a random direction", "another random direction"}) {
      sums.push_back(fmt::format("q + k along {}{}", sign, direction));
      differences.push_back(fmt::format("q - k along {}{}", sign, direction));
    }
  Pairs all = pairs_of(seen, other, sums);
  all.append(pairs_of(other, seen, differences));
  return all;
}

Pairs far_pairs(Index d, std::uint64_t seed) {
  Matrix<double> seen(2, d);
  seen.row(0).setConstant(std::sqrt(2.5 / static_cast<double>(d)));
  seen.row(1) = -seen.row(0);
  const Matrix<double> other = std::sqrt(0.1) * random_directions(2, d, seed, "beside far");
  Pairs all = pairs_of(seen, other, {"|q + k|^2 = 2.5 along +1", "|q + k|^2 = 2.5 along -1"});
  all.append(pairs_of(other, seen, {"|q - k|^2 = 2.5 along +1", "|q - k|^2 = 2.5 along -1"}));
  return all;
}

Pairs variance_pairs(Index d, std::uint64_t seed) {
  const double length = std::sqrt(0.1);
  const Matrix<double> seen = directions(6, d, seed, "variances"),
                       other = length * random_directions(8, d, seed, "beside variances");
  Pairs all = pairs_of(length * seen, other, std::vector<std::string>(8, "|q + k|^2 = |q - k|^2 = 0.1"));
  all.append(pairs_of(other, seen, std::vector<std::string>(8, "|q + k|^2 = 0.1, |q - k|^2 = 1")));
  return all;
}

Pairs opposite_and_equal_pairs(Index d, std::uint64_t seed) {
  Pairs all;
  for (const double length : {0.1, 0.5, 1.0, 2.0, 2.5}) {
    const Matrix<double> Q = length * directions(1, d, seed, "exact");
    const auto named = [&](const char* which) {
      std::vector<std::string> names;
      for (const char* direction : {"1", "e1", "a random direction"})
        names.push_back(fmt::format("{}, |q| = {} along {}", which, length, direction));
      return names;
    };
    all.append({Q, -Q, named("k = -q")});
    all.append({Q, Q, named("k = q")});
  }
  return all;
}

}  // namespace attnbench
