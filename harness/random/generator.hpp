// The 64-bit Mersenne Twister of Matsumoto and Nishimura: the numbers of std::mt19937_64, which the standard fixes.
// It makes 312 at a time, in vectors, and shows numbers before it gives them, so that distributions can work on several
// side by side.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace attnbench {

class Generator {
 public:
  using result_type = std::uint64_t;
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return std::numeric_limits<result_type>::max(); }
  static constexpr std::size_t most_ahead = 64;

  explicit Generator(result_type seed);

  result_type operator()() {
    if (next_ == end_) refill();
    return numbers_[next_++];
  }

  // The numbers that will be given next, `least` or more of them; least is at most most_ahead. The span is valid until
  // the generator gives a number or shows others.
  std::span<const result_type> ahead(std::size_t least) {
    if (end_ - next_ < least) refill();
    return {numbers_.data() + next_, end_ - next_};
  }
  // Passes over numbers that `ahead` has shown.
  void skip(std::size_t count) { next_ += count; }

 private:
  static constexpr std::size_t size = 312, shift = 156, most_lanes = 8;
  // Moves the numbers that are left to the front and appends 312.
  void refill();

  std::array<result_type, size + most_lanes> state_;  // the last ones are copies of the first
  std::array<result_type, size + most_ahead> numbers_;
  std::size_t next_ = 0, end_ = 0;
};

}  // namespace attnbench
