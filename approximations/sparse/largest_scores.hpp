// The keys of largest score, found while scores come in.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
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
    if (count_ == 0 || add_by_histogram(first, scores)) return;
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
  // Adds no score that count_ larger ones exclude, or returns false where that does not pay or cannot be told. Where a
  // tenth of 65,000 keys is wanted, finding them among candidates that come in takes half of a decoding step.
  bool add_by_histogram(Index first, std::span<const T> scores) {
    constexpr size_t bins = 1024, share = 64;
    if (!found_.empty() || scores.size() <= count_ || scores.size() > share * count_) return false;
    const Eigen::Map<const Eigen::Array<T, 1, Eigen::Dynamic>> all(scores.data(), std::ssize(scores));
    const T least = all.template minCoeff<Eigen::PropagateNaN>();
    const T scale = static_cast<T>(bins - 1) / (all.template maxCoeff<Eigen::PropagateNaN>() - least);
    if (!(scale > 0 && std::isfinite(scale))) return false;               // 0 where a score is infinite
    const auto place = [&](T score) { return (score - least) * scale; };  // does not fall as the score rises
    std::array<std::uint32_t, bins> in_bin{};
    for (const T score : scores) ++in_bin[static_cast<size_t>(place(score))];
    size_t bin = bins, reached = 0;
    while (reached < count_) reached += in_bin[--bin];
    found_.resize(reached + 1);  // one more, so that a score which is not added may be written: no branch is faster
    for (size_t j = 0, at = 0; j < scores.size(); ++j) {
      found_[at] = {scores[j], first + static_cast<Index>(j)};
      at += place(scores[j]) >= static_cast<T>(bin) ? 1 : 0;
    }
    found_.resize(reached);
    return true;
  }
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
