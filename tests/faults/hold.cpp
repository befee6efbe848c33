// Takes memory, and keeps it and its core for so long as it is told to: long enough for a limit to be seen, and not for
// ever where the limit is not.
#include <unistd.h>

#include <cstdlib>
#include <ctime>

#include "tests/faults/fault.hpp"

namespace attnbench {
namespace {

template <class T>
class Hold final : public Approximation<T> {
 public:
  explicit Hold(const Draw& draw)
      : megabytes_(draw.params.integer("megabytes")), seconds_(draw.params.real("seconds")) {}

  void attend(const Head<T>&, Mask, Context&, Out<T> out) const override {
    const std::vector<char> kept(static_cast<size_t>(megabytes_) << 20, char(1));
    for (const std::clock_t end = std::clock() + static_cast<std::clock_t>(seconds_ * CLOCKS_PER_SEC);
         std::clock() < end;) {
    }
    out.setConstant(kept.empty() ? 0 : static_cast<T>(kept.back() - 1));
  }

 private:
  Index megabytes_;
  double seconds_;
};

MethodEntry hold() {
  MethodEntry entry = faulty("hold", [] {});
  entry.parameters = {Parameter::integer("megabytes", 0, "that it keeps meanwhile", 0),
                      Parameter::real("seconds", 20, "of its core's time", 0, 1000)};
  entry.f32 = [](const Draw& draw) { return std::make_unique<Hold<float>>(draw); };
  entry.f64 = [](const Draw& draw) { return std::make_unique<Hold<double>>(draw); };
  return entry;
}

const bool registered = add(hold());

// Keeps 200 MB until it is killed, if the environment asks for it.
const bool if_asked = add(faulty("hold-if-asked", [] {
  if (!std::getenv("ATTNBENCH_TEST_HOLD")) return;
  const std::vector<char> kept(size_t{200} << 20, char(1));
  while (kept.back() == 1) pause();
}));

}  // namespace
}  // namespace attnbench
