// A sweep loses one cell to a method that misbehaves, and nothing else: the real program with the methods of
// tests/faults.
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <thread>

#include "harness/random/streams.hpp"
#include "tests/catch.hpp"
#include "tests/folder.hpp"

namespace attnbench::faults_test {
namespace fs = std::filesystem;

namespace {

// All that runs in it has its temporary files there.
struct Place : Folder {
  Place() { fs::create_directory(*this / "tmp"); }
  bool nothing_left() const { return fs::is_empty(*this / "tmp"); }
};

// The program with these arguments, its output in a file of the folder.
class Program {
 public:
  Program(const Place& folder, const std::string& arguments) : output_(folder / "output") {
    const std::string command =
        fmt::format("TMPDIR='{}' exec '{}' {} > '{}' 2>&1", folder / "tmp", ATTNBENCH_FAULTY, arguments, output_);
    id_ = fork();
    REQUIRE(id_ >= 0);
    if (id_ == 0) {
      execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      _exit(127);
    }
  }

  pid_t id() const { return id_; }
  void signal(int number) const { kill(id_, number); }
  bool goes_on() {
    if (!ended_ && waitpid(id_, &status_, WNOHANG) == id_) ended_ = true;
    return !ended_;
  }
  // The exit code; of what a signal ended, its number below 0.
  int end() {
    if (!ended_) waitpid(id_, &status_, 0);
    ended_ = true;
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : -WTERMSIG(status_);
  }
  std::string text() const {
    std::ifstream file(output_);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::vector<pid_t> workers() const {
    std::vector<pid_t> all;
    std::ifstream children(fmt::format("/proc/{0}/task/{0}/children", id_));
    for (pid_t child = 0; children >> child;) all.push_back(child);
    return all;
  }

 private:
  std::string output_;
  pid_t id_ = -1;
  int status_ = 0;
  bool ended_ = false;
};

// Whether the summary of a run counts replicates that a retry would run again.
bool any_failed(const std::string& text) {
  static const std::regex failed("[0-9] not done \\([^)]*(failed|crashed|timed out|out of memory)|had failed");
  return std::regex_search(text, failed);
}

std::string run(const Place& folder, const std::string& arguments) {
  Program program(folder, arguments);
  const int code = program.end();
  INFO(arguments << "\n" << program.text());
  REQUIRE(code == (any_failed(program.text()) ? 1 : 0));
  return program.text();
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// The exported lines that the filter lets through, in their order.
template <class Filter>
std::vector<std::string> exported(const Place& folder, const std::string& results, Filter&& filter) {
  std::vector<std::string> lines;
  for (const auto& line : lines_of(run(folder, fmt::format("export {} --arrays", folder / results))))
    if (filter(line)) lines.push_back(line);
  return lines;
}

// The table has a column for each parameter of its cells, which is empty for those of other cells.
std::vector<std::string> without_empty_fields(std::vector<std::string> lines) {
  for (auto& line : lines)
    line.erase(std::unique(line.begin(), line.end(), [](char a, char b) { return a == ',' && b == ','; }), line.end());
  return lines;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// The line "method n ending reason" of a method among the cells that were not done. The table of numbers comes after.
std::string ending_of(const std::string& text, const std::string& method) {
  for (const auto& line : lines_of(text.substr(0, text.find("\n\n"))))
    if (line.starts_with(method + " ")) return line;
  return "";
}

// The columns of an exported line.
std::vector<std::string> columns(const std::string& line) {
  std::vector<std::string> all(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      all.emplace_back();
    else
      all.back() += c;
  }
  return all;
}

// Of one metric, the numbers of each cell, by "method n".
std::map<std::string, std::vector<double>> numbers(const Place& folder, const std::string& results,
                                                   const std::string& metric) {
  std::map<std::string, std::vector<double>> found;
  exported(folder, results, [&](const std::string& line) {
    const auto all = columns(line);
    if (all.at(all.size() - 4) == metric) found[all.at(1) + " " + all.at(4)].push_back(std::stod(all.back()));
    return false;
  });
  return found;
}

// Processes that keep every core busy with memory, until it is destroyed.
class Hogs {
 public:
  Hogs() {
    for (unsigned core = 0; core < std::thread::hardware_concurrency(); ++core) {
      ids_.push_back(fork());
      REQUIRE(ids_.back() >= 0);
      if (ids_.back() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        std::vector<char> memory(size_t{64} << 20);
        for (;;)
          for (volatile char& byte : memory) byte = static_cast<char>(byte + 1);
      }
    }
  }
  ~Hogs() {
    for (const pid_t id : ids_) {
      kill(id, SIGKILL);
      waitpid(id, nullptr, 0);
    }
  }

 private:
  std::vector<pid_t> ids_;
};

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// While it lives, this process inherits those whose parent dies, so that it can wait for their end, however long that
// takes on a machine that is busy, and sees what ended them.
class Heir {
 public:
  Heir() { REQUIRE(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0); }
  ~Heir() { prctl(PR_SET_CHILD_SUBREAPER, 0); }
  Heir(const Heir&) = delete;
  Heir& operator=(const Heir&) = delete;

  // Whether it was killed, or left by itself before it was given anything to do. Its parent has waited for it, or died.
  static bool ended_with_its_parent(pid_t process) {
    int status = 0;
    if (waitpid(process, &status, 0) < 0) return true;  // its parent has waited for it
    return WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0;
  }
  static bool all_ended_with_their_parent(const std::vector<pid_t>& processes) {
    return std::all_of(processes.begin(), processes.end(), ended_with_its_parent);
  }
};

const std::string healthy = "--method performer:m=8 --method linear --method uniform --method top-k:k=4";
bool is_healthy(const std::string& line) {
  for (const char* method : {"performer:m=8", "linear", "uniform", "top-k:k=4"})
    if (line.find(fmt::format(",{},", method)) != std::string::npos) return true;
  return false;
}

}  // namespace

TEST_CASE("each fault ends its own cell with its reason, and the others' rows are those of a run without it, 3 times",
          "[faults]") {
  struct Expected {
    std::string method, ending;
  };
  const std::vector<Expected> all{
      {"segfault", "crashed        SIGSEGV while measuring"},
      {"abort", "crashed        SIGABRT while measuring; its last output: a failed assertion"},
      {"throw", "failed         no such number"},
      {"throw-int", "failed         threw something that is not a std::exception"},
      {"hold:megabytes=400", "out of memory  limit 300 MB, peak "},
      {"allocate", "out of memory  "},  // seen, or refused where the runner is slower than the method
      {"allocate-at-once", "out of memory  an allocation was refused (limit 300 MB, peak "},
      {"nan", "invalid        output"},
      {"exit", "crashed        exited with code 0 while measuring"},
      {"close", "crashed        closed its connection to the runner while measuring"},
      {"stdout", ""},  // done, as the method `zero` is
      {"fork", ""},
      {"fork-and-return", ""},
      {"state", ""},
  };
  const Place folder;
  std::string faults;
  for (const auto& fault : all) faults += " --method " + fault.method;
  const std::string what = "run attention-error -n 32 -d 8";
  run(folder, fmt::format("{} {} --results {}", what, healthy, folder / "healthy.db"));
  const auto expected = without_empty_fields(exported(folder, "healthy.db", is_healthy));
  REQUIRE(expected.size() > 4);
  for (int threads = 1; threads <= 3; ++threads) {
    const std::string results = fmt::format("{}.db", threads);
    const std::string text = run(folder, fmt::format("{} {} --threads {} --memory 300MB --results {}", what,
                                                     faults + " " + healthy, threads, folder / results));
    INFO(text);
    for (const auto& [method, ending] : all) {
      const std::string line = ending_of(text, method);
      INFO(method << ": " << line);
      CHECK(line.empty() == ending.empty());
      CHECK(line.find(ending) != std::string::npos);
    }
    CHECK(without_empty_fields(exported(folder, results, is_healthy)) == expected);
    CHECK(folder.nothing_left());
  }
}

// Limits that are reached end the cell that reached them, and what reaches none is done. A unit that takes more than
// half of a worker's share of the memory is another worker's, with all threads: both kinds.
TEST_CASE("cells end at their limits of time and of memory, those that fill the memory as well", "[faults]") {
  const Place folder;
  for (const auto& [share, cell_threads] : {std::pair{"0", ",1"}, {"0.06", ",8"}}) {
    const std::string what =
        fmt::format("run company:share={} -n 16 -d 4 --replicates 8 --threads 8 --method uniform --method ", share);
    const std::string slow = "hold:seconds=5", large = "hold:megabytes=60,seconds=5";
    const auto ended = [&](const std::string& method, const std::string& limit, const std::string& results) {
      const std::string text = run(folder, fmt::format("{}{} {} --results {}", what, method, limit, folder / results));
      UNSCOPED_INFO(text);
      return ending_of(text, method);
    };
    INFO("share of the memory: " << share);
    CHECK(has(ended(slow, "--timeout 0.5", "time.db"), "timed out  limit 0.5 s, while measuring"));
    CHECK(has(ended(large, "--memory 40MB", "memory.db"), "out of memory  limit 40 MB, peak "));
    const auto threads = exported(folder, "memory.db", [&, ends = cell_threads](const std::string& line) {
      return has(line, ",uniform,") && has(line, ",cell_threads,") && line.ends_with(ends);
    });
    CHECK(threads.size() == 8);
    fs::remove(folder / "memory.db");
  }
}

// The method keeps its memory until it is killed, so that the limit is seen however seldom anybody looks.
TEST_CASE("a cell that ran out of memory is in the table and in the exit code, until --retry has run it again",
          "[faults]") {
  const Place folder;
  const auto ran = [&](const std::string& more) {
    Program program(folder,
                    fmt::format("run attention-error --methods uniform hold-if-asked -n 16 -d 4 --results {} {}",
                                folder / "r.db", more));
    const int code = program.end();
    UNSCOPED_INFO(program.text());
    return std::pair(code, program.text());
  };
  const auto table = [](const std::string& text) { return text.substr(std::min(text.find("\n\n"), text.size())); };
  setenv("ATTNBENCH_TEST_HOLD", "1", 1);
  const auto [code, text] = ran("--memory 60MB");
  unsetenv("ATTNBENCH_TEST_HOLD");
  CHECK(code == 1);
  CHECK(has(table(text), "out of memory"));
  const auto [code_after, after] = ran("");
  CHECK(code_after == 1);
  CHECK(has(after, "--retry runs them again"));
  const auto [code_retry, retried] = ran("--retry");
  CHECK(code_retry == 0);
  CHECK_FALSE(has(table(retried), "out of memory"));
}

// A worker is larger than that before it has done anything: its limit is of what a request adds. It is looked at every
// 20 ms, and so at least once in half a second of the method's own time.
TEST_CASE("the limit of memory is of what a cell takes, and not of what its worker is", "[faults]") {
  const Place folder;
  const std::string text =
      run(folder, fmt::format("run company --method hold:megabytes=1,seconds=0.5 -n 16 -d 4 --threads 1 --memory 8MB "
                              "--results {}",
                              folder / "r.db"));
  INFO(text);
  CHECK(ending_of(text, "hold:megabytes=1,seconds=0.5").empty());
  CHECK(exported(folder, "r.db", [](const std::string& line) { return has(line, ",cell_threads,"); }).size() == 1);
}

TEST_CASE("a number that is none, at any place of an array, makes its cell invalid and leaves no row of it",
          "[faults]") {
  const Place folder;
  const std::string text = run(folder, fmt::format("run nan-in-an-array --method uniform --sweep place=0,3,7,8 -n 16 "
                                                   "-d 4 --threads 1 --results {}",
                                                   folder / "r.db"));
  INFO(text);
  for (const char* place : {"", ":place=3", ":place=7", ":place=8"}) {
    const auto rows = exported(folder, "r.db", [&](const std::string& line) {
      return line.starts_with(fmt::format("nan-in-an-array{},", place));
    });
    INFO("place" << place);
    const bool whole = place == std::string(":place=8");
    REQUIRE(rows.size() == (whole ? 9 : 1));
    if (!whole) CHECK(has(rows[0], ",invalid,numbers is not a number"));
  }
}

// An audit measures each replicate in a worker of its own, where `counts` has seen no call before.
TEST_CASE("an audit finds numbers that depend on what ran before, and changes nothing", "[faults]") {
  const Place folder;
  const auto attnbench = [&](const std::string& arguments, int code) {
    Program program(folder, arguments);
    const int ended = program.end();
    INFO(arguments << "\n" << program.text());
    CHECK(ended == code);
    return program.text();
  };
  const std::string experiment = "attention-error:by_row=false";
  const auto what = [&](const std::string& methods) {
    return fmt::format("run {} {} -n 16 -d 4 --replicates 3 --threads 1 --results {}", experiment, methods,
                       folder / "r.db");
  };
  const std::string both = "--method uniform --method performer:m=8 --method counts";
  attnbench(what(both), 0);
  const auto any = [](const std::string&) { return true; };
  const auto before = exported(folder, "r.db", any);
  const std::string equal = attnbench(what("--method uniform --method performer:m=8") + " --audit", 0);
  CHECK(equal == fmt::format("6 replicates of 2 cells measured again, each in a new worker: equal, bit for bit; {}\n",
                             folder / "r.db"));
  const std::string found = attnbench(what(both) + " --audit", 1);
  INFO(found);
  size_t lines = 0;
  for (const auto& line : lines_of(found))
    if (has(line, " 16  gaussian ")) {
      CHECK(line.starts_with("counts "));
      CHECK(has(line, "(the first of "));
      ++lines;
    }
  CHECK(lines >= 2);  // of metrics: the output's errors
  CHECK_FALSE(has(found, "performer"));
  CHECK(has(found, "relative_output_error"));
  CHECK(has(found, "9 replicates of 3 cells measured again, each in a new worker: some differ; "));
  CHECK(exported(folder, "r.db", any) == before);

  attnbench(what("--method drifts"), 0);
  CHECK(has(attnbench(what("--method drifts") + " --audit", 1), "relative_output_error"));

  // Of a request that the file has in part: a failed cell, and a replicate more.
  attnbench(what("--method throw"), 1);
  const std::string part = attnbench(
      fmt::format("run {} --method throw --method uniform -n 16 -d 4 --replicates 4 --threads 1 --results {} --audit",
                  experiment, folder / "r.db"),
      0);
  CHECK(has(part, "3 replicates of 1 cells measured again, each in a new worker: equal, bit for bit"));
  CHECK(has(part, "; 5 replicates of the request are not done there"));
  CHECK(has(attnbench(what("--method uniform") + " --shard 1/3 --audit", 0), "1 replicates of 1 cells"));

  CHECK(has(attnbench(what("--method linear") + " --audit", 2), "has no replicate of this request that is done"));
  CHECK(has(attnbench(what("--method uniform") + " --audit --retry", 2), "keep one"));
  CHECK(has(attnbench(fmt::format("run speed --method uniform -n 16 --results {} --audit", folder / "r.db"), 2),
            "speed measures time"));
  CHECK(has(attnbench(fmt::format("run attention-error --method uniform --results {} --audit", folder / "none.db"), 2),
            "none.db"));
  CHECK_FALSE(fs::exists(folder / "none.db"));
}

TEST_CASE("a worker that is killed, 20 times at random, costs the one cell that it was at", "[faults]") {
  const Place folder;
  const std::string what =
      "run kernel-error:draws=128,pairs=3 --method performer --sweep m=4:40:+4 -d 8 -n 16 --replicates 10 --threads 2";
  run(folder, fmt::format("{} --results {}", what, folder / "whole.db"));
  const auto any = [](const std::string&) { return true; };
  const auto done = [](const std::string& line) { return line.find(",done,") != std::string::npos; };
  auto whole = exported(folder, "whole.db", done);
  std::sort(whole.begin(), whole.end());
  Generator generator = Streams(11).stream("kills");
  size_t kills = 0, all_crashed = 0;
  for (int round = 0; kills < 20 || all_crashed == 0; ++round) {
    const std::string results = fmt::format("{}.db", round);
    Program program(folder, fmt::format("{} --results {}", what, folder / results));
    const size_t before = kills;
    while ((kills < 20 || all_crashed == 0) && program.goes_on()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(generator() % 20));
      if (const auto workers = program.workers(); !workers.empty())
        kills += kill(workers[generator() % workers.size()], SIGKILL) == 0;
    }
    INFO(program.text());
    const int code = program.end();
    auto rows = exported(folder, results, done);
    std::sort(rows.begin(), rows.end());
    CHECK(std::includes(whole.begin(), whole.end(), rows.begin(), rows.end()));
    const auto crashed = exported(folder, results, [](const std::string& line) {
      return line.find(",crashed,SIGKILL while ") != std::string::npos;
    });
    CHECK(crashed.size() <= kills - before);  // a worker may have been killed while it had no cell
    REQUIRE(code == (crashed.empty() ? 0 : 1));
    all_crashed += crashed.size();
    CHECK(exported(folder, results, any).size() == 1 + rows.size() + crashed.size());
  }
}

TEST_CASE("Ctrl-C, 10 times, then resuming gives the rows of a run that was left alone", "[faults]") {
  const Place folder;
  const std::string what =
      "run kernel-error:draws=256,pairs=3 --method performer --sweep m=4:40:+4 -d 8 -n 16 --replicates 15 --threads 2";
  run(folder, fmt::format("{} --results {}", what, folder / "whole.db"));
  const Heir heir;
  int interrupted = 0;
  for (int attempt = 0; attempt < 10 || interrupted == 0; ++attempt) {
    Program program(folder, fmt::format("{} --results {}", what, folder / "resumed.db"));
    std::vector<pid_t> workers;
    while (workers.empty() && program.goes_on()) workers = program.workers();
    std::this_thread::sleep_for(std::chrono::milliseconds(13 * (attempt % 10)));
    program.signal(attempt % 2 == 0 ? SIGINT : SIGTERM);
    const int code = program.end();
    INFO(program.text());
    if (code == 130) {
      ++interrupted;
      CHECK(program.text().find("interrupted") != std::string::npos);
      CHECK(folder.nothing_left());
    } else {
      CHECK((code == -SIGINT || code == -SIGTERM || code == 0));  // behind the end of the run
    }
    CHECK(heir.all_ended_with_their_parent(workers));
    if (code == 0 && interrupted == 0) fs::remove(folder / "resumed.db");  // complete: nothing is left to interrupt
  }
  run(folder, fmt::format("{} --results {}", what, folder / "resumed.db"));
  const auto all = [](const std::string&) { return true; };
  CHECK(exported(folder, "resumed.db", all) == exported(folder, "whole.db", all));
}

TEST_CASE("a runner that is killed leaves no worker", "[faults]") {
  const Place folder;
  const Heir heir;
  for (int repetition = 0; repetition < 3; ++repetition) {
    Program program(folder,
                    fmt::format("run attention-error --method hold --method hold:seconds=21 -n 16 -d 4 --threads 2 "
                                "--results {}",
                                folder / "r.db"));
    std::vector<pid_t> workers;
    while (workers.size() < 2 && program.goes_on()) workers = program.workers();
    program.signal(SIGKILL);
    CHECK(program.end() == -SIGKILL);
    CHECK(workers.size() == 2);
    CHECK(heir.all_ended_with_their_parent(workers));
  }
}

TEST_CASE("a method that dies among its turns loses its curve, and the others have all of theirs", "[faults]") {
  const Place folder;
  const std::string text =
      run(folder, fmt::format("run speed:blocks=4,turn=0.01 --method uniform --method segfault:calls=5 --method zero "
                              "-n 16 -d 4 --threads 1 --results {}",
                              folder / "r.db"));
  INFO(text);
  CHECK(ending_of(text, "segfault:calls=5").find("crashed  SIGSEGV while taking a turn") != std::string::npos);
  for (const char* metric : {"seconds", "speedup", "disturbed"})
    for (const char* method : {"uniform", "zero"}) {
      const auto rows = exported(folder, "r.db", [&](const std::string& line) {
        return line.find(fmt::format(",{},", method)) != std::string::npos &&
               line.find(fmt::format(",{},", metric)) != std::string::npos;
      });
      INFO(method << " " << metric);
      CHECK(rows.size() == 4);
    }
}

TEST_CASE("what cannot be made ends its own cell, and without softmax there are no pairs, which is noted", "[faults]") {
  const Place folder;
  const auto rows = [&](const std::string& results, const std::string& metric) {
    return exported(folder, results,
                    [&](const std::string& line) { return line.find("," + metric + ",") != std::string::npos; })
        .size();
  };
  const std::string what =
      "run timed-no-op:blocks=3,turn=0.01{} --method uniform --method linear -n 16 -d 4 --threads 1 "
      "--results {}";
  const std::string paired = run(folder, fmt::format(fmt::runtime(what), "", folder / "paired.db"));
  INFO(paired);
  CHECK(ending_of(paired, "linear").find("skipped  no form") != std::string::npos);
  CHECK(rows("paired.db", "seconds") == 3);
  CHECK(rows("paired.db", "speedup") == 3);
  CHECK(rows("paired.db", "load") == 3);
  CHECK(rows("paired.db", "session") == 1);
  const std::string alone = run(folder, fmt::format(fmt::runtime(what), ",exact=false", folder / "alone.db"));
  INFO(alone);
  CHECK(alone.find("no pair: softmax ended crashed (SIGKILL while making what is timed)") != std::string::npos);
  CHECK(rows("alone.db", "seconds") == 3);
  CHECK(rows("alone.db", "speedup") == 0);
}

TEST_CASE("every block has a turn of every method at every length, and softmax at each", "[faults]") {
  const Place folder;
  constexpr size_t blocks = 12;
  run(folder, fmt::format("run timed-no-op:blocks={},turn=0.01 --method softmax --method uniform --method zero "
                          "--sweep n=16,32,64 -d 4 --threads 1 --results {}",
                          blocks, folder / "r.db"));
  const auto when = numbers(folder, "r.db", "when");
  REQUIRE(when.size() == 9);
  std::set<std::string> first_ones;
  for (size_t block = 0; block < blocks; ++block) {
    double begin = INFINITY, end = 0;
    std::string first;
    for (const auto& [cell, times] : when) {
      REQUIRE(times.size() == blocks);
      if (times[block] < begin) first = cell;
      begin = std::min(begin, times[block]);
      end = std::max(end, times[block]);
    }
    first_ones.insert(first);
    for (const auto& [cell, times] : when) {
      if (block > 0) CHECK(times[block - 1] < begin);
      if (block + 1 < blocks) CHECK(times[block + 1] > end);
    }
  }
  CHECK(first_ones.size() >= 4);  // of 9 that are drawn 12 times, fewer come with a probability below 1e-3
  std::set<double> sessions;
  for (const auto& [cell, session] : numbers(folder, "r.db", "session")) sessions.insert(session.at(0));
  CHECK(sessions.size() == 1);

  // Each length is paired with softmax at that length.
  const auto seconds = numbers(folder, "r.db", "seconds"), speedups = numbers(folder, "r.db", "speedup");
  for (const char* n : {"16", "32", "64"})
    for (size_t block = 0; block < blocks; ++block) {
      const auto at = [&](const auto& all, const std::string& method) { return all.at(method + " " + n).at(block); };
      CHECK(at(speedups, "zero") == Approx(at(seconds, "softmax") / at(seconds, "zero")));
    }
}

TEST_CASE("a reproduction fails if a cell crashed, now or before, and --retry runs that cell again", "[faults]") {
  const Place folder;
  std::ofstream(folder / "own.recipe.toml") << R"(name = "own"
title = "t"
question = "q?"
[[runs]]
experiment = "attention-error:matrix=false"
method = ["uniform", "nan", "segfault"]
input = "gaussian"
n = 16
d = 4
[[statements]]
text = "s"
threshold = "2"
because = "b"
metric = "relative_output_error"
take = "exact"
each = "method"
below = 2
)";
  const auto reproduced = [&](const std::string& options) {
    Program program(folder, fmt::format("reproduce {} --quick --results {} -o {} {}", folder / "own.recipe.toml",
                                        folder / "r.db", folder / "page", options));
    const int code = program.end();
    return std::pair(code, program.text());
  };
  const std::string summary = "1 recipe has cells that are not done; cells of 1 failed: --retry runs them again\n";
  const auto [code, text] = reproduced("");
  CHECK(code == 1);
  CHECK_THAT(text, ContainsSubstring(summary + "  own: 1 failed, 1 skipped or not finite; the first: segfault crashed: "
                                               "SIGSEGV while measuring"));
  const auto [code_again, again] = reproduced("");
  CHECK(code_again == 1);
  CHECK_THAT(again, ContainsSubstring(" 0 run ") && ContainsSubstring(summary + "  own: 1 had failed before\n"));
  const auto [code_retry, retried] = reproduced("--retry");
  CHECK(code_retry == 1);
  CHECK_THAT(retried,
             ContainsSubstring(" 1 run ") && ContainsSubstring("  own: 1 failed; the first: segfault crashed"));
}

TEST_CASE("a cell that dies in a session of several lengths costs its own length alone", "[faults]") {
  const Place folder;
  const std::string text =
      run(folder, fmt::format("run speed:blocks=4,turn=0.01 --method uniform --method segfault:calls=5 --method zero "
                              "--sweep n=16,32 -d 4 --threads 1 --results {}",
                              folder / "r.db"));
  INFO(text);
  const auto seconds = numbers(folder, "r.db", "seconds"), speedups = numbers(folder, "r.db", "speedup");
  for (const auto& found : {seconds, speedups}) {
    REQUIRE(found.size() == 4);
    for (const char* cell : {"uniform 16", "uniform 32", "zero 16", "zero 32"}) CHECK(found.at(cell).size() == 4);
  }
}

// Other processes on every core: both the one that is timed and those beside it. Turns are longer than the time that
// the kernel gives a process at once, so that each of them is slowed.
TEST_CASE("a load on every core is marked in most turns", "[faults]") {
  const Place folder;
  const Hogs hogs;
  run(folder, fmt::format("run speed:blocks=8,turn=30 --method uniform -n 2048 -d 64 --threads 1 --results {}",
                          folder / "r.db"));
  CHECK(mean_of(numbers(folder, "r.db", "disturbed").at("uniform 2048")) > 0.5);
}

// Its turns take the same time by a clock of their own, so that only the load beside them can mark them. Other work of
// this machine may come and go meanwhile: each mark is compared with the load of its own turn.
TEST_CASE("a turn that others do not slow is marked where they kept a quarter of a core busy, and nowhere else",
          "[faults]") {
  const Place folder;
  const bool beside = std::thread::hardware_concurrency() > 1;  // on one core nothing runs beside a turn
  const auto timed = [&](const std::string& results) {
    run(folder, fmt::format("run timed-no-op:blocks=12,elsewhere=0.05 --method uniform -n 16 -d 4 --threads 1 "
                            "--results {}",
                            folder / results));
    const auto load = numbers(folder, results, "load").at("uniform 16"),
               marks = numbers(folder, results, "disturbed").at("uniform 16");
    REQUIRE(load.size() == 12);
    REQUIRE(marks.size() == 12);
    for (size_t turn = 0; turn < marks.size(); ++turn) {
      INFO("turn " << turn << ", beside " << load[turn] << " cores of other work");
      CHECK(marks[turn] == (beside && load[turn] >= 0.25 ? 1 : 0));
    }
    return mean_of(marks);
  };
  timed("free.db");
  const Hogs hogs;
  CHECK(timed("loaded.db") == (beside ? 1 : 0));
}

TEST_CASE("softmax as it is by default is the partner, another form of it is not", "[faults]") {
  const Place folder;
  run(folder,
      fmt::format("run timed-no-op:blocks=3,turn=0.01 --method softmax --method softmax:form=materialised -n 16 "
                  "-d 4 --threads 1 --results {}",
                  folder / "r.db"));
  const auto speedups = exported(folder, "r.db", [](const std::string& line) {
    return line.find(",softmax,") != std::string::npos && line.find(",speedup,") != std::string::npos;
  });
  REQUIRE(speedups.size() == 3);
  for (const auto& line : speedups) CHECK(line.ends_with(",1"));
}

TEST_CASE("cells that fill the memory are done one at a time with all threads, others with one thread each",
          "[faults]") {
  const Place folder;
  // More than half of an eighth of nine tenths, so that little of the machine's memory need be free for it.
  run(folder, fmt::format("run company --method uniform --sweep share=0,0.06 -n 16 -d 4 --replicates 8 --threads 8 "
                          "--results {}",
                          folder / "r.db"));
  const auto rows = [&](const std::string& experiment, const std::string& metric) {
    return exported(folder, "r.db", [&](const std::string& line) {
      return line.find(experiment + ",") != std::string::npos && line.find("," + metric + ",") != std::string::npos;
    });
  };
  for (const auto& [experiment, threads] : {std::pair{"company", ",1"}, {"company:share=0.06", ",8"}}) {
    const auto found = rows(experiment, "cell_threads");
    CHECK(found.size() == 8);
    for (const auto& line : found) CHECK(line.ends_with(threads));
  }
  const auto alone = rows("company:share=0.06", "workers");
  CHECK(alone.size() == 8);
  for (const auto& line : alone) CHECK(line.ends_with(",1"));
}

}  // namespace attnbench::faults_test
