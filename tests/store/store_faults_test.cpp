// Dangers to a results file: kills, a full disk, a folder that cannot be written, two runs at once. The tests drive the
// real program; it must lose nothing, do nothing twice and leave nothing half written.
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <functional>
#include <thread>
#include <vector>

#include "harness/random/streams.hpp"
#include "harness/store/database.hpp"
#include "harness/store/store.hpp"
#include "harness/store/verify.hpp"
#include "tests/catch.hpp"
#include "tests/misuse.hpp"
#include "tests/store/results_file.hpp"

namespace attnbench::store_faults_test {
namespace fs = std::filesystem;

namespace {

using Words = std::vector<std::string>;

// Starts the program; what it says goes to the file.
pid_t start(Words words, const fs::path& said = "/dev/null") {
  words.insert(words.begin(), ATTNBENCH_PROGRAM);
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, said.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = 0;
  REQUIRE(posix_spawn(&child, ATTNBENCH_PROGRAM, &actions, nullptr, arguments.data(), environ) == 0);
  posix_spawn_file_actions_destroy(&actions);
  return child;
}

int exit_code(pid_t child) {
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// 36 replicates of 10 KB.
Words sweep(const fs::path& results) {
  return {"run",          "kernel-error:draws=256,pairs=3",
          "--method",     "performer",
          "--sweep",      "m=4,8,12,16,20,24",
          "-d",           "8",
          "-n",           "16",
          "--replicates", "6",
          "--results",    results.string()};
}

std::string exported(const fs::path& path) { return csv(Store::open_existing(path)); }

const std::string& rows_of_sweep() {
  static const std::string rows = [] {
    const Folder folder;
    REQUIRE(exit_code(start(sweep(folder / "whole.db"))) == 0);
    return exported(folder / "whole.db");
  }();
  return rows;
}

// Problems of a copy, with the logs that lie beside the file: looking at the file itself would take its log over.
std::vector<std::string> problems_of_copy(const fs::path& path, const fs::path& copy) {
  for (const char* suffix : {"", "-wal", "-journal"}) {
    fs::remove(copy.string() + suffix);
    if (fs::exists(path.string() + suffix)) fs::copy(path.string() + suffix, copy.string() + suffix);
  }
  return verify(copy).problems;
}

// A moment within `seconds`, drawn from a stream of that name. Other work of the machine may begin or end after those
// were measured: too_late() and too_early() move the moments that follow.
class MomentsToKill {
 public:
  MomentsToKill(const char* name, double seconds) : generator_(Streams(7).stream("faults", name)), seconds_(seconds) {}
  void wait() {
    std::this_thread::sleep_for(
        std::chrono::duration<double>(seconds_ * static_cast<double>(generator_() >> 11) * 0x1p-53));
  }
  void too_late() { seconds_ *= 0.9; }
  void too_early() { seconds_ *= 1.1; }

 private:
  Generator generator_;
  double seconds_;
};

double seconds_of(const std::function<void()>& action) {
  const auto begin = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Becomes root of namespaces of this process and its children, where a user may mount.
bool enter_own_namespaces() {
  const auto user = getuid();
  const auto group = getgid();
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  std::ofstream("/proc/self/setgroups") << "deny";
  std::ofstream("/proc/self/uid_map") << fmt::format("0 {} 1", user);
  std::ofstream("/proc/self/gid_map") << fmt::format("0 {} 1", group);
  return getuid() == 0;
}

// A small disk in memory, for as long as it lives. Root mounts it, and other users in namespaces of their own.
class SmallDisk {
 public:
  SmallDisk(const fs::path& path, const char* size) : path_(path) {
    fs::create_directories(path);
    const auto mounted = [&] { return mount("tmpfs", path.c_str(), "tmpfs", 0, size) == 0; };
    if (mounted() || (enter_own_namespaces() && mounted())) return;
    FAIL("a small disk cannot be mounted (" << std::strerror(errno)
                                            << "): run this test as root, or allow user namespaces");
  }
  ~SmallDisk() { umount2(path_.c_str(), MNT_DETACH); }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  void remount(unsigned long flags, const char* size) const {
    REQUIRE(mount("tmpfs", path_.c_str(), "tmpfs", MS_REMOUNT | flags, size) == 0);
  }

 private:
  fs::path path_;
};

}  // namespace

TEST_CASE("a run that is killed while it makes the tables leaves a file that the next run begins anew", "[unit]") {
  const Folder folder;
  // The header of a journal: no page to restore, and a database of 0 pages before.
  // https://sqlite.org/fileformat.html, 3.
  std::string journal("\xd9\xd5\x05\xf9\x20\xa1\x63\xd7", 8);
  for (const unsigned number : {0u, 1u, 0u, 512u, 4096u})  // pages, nonce, pages before, sector, size of a page
    for (const int shift : {24, 16, 8, 0}) journal += static_cast<char>(number >> shift & 0xff);
  journal.resize(512, '\0');
  const auto killed = [&](const char* name) {
    const fs::path path = folder / name;
    open_for_writing(path);  // the tables, without a log
    std::ofstream(path.string() + "-journal", std::ios::binary) << journal;
    return path;
  };
  const fs::path again = killed("again.db");
  {
    Store store(again);
    store.begin_run("attnbench run", "{}");
  }
  CHECK(verify(again).problems.empty());
  const fs::path read = killed("read.db");
  CHECK_THAT(misuse_of([&] { Store::open_existing(read); }),
             Catch::Contains("a run was killed before it recorded anything"));
}

// 50 kills at moments drawn evenly from the time that a whole run takes; a run that ends before its moment is compared
// and started over. A wrong resume shows in the exported rows, a torn file in what verify says.
TEST_CASE("a run that is killed at 50 random moments and started again gives the rows of an uninterrupted one",
          "[end-to-end]") {
  const Folder folder;
  const fs::path killed = folder / "killed.db";
  const std::string& whole = rows_of_sweep();
  const double seconds = seconds_of([&] { exit_code(start(sweep(folder / "timed.db"))); });
  MomentsToKill moments("runner", seconds);
  int midway = 0;
  for (int kills = 0; kills < 50 || midway == 0;) {
    const pid_t child = start(sweep(killed));
    moments.wait();
    kill(child, SIGKILL);
    if (const int code = exit_code(child); code >= 0) {  // it had ended
      REQUIRE(code == 0);
      CHECK(exported(killed) == whole);
      fs::remove(killed);
      moments.too_late();
      continue;
    }
    ++kills;
    if (midway == 0) moments.too_early();
    if (!fs::exists(killed) || fs::file_size(killed) == 0) continue;
    if (fs::exists(killed.string() + "-journal")) continue;  // killed while it was made: there is nothing in it yet
    CHECK(problems_of_copy(killed, folder / "copy.db") == std::vector<std::string>{});
    const Index recorded = verify(folder / "copy.db").replicates;
    midway += 0 < recorded && recorded < 36;
  }
  REQUIRE(exit_code(start(sweep(killed))) == 0);
  CHECK(exported(killed) == whole);
  CHECK(verify(killed).problems.empty());
}

// 5 times two runs that start together.
TEST_CASE("two runs on one file both finish, and nothing is lost", "[end-to-end]") {
  const Folder folder;
  for (int round = 0; round < 5; ++round) {
    const fs::path path = folder / fmt::format("{}.db", round);
    const pid_t one = start(sweep(path)), two = start(sweep(path));
    CHECK(exit_code(one) == 0);
    CHECK(exit_code(two) == 0);
    CHECK(exported(path) == rows_of_sweep());
    CHECK(verify(path).problems.empty());
  }
}

// 20 kills of a merge into a file that exists and 20 of one into a new file.
TEST_CASE("a merge that is killed leaves all of it or nothing", "[end-to-end]") {
  const Folder folder;
  constexpr Index replicates = 3000;
  for (const char* name : {"a.db", "b.db"}) {
    Store store(folder / name);
    const auto run = store.begin_run(name, "{}");
    for (Index i = 0; i < replicates; ++i) store.record(run, cell(name), i, {}, 1, {scalar("error", 1)});
  }
  const fs::path out = folder / "out.db", kept = folder / "kept.db";
  fs::copy(folder / "a.db", kept);
  const auto merge = [&] { return start({"merge", out.string(), (folder / "a.db"), (folder / "b.db")}); };
  MomentsToKill moments("merge", seconds_of([&] { exit_code(merge()); }));
  int not_merged = 0;
  for (int attempt = 0; attempt < 40 || not_merged == 0; ++attempt) {
    const bool exists = attempt % 2 == 0;
    for (const char* suffix : {"", "-wal", "-shm", "-journal"})
      fs::remove(out.string() + suffix);  // a log of another file
    if (exists) fs::copy(kept, out);
    const pid_t child = merge();
    moments.wait();
    kill(child, SIGKILL);
    exit_code(child);
    if (!fs::exists(out)) {
      CHECK_FALSE(exists);
      ++not_merged;
      continue;
    }
    CHECK(problems_of_copy(out, folder / "copy.db") == std::vector<std::string>{});
    const Index found = verify(folder / "copy.db").replicates;
    CHECK((found == 2 * replicates || (exists && found == replicates)));
    not_merged += found == replicates;
    if (not_merged == 0) moments.too_late();
  }
  REQUIRE(exit_code(merge()) == 0);
  CHECK(verify(out).replicates == 2 * replicates);
}

TEST_CASE("a full disk is said, loses no replicate that was recorded, and the run goes on when there is room",
          "[end-to-end]") {
  const Folder folder;
  const SmallDisk disk(folder / "disk", "size=300k");
  const fs::path path = folder / "disk/results.db", said = folder / "said";
  CHECK(exit_code(start(sweep(path), said)) == 2);
  INFO(bytes_of(said));
  CHECK(bytes_of(said).find("is full") != std::string::npos);
  CHECK(problems_of_copy(path, folder / "copy.db") == std::vector<std::string>{});
  const Index recorded = verify(folder / "copy.db").replicates;
  CHECK(recorded > 0);
  CHECK(recorded < 36);
  disk.remount(0, "size=64m");
  REQUIRE(exit_code(start(sweep(path), said)) == 0);
  CHECK(bytes_of(said).find(fmt::format("{} were there already", recorded)) != std::string::npos);
  CHECK(exported(path) == rows_of_sweep());
  CHECK(verify(path).problems.empty());
}

TEST_CASE("a folder that cannot be written is said, and what is in it can be read", "[end-to-end]") {
  const Folder folder;
  const SmallDisk disk(folder / "disk", "size=64m");  // permissions do not keep root from writing
  const fs::path path = folder / "disk/results.db", said = folder / "said";
  REQUIRE(exit_code(start(sweep(path))) == 0);
  disk.remount(MS_RDONLY, "size=64m");
  const std::string before = bytes_of(path);
  for (const fs::path& results : {path, fs::path(folder / "disk/new.db"), fs::path(folder / "disk/new/results.db")}) {
    CHECK(exit_code(start(sweep(results), said)) == 2);
    INFO(bytes_of(said));
    CHECK(bytes_of(said).find(results == path ? "cannot be written" : "cannot") != std::string::npos);
    CHECK(bytes_of(said).find("expected") != std::string::npos);
  }
  CHECK(exit_code(start({"export", path.string(), "--arrays"}, said)) == 0);
  CHECK(bytes_of(said) == rows_of_sweep());
  CHECK(exit_code(start({"verify", path.string()})) == 0);
  CHECK(exit_code(start({"merge", (folder / "all.db"), path.string()})) == 0);
  CHECK(exported(folder / "all.db") == rows_of_sweep());
  CHECK(bytes_of(path) == before);
}

}  // namespace attnbench::store_faults_test
