// The keys of largest score, found while scores come in.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "harness/linalg/matrix.hpp"

namespace attnbench {

// Keeps at most twice as many candidates as are wanted. On a tie the earlier key stays.
template <class T>
class LargestScores {
 public:
  struct Found {
    T score;
    Index key;
  };

  explicit LargestScores(Index count) : count_(static_cast<size_t>(std::max<Index>(0, count))) {}

  // The scores of keys first, first + 1, ...: keys beyond all that came before.
  void add(Index first, std::span<const T> scores) {
    if (count_ == 0) return;
    constexpr size_t together = 64;
    for (size_t begin = 0; begin < scores.size(); begin += together) {
      const auto some = scores.subspan(begin, std::min(together, scores.size() - begin));
      const Eigen::Map<const Eigen::Array<T, 1, Eigen::Dynamic>> vectors(some.data(), std::ssize(some));
      if (full_ && vectors.template maxCoeff<Eigen::PropagateNaN>() <= least_) continue;
      for (size_t j = 0; j < some.size(); ++j)
        if (!full_ || !(some[j] <= least_)) found_.push_back({some[j], first + static_cast<Index>(begin + j)});
      if (found_.size() >= 2 * count_ + together) cut();
    }
  }

  // The largest, in no order.
  std::span<const Found> found() {
    if (found_.size() > count_) cut();
    return found_;
  }

  // Forgets all scores.
  void clear() {
    found_.clear();
    full_ = false;
  }

 private:
  void cut() {
    const auto last = found_.begin() + static_cast<std::ptrdiff_t>(count_) - 1;
    std::nth_element(found_.begin(), last, found_.end(), [](const Found& a, const Found& b) {
      return a.score > b.score || (a.score == b.score && a.key < b.key);
    });
    least_ = last->score;
    full_ = true;
    found_.resize(count_);
  }

  size_t count_;
  std::vector<Found> found_;
  bool full_ = false;
  T least_ = 0;  // the least of the largest scores so far, if full_
};

}  // namespace attnbench
