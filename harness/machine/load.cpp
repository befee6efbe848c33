#include "harness/machine/load.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <numeric>
#include <sstream>
#include <thread>

#include "harness/machine/interrupts.hpp"

namespace attnbench {

namespace {

using Clock = std::chrono::steady_clock;

std::vector<int> own_cores() {
  std::vector<int> cores;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0)
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &set)) cores.push_back(core);
  return cores;
}

void set_cores(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(core, &set);
  sched_setaffinity(0, sizeof(set), &set);
}

struct Ticks {
  // Stolen: other virtual machines on the host had the processor; busy includes it.
  double busy = 0, all = 0, stolen = 0;
};

// Counted since the machine started, by core: "cpu0 user nice system idle iowait irq softirq steal ...".
std::map<int, Ticks> ticks() {
  std::map<int, Ticks> cores;
  std::ifstream stat("/proc/stat");
  for (std::string line; std::getline(stat, line) && line.starts_with("cpu");) {
    std::istringstream words(line.substr(3));
    int core = 0;
    if (line[3] == ' ' || !(words >> core)) continue;
    Ticks& one = cores[core];
    double value = 0;
    for (int column = 0; column < 8 && words >> value; ++column) {
      one.all += value;
      if (column != 3 && column != 4) one.busy += value;
      if (column == 7) one.stolen += value;
    }
  }
  return cores;
}

// The share of this time that each core was busy.
std::map<int, double> busy_for(double seconds) {
  const auto before = ticks();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  std::map<int, double> busy;
  for (const auto& [core, after] : ticks())
    if (const auto found = before.find(core); found != before.end() && after.all > found->second.all)
      busy[core] = (after.busy - found->second.busy) / (after.all - found->second.all);
  return busy;
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

// Processor seconds of this process.
double own_work() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

}  // namespace

Load load_of_others(std::optional<double> wait) {
  const auto start = Clock::now();
  const std::vector<int> own = own_cores();
  for (;;) {
    auto busy = busy_for(wait ? 0.5 : 0.25);  // the kernel counts in hundredths of a second
    Load load{.quietest = own};
    for (const int core : own) load.cores += busy[core];
    // Among equals prefer the last core: the kernel puts its own work on the first ones.
    std::stable_sort(load.quietest.begin(), load.quietest.end(),
                     [&](int a, int b) { return std::pair(busy[a], -a) < std::pair(busy[b], -b); });
    if (!wait || load.cores < 0.1 || Interrupts::asked()) return load;
    load.quiet = false;
    if (std::chrono::duration<double>(Clock::now() - start).count() > *wait) return load;
  }
}

double OthersWork::cores(double from, double to) const {
  if (readings_.size() < 2) return 0;
  const double begin = readings_.begin()->first, end = readings_.rbegin()->first;
  const double wider = std::max(0.0, least_seconds - (to - from)) / 2;
  from -= wider;
  to += wider;
  if (from < begin) to += begin - from;
  if (to > end) from -= to - end;
  auto first = readings_.upper_bound(from), last = readings_.lower_bound(to);
  if (first != readings_.begin()) --first;
  if (last == readings_.end()) --last;
  if (first == last) --first;  // both are the last reading
  return std::max(0.0, (last->second - first->second) / (last->first - first->first));
}

bool disturbs(double cores) { return cores >= 0.25; }

std::optional<double> work_of_others(const std::vector<int>& all, const std::vector<int>& measured) {
  const auto is_measured = [&](int core) {
    return std::find(measured.begin(), measured.end(), core) != measured.end();
  };
  if (measured.empty() || std::all_of(all.begin(), all.end(), is_measured)) return std::nullopt;
  const auto of_cores = ticks();
  double sum = 0;
  for (const int core : all)
    if (const auto found = of_cores.find(core); found != of_cores.end())
      sum += is_measured(core) ? found->second.stolen : found->second.busy;
  return sum / static_cast<double>(sysconf(_SC_CLK_TCK)) - own_work();
}

KeptOff::KeptOff(const std::vector<int>& cores) : before_(own_cores()) {
  std::vector<int> left;
  for (const int core : before_)
    if (std::find(cores.begin(), cores.end(), core) == cores.end()) left.push_back(core);
  if (!left.empty()) set_cores(left);
}

KeptOff::~KeptOff() {
  if (!before_.empty()) set_cores(before_);
}

}  // namespace attnbench
