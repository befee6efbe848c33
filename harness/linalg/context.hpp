// The context of a call to a method: the threads it may use and the work it has done.
#pragma once

#include <functional>

#include "harness/linalg/matrix.hpp"

namespace attnbench {

// Operations that the functions of linalg count: multiply and add are two FLOPs; exponentials are counted
// separately.
struct Work {
  double flops = 0;
  double exps = 0;

  Work& operator+=(const Work& other) {
    flops += other.flops;
    exps += other.exps;
    return *this;
  }
};

// Rounds the numbers that an accelerator would store in half precision (and keeps them in the scalar type): the results
// of products and exponentials. Sums inside a product stay in the scalar type, as in tensor cores.
enum class Rounding { none, f16, bf16 };

// Rounds what a matrix unit reads and nothing else: bf16 rounds both operands of products of float to bfloat16, which
// are then summed in float. Their results stay float, unlike those of Rounding. Products of double stay as they are.
enum class Operands { given, bf16 };

class Context {
 public:
  explicit Context(int threads = 1, Rounding rounding = Rounding::none, Operands operands = Operands::given)
      : threads_(threads), rounding_(rounding), operands_(operands) {}

  int threads() const { return threads_; }
  Rounding rounding() const { return rounding_; }
  Operands operands() const { return operands_; }
  // Whether nothing is coarser than the scalar type.
  bool whole() const { return rounding_ == Rounding::none && operands_ == Operands::given; }
  Work work;

  // Calls body(context, first, count) for each block of at most `block` consecutive indices out of [0, total). The
  // blocks do not depend on the number of threads, and each writes its own memory, so results are the same bit for bit
  // for any number. Each call gets a Context with its share of the threads (one, unless there are fewer blocks than
  // threads), whose work is added to this one. Rethrows the first exception of a block.
  void for_blocks(Index total, Index block, const std::function<void(Context&, Index, Index)>& body);

 private:
  int threads_;
  Rounding rounding_;
  Operands operands_;
};

}  // namespace attnbench
