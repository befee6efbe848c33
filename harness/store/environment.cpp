#include "harness/store/environment.hpp"

#include <SQLiteCpp/SQLiteCpp.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <sqlite3.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <boost/process.hpp>
#include <boost/version.hpp>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>

#include "harness/machine/instruction_level.hpp"
#include "harness/machine/resources.hpp"
#include "harness/machine/system_files.hpp"
#include "harness/random/streams.hpp"
#include "harness/store/build_facts.hpp"
#include "harness/store/source_version.hpp"

namespace attnbench {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

json caches() {
  json found = json::object();
  std::error_code none;
  for (const auto& cache : fs::directory_iterator("/sys/devices/system/cpu/cpu0/cache", none)) {
    const std::string level = first_line(cache.path() / "level"), type = first_line(cache.path() / "type"),
                      size = first_line(cache.path() / "size");
    if (!level.empty() && !size.empty()) found[fmt::format("L{} {}", level, type)] = size;
  }
  return found;
}

json processor() {
  json facts;
  facts["model"] = line_after("/proc/cpuinfo", "model name");
  facts["governor"] = first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  facts["caches"] = caches();
  facts["cores_online"] = sysconf(_SC_NPROCESSORS_ONLN);
  facts["cores_allowed"] = allowed_cores();
  return facts;
}

json memory() {
  json facts;
  const std::string kibibytes = line_after("/proc/meminfo", "MemTotal:");
  if (const auto total = std::strtoll(kibibytes.c_str(), nullptr, 10)) facts["total_bytes"] = 1024 * total;
  if (const double available = available_memory(); std::isfinite(available))
    facts["available_bytes"] = std::llround(available);
  return facts;
}

json libraries() {
  return {
      {"Eigen", fmt::format("{}.{}.{}", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION)},
      {"Boost", BOOST_LIB_VERSION},
      {"SQLite", sqlite3_libversion()},
      {"SQLiteCpp", SQLITECPP_VERSION},
      {"fmt", fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100)},
      {"nlohmann-json",
       fmt::format("{}.{}.{}", NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH)},
      {"glibc", gnu_get_libc_version()},
  };
}

// Variables that decide the number of threads and the kernels of the libraries. OPENBLAS_CORETYPE alone changes speed
// by 5x.
json library_variables() {
  json set = json::object();
  for (const char* name : {"OMP_NUM_THREADS", "OMP_PROC_BIND", "OMP_PLACES", "OPENBLAS_NUM_THREADS",
                           "OPENBLAS_CORETYPE", "MKL_NUM_THREADS"})
    if (const char* value = std::getenv(name)) set[name] = value;
  return set;
}

// The interpreter and the versions of the packages that influence numbers.
json python_facts(const std::string& python) {
  namespace process = boost::process;
  if (python.empty()) return {};
  json facts = {{"executable", python}};
  constexpr const char* script = R"python(
import importlib.metadata as packages, json, platform
facts = {"version": platform.python_version()}
for name in ("numpy", "torch"):
    try:
        facts[name] = packages.version(name)
    except packages.PackageNotFoundError:
        pass
print(json.dumps(facts)))python";
  std::error_code none;
  process::ipstream answer;
  process::child child(python, process::args = {"-c", script}, process::std_out > answer,
                       process::std_err > process::null, process::std_in < process::null, none);
  std::string line;
  if (!none && std::getline(answer, line))
    if (const json said = json::parse(line, nullptr, false); said.is_object()) facts.update(said);
  child.wait(none);
  return facts;
}

json host() {
  json facts;
  if (utsname system; uname(&system) == 0) {
    facts["name"] = system.nodename;
    facts["system"] = fmt::format("{} {} {}", system.sysname, system.release, system.machine);
  }
  std::string distribution = line_after("/etc/os-release", "PRETTY_NAME=");
  std::erase(distribution, '"');
  facts["distribution"] = distribution;
  return facts;
}

// The linker's hash of all that is in the library (--build-id), in hexadecimal. Hashing the file itself took more than
// half of a short run.
std::string linked_id() {
  Dl_info library;
  if (dladdr(reinterpret_cast<const void*>(&linked_id), &library) == 0) return {};
  const auto* base = static_cast<const char*>(library.dli_fbase);
  const auto* file = static_cast<const ElfW(Ehdr)*>(library.dli_fbase);
  const auto* segments = reinterpret_cast<const ElfW(Phdr)*>(base + file->e_phoff);
  const auto padded = [](size_t size) { return (size + 3) / 4 * 4; };
  for (const auto& segment : std::span(segments, file->e_phnum)) {
    if (segment.p_type != PT_NOTE) continue;
    std::string_view notes(base + segment.p_vaddr, segment.p_memsz);
    for (ElfW(Nhdr) note; notes.size() >= sizeof note;) {
      std::memcpy(&note, notes.data(), sizeof note);
      notes.remove_prefix(sizeof note);
      const size_t end_of_name = std::min(padded(note.n_namesz), notes.size());
      if (note.n_type == NT_GNU_BUILD_ID && notes.starts_with("GNU")) {
        std::string id;
        for (const char byte : notes.substr(end_of_name, note.n_descsz))
          id += fmt::format("{:02x}", static_cast<unsigned char>(byte));
        return id;
      }
      notes.remove_prefix(std::min(end_of_name + padded(note.n_descsz), notes.size()));
    }
  }
  return {};
}

json build() {
  const BuildFacts& known = build_facts();
  json facts = {{"compiler", known.compiler},
                {"flags", known.flags},
                {"type", known.build_type},
                {"instructions", instruction_level()}};
  if (!known.commit.empty()) {
    facts["commit"] = known.commit;
    facts["clean"] = known.clean;
  }
  facts["binary"] = linked_id();  // of the whole program except main
  return facts;
}

// Drops empty fields: facts that the system did not give.
json known_only(const json& facts) {
  json known = json::object();
  for (const auto& [name, value] : facts.items()) {
    const json kept = value.is_object() ? known_only(value) : value;
    const bool blank = kept.is_null() || (kept.is_object() && kept.empty()) ||
                       (kept.is_string() && kept.get_ref<const std::string&>().empty());
    if (!blank) known[name] = kept;
  }
  return known;
}

}  // namespace

std::string environment_json(const std::string& python) {
  json environment = {{"build", build()},
                      {"processor", processor()},
                      {"memory", memory()},
                      {"libraries", libraries()},
                      {"host", host()},
                      {"variables", library_variables()},
                      {"python", python_facts(python)}};
  if (std::array<double, 3> load; getloadavg(load.data(), 3) == 3) environment["load_average"] = load;
  return known_only(environment).dump(-1, ' ', false, json::error_handler_t::replace);
}

namespace {
// The host, its processor, its cores, as far as they are known, and the instructions that this build uses.
std::string machine_of(const json& environment) {
  std::string name;
  for (const char* fact : {"/host/name", "/processor/model", "/processor/cores_online", "/build/instructions"}) {
    const json::json_pointer place(fact);
    if (!environment.contains(place)) continue;
    const json& value = environment[place];
    name += (name.empty() ? "" : ", ") + (value.is_string() ? value.get<std::string>() : value.dump() + " cores");
  }
  return name;
}
}  // namespace

const std::string& this_machine() {
  static const std::string name = machine_of(
      known_only({{"host", host()}, {"processor", processor()}, {"build", {{"instructions", instruction_level()}}}}));
  return name;
}

std::string source_version(const std::vector<std::string>& files, const std::vector<std::string>& alone) {
  // The cells of a sweep share a few lists of files, and hashing one takes longer than looking up a cell.
  static std::mutex mutex;
  static std::map<std::vector<std::string>, std::string> known;
  auto key = files;
  key.push_back("alone");
  key.insert(key.end(), alone.begin(), alone.end());
  for (const std::string& file : files)  // in a notebook the process lives on while its plugin is rewritten
    if (std::error_code gone; file.ends_with(".py"))
      key.push_back(std::to_string(fs::last_write_time(file, gone).time_since_epoch().count()));
  const std::lock_guard lock(mutex);
  std::string& version = known[std::move(key)];
  if (version.empty()) version = source_version(sources(), files, alone);
  return version;
}

}  // namespace attnbench
