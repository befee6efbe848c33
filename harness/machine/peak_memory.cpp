#include "harness/machine/peak_memory.hpp"

#include <malloc.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace attnbench {

namespace {

// The value of a line of /proc/self/status, such as "VmHWM:   2040 kB", in bytes.
std::optional<double> status_bytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (double kilobytes = 0; word == name + ":" && status >> kilobytes) return 1024 * kilobytes;
  return std::nullopt;
}

// Resets the peak to the memory that is resident now.
bool set_peak_back() {
  std::ofstream clear("/proc/self/clear_refs");
  clear << "5" << std::flush;
  return clear.good();
}

}  // namespace

std::optional<double> peak_bytes(const std::function<void()>& call) {
  malloc_trim(0);  // otherwise the call reuses freed memory that is still resident
  if (!set_peak_back()) return std::nullopt;
  const auto before = status_bytes("VmRSS");
  call();
  const auto peak = status_bytes("VmHWM");
  if (!before || !peak) return std::nullopt;
  return std::max(0.0, *peak - *before);
}

double allocated_bytes() {
  const auto now = mallinfo2();
  return static_cast<double>(now.uordblks) + static_cast<double>(now.hblkhd);
}

}  // namespace attnbench
