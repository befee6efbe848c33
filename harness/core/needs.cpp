#include "harness/core/needs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "harness/core/methods_inside.hpp"

namespace attnbench {

namespace {

void add_needs(const Params& method, std::vector<Need>& needs) {
  for (const Need& need : find<MethodEntry>(method.name()).needs) {
    if (const auto& [parameter, value] = need.when; !parameter.empty() && method.text(parameter) != value) continue;
    const auto same = std::find_if(needs.begin(), needs.end(), [&](const Need& o) { return o.name == need.name; });
    if (same == needs.end())
      needs.push_back(need);
    else if (words_of(*same) != words_of(need))
      throw Misuse(
          fmt::format("{} needs '{}' of shape {}, and another part of this spec of shape {}; they cannot be "
                      "combined",
                      method.spec(), need.name, words_of(need), words_of(*same)));
  }
  for (const Params& inner : methods_inside(method)) add_needs(inner, needs);
}

Index size_of(const Need& need, const std::string& word, const Shape& shape) {
  if (word == "n") return shape.nk;
  if (word == "nq") return shape.nq;
  if (word == "d") return shape.d;
  if (word == "dv") return shape.dv;
  Index number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size() || number < 1)
    throw Misuse(
        fmt::format("need '{}' has an axis '{}'; expected n (one a key), nq (one a query), d, dv, or a number "
                    "from 1",
                    need.name, word));
  return number;
}

Extra::Axis axis_of(const std::string& word) {
  return word == "n" ? Extra::Axis::keys : word == "nq" ? Extra::Axis::queries : Extra::Axis::fixed;
}

Matrix<double> positions(const Need& need, const Shape& shape) {
  const auto [rows, columns] = size_of(need, shape);
  const Index first = need.rows == "nq" && shape.mask.causal ? shape.mask.offset : 0;
  Matrix<double> numbers(rows, columns);
  for (Index i = 0; i < rows; ++i) numbers.row(i).setConstant(static_cast<double>(first + i));
  return numbers;
}

}  // namespace

std::vector<Need> needs_of(const Params& method) {
  std::vector<Need> needs;
  add_needs(method, needs);
  return needs;
}

std::pair<Index, Index> size_of(const Need& need, const Shape& shape) {
  return {size_of(need, need.rows, shape), size_of(need, need.columns, shape)};
}

std::string words_of(const Need& need) { return need.rows + " x " + need.columns; }

Extra extra_of(const Need& need, Matrix<double> numbers) {
  return {std::move(numbers), axis_of(need.rows), axis_of(need.columns)};
}

Extras extras_for(const Params& method, const Shape& shape, const Extras& given, const std::string& giver,
                  const std::function<std::string(const Need&)>& advice) {
  Extras chosen;
  for (const Need& need : needs_of(method)) {
    const auto size = size_of(need, shape);
    const auto found = given.find(need.name);
    if (found == given.end() && need.values == Need::Values::positions) {
      chosen[need.name] = extra_of(need, positions(need, shape));
      continue;
    }
    const auto refusal = [&](const std::string& what) {
      return fmt::format("{} needs '{}' of shape {} = {} x {}, and {}{}", method.spec(), need.name, words_of(need),
                         size.first, size.second, giver, what);
    };
    if (found == given.end()) throw Skip(refusal(" does not give it; " + advice(need)));
    const Matrix<double>& numbers = found->second.numbers;
    if (std::pair(numbers.rows(), numbers.cols()) != size)
      throw Misuse(refusal(fmt::format(" gives {} x {}; give it that shape", numbers.rows(), numbers.cols())));
    if (!numbers.allFinite()) throw Misuse(refusal(" gives NaN or infinity; every value must be finite"));
    chosen[need.name] = extra_of(need, numbers);
  }
  return chosen;
}

Extras drawn_extras(const Params& method, const Shape& shape, std::uint64_t seed) {
  Extras drawn;
  for (const Need& need : needs_of(method)) {
    const auto [rows, columns] = size_of(need, shape);
    Generator generator = Streams(seed).stream("further input", need.name, rows, columns);
    const Matrix<double> normal = standard_normal(generator, rows, columns);
    // The distribution function of a normal number is uniform. Kept off 0 and 1, whose logarithms are infinite.
    const auto uniform = [](double x) { return 0.001 + 0.998 * (std::erfc(-x / std::sqrt(2.0)) / 2); };
    Matrix<double> numbers = need.values == Need::Values::positions ? positions(need, shape)
                             : need.values == Need::Values::uniform ? Matrix<double>(normal.unaryExpr(uniform))
                                                                    : normal;
    drawn[need.name] = extra_of(need, numbers.cast<float>().cast<double>());
  }
  return drawn;
}

}  // namespace attnbench
