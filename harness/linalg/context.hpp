// What a call to a method carries with it: the threads it may use and the work it has done.
#pragma once

#include <functional>

#include "harness/linalg/matrix.hpp"

namespace attnbench {

// Operations counted by the seam: multiply and add are two FLOPs; exponentials are counted apart.
struct Work {
  double flops = 0;
  double exps = 0;

  Work& operator+=(const Work& other) {
    flops += other.flops;
    exps += other.exps;
    return *this;
  }
};

// What an accelerator would store in half precision is rounded to it (and kept in the scalar type): the results of the
// seam's products and exponentials. Sums inside a product are kept in the scalar type, as tensor cores do.
enum class Rounding { none, f16, bf16 };

class Context {
 public:
  explicit Context(int threads = 1, Rounding rounding = Rounding::none) : threads_(threads), rounding_(rounding) {}

  int threads() const { return threads_; }
  Rounding rounding() const { return rounding_; }
  Work work;

  // Calls body(context, first, count) for each block of at most `block` consecutive indices out of [0, total). The
  // blocks do not depend on the number of threads, and each writes memory of its own: results are the same bit for bit
  // for any number. Each call has a Context with its share of the threads (one, unless there are fewer blocks than
  // threads), whose work is added to this one. The first exception thrown by a block is thrown again here.
  void for_blocks(Index total, Index block, const std::function<void(Context&, Index, Index)>& body);

 private:
  int threads_;
  Rounding rounding_;
};

}  // namespace attnbench
