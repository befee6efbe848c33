// Measurements that nobody made, as many as a recipe plans: what a recipe's rules do is then known without running it.
#pragma once

#include <cmath>
#include <functional>

#include "harness/random/streams.hpp"
#include "harness/runner/cells.hpp"

namespace attnbench {

class MadeUp final : public Measurements {
 public:
  // The number in a replicate and at a place of an array.
  using Number = std::function<double(Index replicate, size_t place)>;
  // Those of a cell's metric.
  using Numbers = std::function<Number(const Cell&, const std::string& metric)>;

  explicit MadeUp(Numbers numbers) : numbers_(std::move(numbers)) {}

  Samples scalars(const RecipeCell& cell, const std::string&, const std::string& metric) const override {
    const Number number = numbers_(cell.run, metric);
    Samples samples;
    for (Index r = 0; r < cell.replicates; ++r) samples[r] = number(r, 0);
    return samples;
  }
  std::map<Index, std::vector<double>> arrays(const RecipeCell& cell, const std::string&, const std::string& metric,
                                              size_t length) const override {
    const Number number = numbers_(cell.run, metric);
    const size_t count = length > 0 ? length : 64;
    std::map<Index, std::vector<double>> all;
    for (Index r = 0; r < cell.replicates; ++r)
      for (size_t i = 0; i < count; ++i) all[r].push_back(number(r, i));
    return all;
  }

 private:
  Numbers numbers_;
};

// Numbers between 1/2 and 1 that depend on everything that names them.
inline MadeUp arbitrary() {
  return MadeUp([](const Cell& cell, const std::string& metric) {
    const auto hash = std::hash<std::string>()(cell.experiment.spec() + cell.method.spec() + cell.input_key() + metric);
    return [first = static_cast<double>(hash % 1000) / 1000](Index replicate, size_t place) {
      const double phase = first + 0.618 * static_cast<double>(replicate) + 0.414 * static_cast<double>(place);
      return 0.5 + 0.5 * (phase - std::floor(phase));
    };
  });
}

}  // namespace attnbench
