#include "harness/store/shape.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>

namespace attnbench {

std::string to_text(const std::vector<Index>& shape) { return fmt::format("[{}]", fmt::join(shape, ",")); }

std::optional<Index> elements_of(std::string_view shape) {
  std::vector<Index> axes;
  Index elements = 1;
  if (shape.size() < 2 || shape.back() != ']') return std::nullopt;
  const char* const end = shape.data() + shape.size() - 1;
  for (const char* at = shape.data() + 1; at < end; ++at) {
    const auto [next, error] = std::from_chars(at, end, axes.emplace_back());
    if (error != std::errc() || axes.back() < 0 || axes.back() > most_elements) return std::nullopt;
    elements *= axes.back();
    if (elements > most_elements) return std::nullopt;
    at = next;
  }
  if (shape != to_text(axes)) return std::nullopt;
  return elements;
}

}  // namespace attnbench
