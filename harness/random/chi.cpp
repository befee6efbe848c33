#include "harness/random/chi.hpp"

#include <bit>
#include <boost/random/chi_squared_distribution.hpp>
#include <cmath>

#include "harness/linalg/exp.hpp"
#include "harness/linalg/vector.hpp"

namespace attnbench {

namespace {

using Reals = Vector<double>::type;
using Integers = Vector<std::int64_t>::type;
using Packet = Eigen::internal::packet_traits<double>::type;
static_assert(sizeof(Packet) == sizeof(Reals));
constexpr size_t each = lanes<double>;

// tan x, 0 <= x <= pi, as -cos r / sin r or sin r / cos r of r = x - n pi/2, |r| <= pi/4: polynomials of Cephes.
Reals tangent(Reals x) {
  constexpr double half_pi = 0x1.921fb54442d18p+0, rest = 0x1.1a62633145c07p-54, shifter = 0x1.8p+52;
  const Reals shifted = x * (1 / half_pi) + shifter, n = shifted - shifter;
  const Reals r = (x - n * half_pi) - n * rest, z = r * r;
  const Reals sine = r + r * z *
                             (-1.66666666666666307295E-1 +
                              z * (8.33333333332211858878E-3 +
                                   z * (-1.98412698295895385996E-4 +
                                        z * (2.75573136213857245213E-6 +
                                             z * (-2.50507477628578072866E-8 + z * 1.58962301576546568060E-10)))));
  const Reals cosine = 1 - 0.5 * z +
                       z * z *
                           (4.16666666666665929218E-2 +
                            z * (-1.38888888888730564116E-3 +
                                 z * (2.48015872888517045348E-5 +
                                      z * (-2.75573141792967388112E-7 +
                                           z * (2.08757008419747316778E-9 + z * -1.13585365213876817300E-11)))));
  const Integers odd = (std::bit_cast<Integers>(shifted) & 1) != 0;
  return (odd ? -cosine : sine) / (odd ? sine : cosine);
}

double unit(std::uint64_t number) { return static_cast<double>(number) * 0x1p-64; }

// Boost draws a gamma variate x of shape a > 1 by rejection from a Cauchy variate: y = tan(pi u), x = r y + a - 1,
// r^2 = 2 a - 1. It takes x if x > 0 and another u' <= (1 + y^2) (x / (a - 1))^(a - 1) exp(-r y). These are the x and
// the bounds for `count` numbers u in a row.
class Candidates {
 public:
  static constexpr size_t count = 16, vectors = count / each;
  explicit Candidates(double shape) : less_(shape - 1), root_(std::sqrt(2 * shape - 1)) {}

  // Each step for all vectors before the next one: a processor sees too few steps ahead to find others to overlap.
  void draw(const std::uint64_t* numbers) {
    Reals u[vectors], x[vectors], y[vectors], exponent[vectors];
    Packet exp[vectors];
    for (size_t v = 0; v < vectors; ++v) u[v] = __builtin_convertvector(load(numbers + v * each), Reals) * 0x1p-64;
    for (size_t v = 0; v < vectors; ++v) y[v] = tangent(u[v] * M_PI);
    for (size_t v = 0; v < vectors; ++v) x[v] = root_ * y[v] + less_;
    for (size_t v = 0; v < vectors; ++v)
      exponent[v] = std::bit_cast<Reals>(Eigen::internal::plog(std::bit_cast<Packet>(x[v] * (1 / less_))));
    for (size_t v = 0; v < vectors; ++v) exp[v] = std::bit_cast<Packet>(less_ * exponent[v] - root_ * y[v]);
    Exponential<double>::in_lockstep(exp);
    for (size_t v = 0; v < vectors; ++v) {
      store<double>(x_ + v * each, x[v]);
      store<double>(bound_ + v * each, (1 + y[v] * y[v]) * std::bit_cast<Reals>(exp[v]));
    }
  }
  enum Verdict { taken, passed, refused, in_doubt };
  // Of candidate i with u'. In doubt where rounding may decide.
  Verdict verdict(size_t i, double other) const {
    constexpr double doubt = 1e-9;
    if (std::abs(x_[i]) <= doubt * (1 + less_)) return in_doubt;
    if (x_[i] < 0) return passed;
    if (std::abs(other - bound_[i]) > doubt * bound_[i]) return other < bound_[i] ? taken : refused;
    return in_doubt;
  }
  double variate(size_t i) const { return x_[i]; }

 private:
  double less_, root_, x_[count], bound_[count];
};

}  // namespace

std::vector<double> chi(Generator& generator, Index count, Index d) {
  boost::random::chi_squared_distribution<double> squared(static_cast<double>(d));
  std::vector<double> norms(static_cast<size_t>(count));
  Candidates candidates(static_cast<double>(d) / 2);
  auto norm = norms.begin();
  while (d > 2 && norms.end() - norm >= 2) {
    const auto numbers = generator.ahead(Candidates::count + 1);
    candidates.draw(numbers.data());
    size_t i = 0;
    bool doubtful = false;
    while (i < Candidates::count && norm != norms.end() && !doubtful) {
      switch (candidates.verdict(i, unit(numbers[i + 1]))) {
        case Candidates::taken:
          *norm++ = std::sqrt(2 * candidates.variate(i));
          [[fallthrough]];
        case Candidates::refused:
          i += 2;
          break;
        case Candidates::passed:
          ++i;
          break;
        case Candidates::in_doubt:
          doubtful = true;
      }
    }
    generator.skip(i);
    if (doubtful) *norm++ = std::sqrt(squared(generator));
  }
  while (norm != norms.end()) *norm++ = std::sqrt(squared(generator));
  return norms;
}

}  // namespace attnbench
