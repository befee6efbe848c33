// Numbers of blocks of turns: what is compared block by block has one number a block.
#pragma once

#include <algorithm>
#include <vector>

namespace attnbench {

// a / b.
inline std::vector<double> ratios(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> all;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) all.push_back(a[i] / b[i]);
  return all;
}

}  // namespace attnbench
