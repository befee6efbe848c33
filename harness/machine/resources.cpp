#include "harness/machine/resources.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

#include "harness/machine/system_files.hpp"

namespace attnbench {

namespace {

// The number at the start of the text; nullopt for "max" and for empty text.
std::optional<double> number(const std::string& text) {
  std::istringstream stream(text);
  double value;
  return stream >> value ? std::optional(value) : std::nullopt;
}

std::optional<double> memory_entry(std::string_view name) {
  const auto kibibytes = number(line_after("/proc/meminfo", name));
  return kibibytes ? std::optional(*kibibytes * 1024) : std::nullopt;
}

// The files in which one version of control groups keeps its numbers. controller: its name in /proc/self/cgroup.
struct MemoryGroups {
  std::string controller;
  std::filesystem::path mount;
  std::string limit, used, reclaimable;
};

const std::array<MemoryGroups, 2> generations = {
    {{"", "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"},
     {"memory", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"}}};

// Path of this process's group. Lines read "number:controller:/path"; the second version has no controller.
std::optional<std::filesystem::path> own_group(const MemoryGroups& groups) {
  const std::string before_path = fmt::format(":{}:", groups.controller);
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);)
    if (const size_t colon = line.find(':'); colon != std::string::npos)
      if (line.compare(colon, before_path.size(), before_path) == 0) return line.substr(colon + before_path.size());
  return std::nullopt;
}

// A group's limit holds for all groups below it, so the least remainder on the way to the root counts. Skips folders
// that a container does not see. Cached file pages count as used, but the kernel gives them back when memory is short.
// when_empty: computes the remainder as if nothing were used.
double left_in_groups(const MemoryGroups& groups, bool when_empty = false) {
  double least = std::numeric_limits<double>::infinity();
  const auto group = own_group(groups);
  if (!group) return least;
  for (std::filesystem::path path = *group;; path = path.parent_path()) {
    const std::filesystem::path folder = groups.mount / path.relative_path();
    const auto limit = number(first_line(folder / groups.limit));
    const auto used = when_empty ? 0.0 : number(first_line(folder / groups.used));
    const double cached = number(line_after(folder / "memory.stat", groups.reclaimable)).value_or(0);
    if (limit && used) least = std::min(least, std::max(0.0, *limit - std::max(0.0, *used - cached)));
    if (path == path.parent_path()) return least;
  }
}

}  // namespace

double available_memory() {
  double available = memory_entry("MemAvailable:").value_or(std::numeric_limits<double>::infinity());
  for (const MemoryGroups& groups : generations) available = std::min(available, left_in_groups(groups));
  return available;
}

double total_memory() {
  double total = memory_entry("MemTotal:").value_or(std::numeric_limits<double>::infinity());
  for (const MemoryGroups& groups : generations) total = std::min(total, left_in_groups(groups, true));
  return total;
}

namespace {
int cores_of_affinity() {
  // The kernel refuses a set smaller than its own, which exceeds cpu_set_t's 1024 on the largest machines.
  for (size_t cores = CPU_SETSIZE; cores <= (size_t{1} << 20); cores *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(cores), [](cpu_set_t* s) { CPU_FREE(s); });
    const size_t bytes = CPU_ALLOC_SIZE(cores);
    CPU_ZERO_S(bytes, set.get());
    if (sched_getaffinity(0, bytes, set.get()) == 0) return std::max(1, CPU_COUNT_S(bytes, set.get()));
  }
  return std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
}
}  // namespace

int allowed_cores() {
  const int cores = cores_of_affinity();
  const char* variable = std::getenv("SLURM_CPUS_PER_TASK");
  const std::string granted = variable ? variable : "";
  int slurm = 0;
  const auto [end, error] = std::from_chars(granted.data(), granted.data() + granted.size(), slurm);
  return error == std::errc() && end == granted.data() + granted.size() && slurm >= 1 ? std::min(cores, slurm) : cores;
}

}  // namespace attnbench
