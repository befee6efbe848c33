// Threads that stay between calls.
#include "harness/linalg/crew.hpp"

#include <fenv.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <mutex>
#include <set>
#include <thread>

#include "tests/catch.hpp"

namespace attnbench::crew_test {

namespace {

// The other threads of a call in which each of them takes part.
std::set<std::thread::id> helpers(int others) {
  std::barrier all_here(others + 1);
  std::mutex mutex;
  std::set<std::thread::id> ids;
  work_together(others, [&] {
    all_here.arrive_and_wait();
    const std::scoped_lock lock(mutex);
    ids.insert(std::this_thread::get_id());
  });
  CHECK(std::ssize(ids) == others + 1);
  CHECK(ids.erase(std::this_thread::get_id()) == 1);
  return ids;
}

}  // namespace

TEST_CASE("the threads of one call work for the next one", "[unit]") {
  const auto three = helpers(3);
  CHECK(helpers(3) == three);
  for (const std::thread::id id : helpers(2)) CHECK(three.contains(id));
  CHECK(helpers(0).empty());
}

TEST_CASE("a call ends after all of its threads have", "[unit]") {
  for (int round = 0; round < 2000; ++round) {
    std::atomic<int> ended{0};
    work_together(2, [&] { ++ended; });
    REQUIRE(ended == 3);
  }
}

TEST_CASE("calls within calls and from several threads each have their own threads", "[unit]") {
  std::barrier all_here(9);
  work_together(2, [&] { work_together(2, [&] { all_here.arrive_and_wait(); }); });
  std::barrier of_callers(6);
  const auto call = [&] { work_together(2, [&] { of_callers.arrive_and_wait(); }); };
  std::jthread other(call);
  call();
}

TEST_CASE("the threads of a call round as its caller does, whatever a call before did", "[unit]") {
  const auto all_round = [](int mode) {
    std::barrier all_here(3);
    std::atomic<int> alike{0};
    work_together(2, [&] {
      all_here.arrive_and_wait();
      if (fegetround() == mode) ++alike;
    });
    return alike == 3;
  };
  helpers(2);
  fesetround(FE_UPWARD);
  const bool upward = all_round(FE_UPWARD);
  fesetround(FE_TONEAREST);
  CHECK(upward);
  std::barrier all_here(3);
  const auto self = std::this_thread::get_id();
  work_together(2, [&] {
    all_here.arrive_and_wait();
    if (std::this_thread::get_id() != self) fesetround(FE_DOWNWARD);
  });
  CHECK(all_round(FE_TONEAREST));
}

TEST_CASE("a process that forks has threads of its own", "[unit]") {
  helpers(2);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);  // a call that waits for threads of the parent would never end
    std::atomic<int> ended{0};
    work_together(2, [&] { ++ended; });
    _exit(ended == 3 ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  helpers(2);
}

}  // namespace attnbench::crew_test
