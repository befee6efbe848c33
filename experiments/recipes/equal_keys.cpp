#include "experiments/recipes/equal_keys.hpp"

#include <cmath>

namespace attnbench {

Samples at_equal_keys(const Cells& head, const std::vector<std::string>& family, const std::string& metric,
                      const Samples& keys) {
  std::map<Index, std::vector<std::pair<double, double>>> measured;  // logarithms of keys and metric of each member
  for (const auto& member : family) {
    const Samples values = head.method(member).scalar(metric);
    for (const auto& [replicate, read] : head.method(member).scalar("keys_read"))
      if (const auto found = values.find(replicate); found != values.end())
        measured[replicate].emplace_back(std::log(read), std::log(found->second));
  }
  Samples all;
  for (const auto& [replicate, read] : keys) {
    const auto& points = measured[replicate];
    if (points.size() < 2) continue;
    size_t end = 1;
    while (end + 1 < points.size() && points[end].first < std::log(read)) ++end;
    const auto& [x, y] = points[end - 1];
    const auto& [next_x, next_y] = points[end];
    const double share = next_x == x ? 0 : (std::log(read) - x) / (next_x - x);
    all[replicate] = std::exp(y + share * (next_y - y));
  }
  return all;
}

}  // namespace attnbench
