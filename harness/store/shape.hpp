// The shape of a measurement as the results file writes it: [] for a number, [512] or [4,64] for an array.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/linalg/matrix.hpp"

namespace attnbench {

// SQLite holds at most 10^9 bytes in a value (SQLITE_MAX_LENGTH).
inline constexpr Index most_elements = 1'000'000'000 / sizeof(double);

std::string to_text(const std::vector<Index>& shape);

// How many numbers an array of that shape has. None for a text that to_text does not write, and for a shape with an
// axis or with numbers above most_elements.
std::optional<Index> elements_of(std::string_view shape);

}  // namespace attnbench
