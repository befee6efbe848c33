#include "harness/runner/axes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace attnbench {

namespace {

constexpr size_t most_values = 100'000;
constexpr size_t most_steps = 10'000'000;  // values of all steps of the zips together

// "first:last:x2" or "first:last:+64"; integers only.
std::vector<std::string> range_values(const std::string& axis, std::string_view text) {
  const size_t a = text.find(':'), b = text.find(':', a + 1);
  if (b == std::string_view::npos || b + 2 > text.size() || (text[b + 1] != 'x' && text[b + 1] != '+'))
    throw Misuse(fmt::format("--sweep {}={}: a range reads first:last:xFACTOR or first:last:+STEP", axis, text));
  if (text.find('.') != std::string_view::npos)
    throw Misuse(
        fmt::format("--sweep {0}={1}: ranges are of integers; list the values, such as {0}=0.25,0.5,1", axis, text));
  const auto first = axis_number<Index>(axis, text.substr(0, a));
  const auto last = axis_number<Index>(axis, text.substr(a + 1, b - a - 1));
  const auto step = axis_number<Index>(axis, text.substr(b + 2));
  const bool factor = text[b + 1] == 'x';
  if (step < (factor ? 2 : 1) || first < (factor ? 1 : 0) || last < first || last > 1'000'000'000'000)
    throw Misuse(
        fmt::format("--sweep {}={}: expected 0 <= first <= last <= 10^12 and a factor of at least 2 or a step "
                    "of at least 1",
                    axis, text));
  if (!factor && (last - first) / step >= static_cast<Index>(most_values))
    throw Misuse(fmt::format("--sweep {}={}: more than {} values; use a larger step", axis, text, most_values));
  std::vector<std::string> values;
  for (Index v = first;; v = factor ? v * step : v + step) {
    values.push_back(std::to_string(v));
    if (factor ? v > last / step : v > last - step) return values;  // the next value would exceed last, or overflow
  }
}

const Axis& swept(const std::vector<Axis>& sweep, const std::string& name, const std::vector<std::string>& zip) {
  const auto found = std::find_if(sweep.begin(), sweep.end(), [&](const Axis& axis) { return axis.name == name; });
  if (found == sweep.end())
    throw Misuse(fmt::format("--zip {}: '{}' is not an axis of this run; expected names that --sweep gives values",
                             fmt::join(zip, ","), name));
  return *found;
}

// The number of values that every axis of a zip has.
size_t length_of(const std::vector<std::string>& zip, const std::vector<Axis>& sweep) {
  const Axis& first = swept(sweep, zip.front(), zip);
  for (const auto& name : zip)
    if (const Axis& axis = swept(sweep, name, zip); axis.values.size() != first.values.size())
      throw Misuse(fmt::format("--zip {}: {} has {} values and {} has {}; expected the same number for each",
                               fmt::join(zip, ","), first.name, first.values.size(), name, axis.values.size()));
  return first.values.size();
}

}  // namespace

namespace {

// "16-256" and "16..256": two integers that the user took for a range.
bool looks_like_a_range(std::string_view value) {
  const size_t a = value.find_first_not_of("0123456789"), b = value.find_first_not_of("-.", a);
  return a != 0 && a != value.npos && b != value.npos && value.find_first_not_of("0123456789", b) == value.npos &&
         (value[a] == '-' || b - a > 1);
}

}  // namespace

Axis parse_axis(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos || equals + 1 == text.size())
    throw Misuse(fmt::format("--sweep {}: expected AXIS=VALUES, such as m=16,32,64 or n=1024:65536:x2", text));
  Axis axis{text.substr(0, equals), {}};
  const std::string_view values = std::string_view(text).substr(equals + 1);
  if (values.find(':') != std::string_view::npos) {
    axis.values = range_values(axis.name, values);
    return axis;
  }
  for (size_t begin = 0; begin <= values.size();) {
    const size_t end = std::min(values.find(',', begin), values.size());
    if (end == begin) throw Misuse(fmt::format("--sweep {}: an empty value; expected values between commas", text));
    axis.values.emplace_back(values.substr(begin, end - begin));
    if (const std::string& value = axis.values.back(); looks_like_a_range(value))
      throw Misuse(fmt::format("--sweep {}: '{}' is not a value; a range reads {}={}:{}:x2", text, value, axis.name,
                               value.substr(0, value.find_first_of("-.")), value.substr(value.find_last_of("-.") + 1)));
    begin = end + 1;
  }
  if (axis.values.size() > most_values)
    throw Misuse(fmt::format("--sweep {}: more than {} values", axis.name, most_values));
  return axis;
}

std::vector<std::string> parse_zip(const std::string& text) {
  std::vector<std::string> names;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    names.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  for (auto name = names.begin(); name != names.end(); ++name)
    if (name->empty() || std::find(names.begin(), name, *name) != name)
      throw Misuse(fmt::format("--zip {}: expected the names of two or more axes, each once, such as n,m", text));
  if (names.size() < 2) throw Misuse(fmt::format("--zip {}: a single axis; expected two or more, such as n,m", text));
  return names;
}

std::vector<std::vector<Axis>> unzipped(const std::vector<Axis>& sweep,
                                        const std::vector<std::vector<std::string>>& zips) {
  std::vector<std::vector<Axis>> steps{sweep};
  std::vector<std::string> zipped;
  for (const auto& zip : zips) {
    const size_t length = length_of(zip, sweep);
    for (const auto& name : zip) {
      if (std::find(zipped.begin(), zipped.end(), name) != zipped.end())
        throw Misuse(fmt::format("--zip {}: '{}' is in another --zip already; put all axes that move with it into one",
                                 fmt::join(zip, ","), name));
      zipped.push_back(name);
    }
    size_t multiplying = 1;  // values that each step holds besides the zipped ones
    for (const Axis& axis : steps.front())
      if (std::find(zip.begin(), zip.end(), axis.name) == zip.end()) multiplying += axis.values.size();
    if (steps.size() * length * multiplying > most_steps)
      throw Misuse(fmt::format("--zip {}: {} zipped steps times {} other values are too many; use fewer",
                               fmt::join(zip, ","), steps.size() * length, multiplying - 1));
    std::vector<std::vector<Axis>> next;
    for (const auto& step : steps)
      for (size_t place = 0; place < length; ++place) {
        auto& axes = next.emplace_back();
        for (const Axis& axis : step)
          if (std::find(zip.begin(), zip.end(), axis.name) != zip.end())
            axes.push_back({axis.name, {axis.values[place]}});
          else
            axes.push_back(axis);
      }
    steps = std::move(next);
  }
  return steps;
}

}  // namespace attnbench
