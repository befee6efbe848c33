#include "harness/core/problem.hpp"

#include <fmt/format.h>

#include <numeric>
#include <stdexcept>
#include <vector>

#include "harness/errors/error.hpp"

namespace attnbench {

namespace {

std::vector<Index> counted(Index first, Index count) {
  std::vector<Index> all(static_cast<size_t>(count));
  std::iota(all.begin(), all.end(), first);
  return all;
}

}  // namespace

std::string to_string(Precision precision) {
  return precision == Precision::f32 ? "f32" : precision == Precision::f64 ? "f64" : "bf16";
}

std::optional<Precision> precision_of(const std::string& text) {
  for (const Precision precision : {Precision::f32, Precision::f64, Precision::bf16})
    if (text == to_string(precision)) return precision;
  return std::nullopt;
}

Precision parse_precision(const std::string& text) {
  if (const auto precision = precision_of(text)) return *precision;
  throw Misuse("--precision " + text + ": expected f32, f64 or bf16");
}

Extras part_of(const Extras& whole, std::span<const Index> queries, std::span<const Index> keys) {
  Extras part;
  for (const auto& [name, extra] : whole) {
    const auto chosen = [&](Extra::Axis axis, Index size) {
      if (axis == Extra::Axis::fixed) return counted(0, size);
      const auto& some = axis == Extra::Axis::queries ? queries : keys;
      return std::vector<Index>(some.begin(), some.end());
    };
    const auto rows = chosen(extra.rows, extra.numbers.rows()), columns = chosen(extra.columns, extra.numbers.cols());
    part[name] = {extra.numbers(rows, columns), extra.rows, extra.columns};
  }
  return part;
}

template <class T>
const Matrix<double>& Head<T>::needed(const std::string& name) const {
  const auto found = extra ? extra->find(name) : Extras::const_iterator();
  if (!extra || found == extra->end())
    throw std::logic_error(
        fmt::format("the head has no '{}': MethodEntry::needs does not name it, or this caller "
                    "gives Q, K and V alone",
                    name));
  return found->second.numbers;
}

template struct Head<float>;
template struct Head<double>;

template <class T>
HeadPart<T>::HeadPart(const Head<T>& whole, Index query, Index queries, Index key, Index keys)
    : Q_(row_block(whole.Q, query, queries)), K_(row_block(whole.K, key, keys)), V_(row_block(whole.V, key, keys)) {
  if (whole.extra && !whole.extra->empty()) extra_ = part_of(*whole.extra, counted(query, queries), counted(key, keys));
}

template class HeadPart<float>;
template class HeadPart<double>;

}  // namespace attnbench
