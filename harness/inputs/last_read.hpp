// What was read or made last, kept by what it was made from: a head is drawn for every cell, from several threads.
#pragma once

#include <algorithm>
#include <deque>
#include <mutex>
#include <string>
#include <utility>

namespace attnbench {

template <class Value, size_t most_kept>
class LastRead {
 public:
  // The value kept under that key, or what make() gives.
  template <class Make>
  Value get(const std::string& key, const Make& make) {
    const std::lock_guard lock(mutex_);  // held while making, so that nothing is made twice at once
    const auto found = std::find_if(kept_.begin(), kept_.end(), [&](auto& kept) { return kept.first == key; });
    if (found != kept_.end()) return found->second;
    if (kept_.size() == most_kept) kept_.pop_front();
    kept_.emplace_back(key, make());
    return kept_.back().second;
  }

 private:
  std::mutex mutex_;
  std::deque<std::pair<std::string, Value>> kept_;
};

}  // namespace attnbench
