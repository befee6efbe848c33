// The axes of a request, read from --sweep and --zip.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "harness/errors/error.hpp"
#include "harness/linalg/matrix.hpp"

namespace attnbench {

// One axis of a sweep: a size (n, d, dv, heads), logit_scale, round (half precision), or a parameter of methods, inputs
// or the experiment.
struct Axis {
  std::string name;
  std::vector<std::string> values;
};

// "m=16,32,64", "n=1024:65536:x2", "m=64:512:+64". Throws Misuse.
Axis parse_axis(const std::string& text);

// "n,m": axes whose values move together instead of multiplying. Throws Misuse.
std::vector<std::string> parse_zip(const std::string& text);

// Splits a request into sweeps that multiply, one for each combination of places in the zips. In each of them every
// zipped axis has one value. Without a zip, returns the sweep unchanged. Throws Misuse for a name that is not an axis,
// an axis in two zips, or axes of different lengths.
std::vector<std::vector<Axis>> unzipped(const std::vector<Axis>& sweep,
                                        const std::vector<std::vector<std::string>>& zips);

// Reads a value of an axis as a number. Throws Misuse for anything else.
template <class Number>
Number axis_number(const std::string& axis, std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw Misuse(
        fmt::format("--sweep {}: '{}' is not a number of the expected kind; expected {}=16,32,64, "
                    "{}=1024:65536:x2 or {}=64:512:+64",
                    axis, text, axis, axis, axis));
  return value;
}

}  // namespace attnbench
