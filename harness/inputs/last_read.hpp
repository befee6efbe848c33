// Caches the values read or made last, keyed by their origin: every cell of an input draws the same head. Not locked:
// the program reads inputs on one thread, and a method's threads (Context::for_blocks) read none.
#pragma once

#include <algorithm>
#include <deque>
#include <string>
#include <utility>

namespace attnbench {

template <class Value, size_t most_kept>
class LastRead {
 public:
  // The value cached under that key, otherwise the result of make().
  template <class Make>
  Value get(const std::string& key, const Make& make) {
    const auto found = std::find_if(kept_.begin(), kept_.end(), [&](auto& kept) { return kept.first == key; });
    if (found != kept_.end()) return found->second;
    Value made = make();
    if (kept_.size() == most_kept) kept_.pop_front();
    kept_.emplace_back(key, std::move(made));
    return kept_.back().second;
  }

 private:
  std::deque<std::pair<std::string, Value>> kept_;
};

}  // namespace attnbench
