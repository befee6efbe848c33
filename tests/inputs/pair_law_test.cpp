// The input law `pair`: lengths, angles and directions as they were asked for, and a plane that has no preferred
// direction.
#include <cmath>
#include <numbers>

#include "harness/inputs/input.hpp"
#include "tests/misuse.hpp"
#include "tests/scores.hpp"

namespace attnbench::pair_law_test {

namespace {

constexpr double pi = std::numbers::pi;

InputRequest sized(Index n, Index d, std::uint64_t seed = 1) {
  return {.nq = n, .nk = n, .d = d, .dv = 3, .streams = Streams(seed)};
}

HeadData<double> drawn(const std::string& spec, const InputRequest& request) {
  return draw_head(Params("inputs", spec), request);
}

std::string pair_spec(double length, double angle, const std::string& direction) {
  return "pair:length=" + std::to_string(length) + ",angle=" + std::to_string(angle) + ",direction=" + direction;
}

}  // namespace

TEST_CASE("a pair has the lengths and the angle that were asked for, in every row", "[unit]") {
  for (const Index d : {2, 3, 16, 65})
    for (const std::string direction : {"random", "ones", "axis"})
      for (const double length : {0.0, 0.3, 2.0})
        for (const double angle : {-3.0, -pi / 2, 0.0, 1e-6, 1.0, 3.141592}) {
          const std::string spec = pair_spec(length, angle, direction);
          INFO(spec << " d=" << d);
          const auto head = drawn(spec, sized(4, d));
          const double given = Params("inputs", spec).real("angle"), square = length * length;
          for (Index i = 0; i < 4; ++i) {
            CHECK(std::abs(head.Q.row(i).norm() - length) <= 1e-14 * (1 + length));
            CHECK(std::abs(head.K.row(i).norm() - length) <= 1e-14 * (1 + length));
            CHECK(std::abs(head.Q.row(i).dot(head.K.row(i)) - square * std::cos(given)) <= 1e-13 * (1 + square));
            CHECK(head.Q.row(i) == head.Q.row(0));
            CHECK(head.K.row(i) == head.K.row(0));
          }
          // |q - k| is small where the angle is: the cosine alone would not show it.
          CHECK(std::abs((head.Q.row(0) - head.K.row(0)).norm() - 2 * length * std::abs(std::sin(given / 2))) <=
                1e-13 * (1 + length));
          CHECK(head.V.row(0) != head.V.row(1));
        }
}

TEST_CASE("q + k points where it was told to", "[unit]") {
  for (const Index d : {1, 2, 5, 64}) {
    const double angle = d == 1 ? 0 : 1.2;
    const auto sum = [&](const std::string& direction) {
      const auto head = drawn(pair_spec(1, angle, direction), sized(1, d));
      return Matrix<double>(head.Q + head.K);
    };
    const double norm = 2 * std::cos(angle / 2);
    CHECK((sum("ones").array() - norm / std::sqrt(static_cast<double>(d))).abs().maxCoeff() < 1e-12);
    CHECK(std::abs(sum("axis")(0, 0) - norm) < 1e-12);
    CHECK(std::abs(sum("axis").norm() - norm) < 1e-12);
  }
}

TEST_CASE("opposite vectors cancel, and a negative angle turns the other way", "[unit]") {
  for (const std::string direction : {"random", "ones", "axis"}) {
    const auto opposite = drawn("pair:angle=3.141592653589793,direction=" + direction, sized(1, 8));
    CHECK((opposite.Q + opposite.K).norm() < 1e-15);
  }
  const auto left = drawn(pair_spec(1, 0.7, "axis"), sized(1, 8)),
             right = drawn(pair_spec(1, -0.7, "axis"), sized(1, 8));
  CHECK((left.Q - right.K).norm() < 1e-15);
  CHECK((left.K - right.Q).norm() < 1e-15);
}

TEST_CASE("in one dimension vectors are equal or opposite", "[unit]") {
  const auto equal = drawn("pair:length=0.5", sized(1, 1)),
             opposite = drawn("pair:angle=-3.141592653589793", sized(1, 1));
  CHECK(equal.Q(0, 0) == equal.K(0, 0));
  CHECK(opposite.Q(0, 0) == -opposite.K(0, 0));
  CHECK(std::abs(equal.Q(0, 0)) == 0.5);
  const auto message = misuse_of([] { drawn("pair:angle=1", sized(1, 1)); });
  CHECK(contains(message, "pair:angle=1"));
  CHECK(contains(message, "0 or pi"));
  for (const std::string bad : {"pair:angle=4", "pair:length=-1", "pair:direction=up"})
    CHECK(misuse_of([&] { drawn(bad, sized(1, 4)); }) != "");
}

TEST_CASE("a calibration head has pairs of the same geometry in planes of their own", "[unit]") {
  auto request = sized(3, 8);
  const auto measured = drawn("pair:angle=1", request);
  request.purpose = Purpose::calibration;
  const auto calibration = drawn("pair:angle=1", request);
  CHECK(measured.Q.row(0) == measured.Q.row(1));
  CHECK((calibration.Q.row(0) - calibration.Q.row(1)).norm() > 0.1);
  for (Index i = 0; i < measured.Q.rows(); ++i) {
    CHECK(calibration.Q.row(i).norm() == Approx(measured.Q.row(i).norm()).epsilon(1e-12));
    CHECK(calibration.Q.row(i).dot(calibration.K.row(i)) ==
          Approx(measured.Q.row(i).dot(measured.K.row(i))).epsilon(1e-12));
  }
  CHECK(measured.V != calibration.V);
  request.replicate = 1;
  CHECK(drawn("pair:angle=1", request).Q != measured.Q);
}

// Random planes: E q q^T = length^2 I / d, and E q_a^4 = 3 length^4 / (d (d + 2)), which a wrong normalisation (of each
// coordinate, say) would miss; E q_a k_a = length^2 cos(angle) / d. Least effect found in the power test: 10 %.
TEST_CASE("the plane of a random pair has no preferred direction", "[statistics]") {
  constexpr Index d = 4, replicates = 2000;
  constexpr double length = 1.5, angle = 0.9;
  const auto scores = [&](std::uint64_t seed, double stretched) {
    std::vector<Moments> squares(d), fourths(d), products(d), first(d);
    Moments mixed;
    auto request = sized(1, d, seed);
    for (Index r = 0; r < replicates; ++r) {
      request.replicate = r;
      auto head = drawn(pair_spec(length, angle, "random"), request);
      head.Q(0, 0) *= stretched;
      for (Index a = 0; a < d; ++a) {
        const auto place = static_cast<size_t>(a);
        const double q = head.Q(0, a) / length, k = head.K(0, a) / length;
        first[place].add(q);
        squares[place].add(q * q);
        fourths[place].add(q * q * q * q);
        products[place].add(q * k);
      }
      mixed.add(head.Q(0, 0) * head.Q(0, 1));
    }
    Scores all{{"q_0 q_1", score(mixed, 0)}};
    for (size_t a = 0; a < d; ++a)
      append(all, {{"q", score(first[a], 0)},
                   {"q^2", score(squares[a], 1.0 / d)},
                   {"q^4", score(fourths[a], 3.0 / (d * (d + 2)))},
                   {"q k", score(products[a], std::cos(angle) / d)}});
    return all;
  };
  Scores family;
  for (const auto seed : base_seeds) append(family, scores(seed, 1));
  check_family(family);
  check_found("first coordinate of q 10 % longer", scores(base_seeds[0], 1.1), threshold(family));
}

}  // namespace attnbench::pair_law_test
