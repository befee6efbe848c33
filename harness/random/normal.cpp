#include "harness/random/normal.hpp"

#include <bit>
#include <boost/random/normal_distribution.hpp>
#include <utility>

#include "harness/linalg/vector.hpp"

namespace attnbench {

namespace {

// Boost's normal distribution is a ziggurat of 128 layers: the low bits of a number choose a layer and a sign, the high
// ones a place x in the layer, and x is normal if it is below the next layer's end. 1.2 % of all numbers are not.
struct Layers {
  static constexpr size_t count = 256;
  double width[count], next[count];  // by the low eight bits; negative where these say so

  Layers() {
    const auto& table = boost::random::detail::normal_table<double>::table_x;
    for (size_t i = 0; i < count; ++i) {
      width[i] = (i % 2 == 0 ? -1 : 1) * table[i / 2];
      next[i] = table[i / 2 + 1];
    }
  }
};

constexpr size_t each = lanes<double>;
using Reals = Vector<double>::type;
using Words = Vector<std::uint64_t>::type;
using Integers = Vector<std::int64_t>::type;

// Entry uniform_i mod 256 of a table, for each i.
template <size_t... i>
Reals looked_up(const double (&table)[Layers::count], const std::uint64_t* uniform, std::index_sequence<i...>) {
  return Reals{table[uniform[i] % Layers::count]...};
}

// The normal numbers that `run` uniform ones give. Returns how many come before the first that is not below its layer's
// next one: those are as Boost gives them, to the last bit.
constexpr size_t run = 32;
size_t normal_run(const Layers& layers, const std::uint64_t* uniform, double* normal) {
  Integers below[run / each], all = ~Integers{};
  for (size_t first = 0; first < run; first += each) {
    const auto table = [&](const double(&entries)[Layers::count]) {
      return looked_up(entries, uniform + first, std::make_index_sequence<each>());
    };
    // Boost clears bit 11, before it drops the low eight.
    const Words place = (load(uniform + first) & ~(std::uint64_t{1} << 11)) >> 8;
    const Reals x = __builtin_convertvector(std::bit_cast<Integers>(place), Reals) * 0x1p-56 * table(layers.width);
    store<double>(normal + first, x);
    all &= below[first / each] = (x < 0 ? -x : x) < table(layers.next);
  }
  std::int64_t every = -1;
  for (size_t i = 0; i < each; ++i) every &= all[i];
  if (every != 0) return run;
  size_t found = 0;
  while (below[found / each][found % each] != 0) ++found;
  return found;
}

}  // namespace

Matrix<double> standard_normal(Generator& generator, Index rows, Index columns) {
  static const Layers layers;
  boost::random::normal_distribution<double> one;
  Matrix<double> x(rows, columns);
  double* next = x.data();
  double* const end = next + x.size();
  while (end - next >= static_cast<std::ptrdiff_t>(run)) {
    const size_t found = normal_run(layers, generator.ahead(run).data(), next);
    generator.skip(found);
    next += found;
    if (found < run) *next++ = one(generator);
  }
  while (next < end) *next++ = one(generator);
  return x;
}

}  // namespace attnbench
