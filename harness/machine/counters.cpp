#include "harness/machine/counters.hpp"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>

namespace attnbench {

const std::vector<CountedEvent>& hardware_events() {
  static const std::vector<CountedEvent> events{{PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
                                                {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
                                                {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES}};
  return events;
}

Counters::Counters(const std::vector<CountedEvent>& events) {
  for (const CountedEvent& event : events) {
    perf_event_attr asked{};
    asked.size = sizeof asked;
    asked.type = event.type;
    asked.config = event.config;
    asked.inherit = 1;
    asked.exclude_kernel = 1;
    asked.exclude_hv = 1;
    asked.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    auto& files = files_.emplace_back();
    for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
      const int id = std::stoi(thread.path().filename());
      const long file = syscall(SYS_perf_event_open, &asked, id, -1, -1, PERF_FLAG_FD_CLOEXEC);
      if (file < 0 && errno == ESRCH) continue;  // the thread has ended
      if (file < 0) {
        available_ = false;
        return;
      }
      files.push_back(static_cast<int>(file));
    }
  }
}

Counters::~Counters() {
  for (const auto& files : files_)
    for (const int file : files) close(file);
}

std::optional<std::vector<double>> Counters::counts() const {
  if (!available_) return std::nullopt;
  std::vector<double> all;
  for (const auto& files : files_) {
    double& sum = all.emplace_back(0);
    bool ran = false;
    for (const int file : files) {
      struct {
        std::uint64_t value, enabled, running;
      } told{};
      if (read(file, &told, sizeof told) != static_cast<ssize_t>(sizeof told)) return std::nullopt;
      if (told.enabled == 0) continue;  // the thread has waited all the time
      if (told.running == 0) return std::nullopt;
      ran = true;
      sum += static_cast<double>(told.value) * static_cast<double>(told.enabled) / static_cast<double>(told.running);
    }
    if (!ran) return std::nullopt;
  }
  return all;
}

}  // namespace attnbench
