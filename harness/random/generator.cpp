#include "harness/random/generator.hpp"

#include <algorithm>

#include "harness/linalg/vector.hpp"

namespace attnbench {

namespace {

using Words = Vector<std::uint64_t>::type;
constexpr std::size_t side_by_side = lanes<std::uint64_t>;

// New words from the old ones, those that follow them, and those `shift` further on.
Words twisted(const Words& old, const Words& next, const Words& far) {
  constexpr std::uint64_t low = (std::uint64_t{1} << 31) - 1;
  const Words joined = (old & ~low) | (next & low);
  return far ^ (joined >> 1) ^ ((0 - (joined & 1)) & 0xb5026f5aa96619e9u);
}

Words tempered(Words x) {
  x ^= (x >> 29) & 0x5555555555555555u;
  x ^= (x << 17) & 0x71d67fffeda60000u;
  x ^= (x << 37) & 0xfff7eee000000000u;
  return x ^ (x >> 43);
}

}  // namespace

Generator::Generator(result_type seed) {
  state_[0] = seed;
  for (std::size_t i = 1; i < size; ++i) state_[i] = 6364136223846793005u * (state_[i - 1] ^ (state_[i - 1] >> 62)) + i;
}

void Generator::refill() {
  std::copy(numbers_.begin() + static_cast<std::ptrdiff_t>(next_), numbers_.begin() + static_cast<std::ptrdiff_t>(end_),
            numbers_.begin());
  end_ -= next_;
  next_ = 0;
  std::uint64_t *const state = state_.data(), *const numbers = numbers_.data() + end_;
  const auto renew = [&](std::size_t i, const std::uint64_t* far) {
    const Words renewed = twisted(load(state + i), load(state + i + 1), load(far));
    store(state + i, renewed);
    store(numbers + i, tempered(renewed));
  };
  renew(0, state + shift);
  std::copy_n(state, side_by_side, state + size);  // the words after the last are the first new ones
  constexpr std::size_t wrapped = (size - shift + side_by_side - 1) / side_by_side * side_by_side;
  static_assert(wrapped + shift <= size + side_by_side && side_by_side <= most_lanes,
                "words after the copied ones are read");
  for (std::size_t i = side_by_side; i < wrapped; i += side_by_side) renew(i, state + i + shift);
  for (std::size_t i = wrapped; i < size; i += side_by_side) renew(i, state + i + shift - size);
  end_ += size;
}

}  // namespace attnbench
