#include "harness/linalg/crew.hpp"

#include <fenv.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace attnbench {

namespace {

// One call of work_together.
struct Call {
  const std::function<void()>& body;
  int running;        // of the other threads
  fenv_t arithmetic;  // the caller's rounding and treatment of subnormal numbers, which a new thread would inherit
  std::mutex mutex;
  std::condition_variable ended;
};

class Crew;

// A thread that waits for calls until the process ends.
class Hand {
 public:
  explicit Hand(Crew& crew) {
    std::thread([this, &crew] { serve(crew); }).detach();
  }
  void begin(Call& call) {
    const std::scoped_lock lock(mutex_);
    call_ = &call;
    begun_.notify_one();
  }

 private:
  [[noreturn]] void serve(Crew& crew);

  std::mutex mutex_;
  std::condition_variable begun_;
  Call* call_ = nullptr;
};

// All hands of the process, of which the waiting ones are listed. Never destroyed, and neither are they: they wait on
// their own memory while the process ends.
class Crew {
 public:
  static Crew& of_process() {
    static Crew& crew = *new Crew;
    return crew;
  }

  Hand& hire() {
    const std::scoped_lock lock(mutex_);
    if (process_ != getpid()) {  // a fork has copied the list and none of the threads
      waiting_.clear();
      process_ = getpid();
    }
    if (waiting_.empty()) {
      waiting_.reserve(++hands_);  // so that dismiss does not throw
      waiting_.push_back(new Hand(*this));
    }
    Hand& hired = *waiting_.back();
    waiting_.pop_back();
    return hired;
  }
  void dismiss(Hand& hand) {
    const std::scoped_lock lock(mutex_);
    waiting_.push_back(&hand);
  }

 private:
  std::mutex mutex_;
  std::vector<Hand*> waiting_;
  size_t hands_ = 0;  // that were ever made
  pid_t process_ = getpid();
};

void Hand::serve(Crew& crew) {
  for (;;) {
    std::unique_lock lock(mutex_);
    begun_.wait(lock, [&] { return call_ != nullptr; });
    Call& call = *std::exchange(call_, nullptr);
    lock.unlock();
    fesetenv(&call.arithmetic);
    call.body();
    crew.dismiss(*this);  // before the call ends, so that the next one finds this thread
    const std::scoped_lock last(call.mutex);
    if (--call.running == 0) call.ended.notify_one();
  }
}

}  // namespace

void work_together(int others, const std::function<void()>& body) {
  Crew& crew = Crew::of_process();
  std::vector<Hand*> hands;
  for (int t = 0; t < others; ++t) hands.push_back(&crew.hire());  // may throw, while no hand has begun
  Call call{.body = body, .running = others, .arithmetic = {}, .mutex = {}, .ended = {}};
  fegetenv(&call.arithmetic);
  for (Hand* hand : hands) hand->begin(call);
  body();
  std::unique_lock lock(call.mutex);
  call.ended.wait(lock, [&] { return call.running == 0; });
}

}  // namespace attnbench
