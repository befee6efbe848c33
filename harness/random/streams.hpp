// Named random streams. The seed of every stream is a hash of the base seed and of the stream's purpose. Adding a
// method, reordering cells or splitting into shards therefore changes nobody's numbers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "harness/linalg/matrix.hpp"
#include "harness/random/chi.hpp"
#include "harness/random/generator.hpp"
#include "harness/random/normal.hpp"

namespace attnbench {

// FNV-1a over the bytes, finished with a 64-bit mix: changing any byte changes every bit with probability 1/2.
std::uint64_t hash_bytes(std::string_view bytes);

class Streams {
 public:
  explicit Streams(std::uint64_t base_seed) : base_seed_(base_seed) {}
  // Parts are joined so that ("a", "bc") and ("ab", "c") differ.
  template <class... Parts>
  Generator stream(const Parts&... parts) const {
    std::string name = std::to_string(base_seed_);
    ((name += '\x1f', append(name, parts)), ...);
    return Generator(hash_bytes(name));
  }
  std::uint64_t base_seed() const { return base_seed_; }

 private:
  static void append(std::string& name, std::string_view part) { name += part; }
  static void append(std::string& name, Index part) { name += std::to_string(part); }

  std::uint64_t base_seed_;
};

// A Haar-distributed orthogonal matrix from a d x d matrix of standard normal numbers: its QR factor with the signs of
// R's diagonal moved into Q. Without the sign fix, Householder QR always gives Q_00 < 0 and positive features a bias of
// -15 % (methods.md B); raw_qr_factor leaves it out, as published libraries do.
Matrix<double> haar_factor(const Matrix<double>& gaussian);
Matrix<double> raw_qr_factor(const Matrix<double>& gaussian);
// A Haar-distributed d x d matrix as a product of reflections, each of which takes e1 to a uniform direction of its
// dimension (Stewart 1980, SIAM J. Numer. Anal. 17:403). Takes half the normal numbers and a third of the time of
// haar_factor.
Matrix<double> haar_orthogonal(Generator& generator, Index d);

}  // namespace attnbench
