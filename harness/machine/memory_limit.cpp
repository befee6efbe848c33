#include "harness/machine/memory_limit.hpp"

#include <fmt/format.h>

#include "harness/errors/error.hpp"
#include "harness/machine/resources.hpp"

namespace attnbench {

std::string memory_size(double bytes) {
  int unit = 0;
  constexpr const char* units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  constexpr int largest = static_cast<int>(std::size(units)) - 1;
  for (; bytes >= 999.5 && unit < largest; ++unit) bytes /= 1000;
  return fmt::format("{:.3g} {}", bytes, units[unit]);
}

void refuse_beyond_memory(double bytes, const std::string& what, const std::string& remedy) {
  constexpr double always_granted = 16e6;  // to ask the system takes as long as a small cell
  if (bytes <= always_granted) return;
  const double available = available_memory();
  if (bytes > available)
    throw Misuse(fmt::format("{} would take {} of memory and {} is available; {}", what, memory_size(bytes),
                             memory_size(available), remedy));
}

}  // namespace attnbench
