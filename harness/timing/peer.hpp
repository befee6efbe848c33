// Another implementation of the same methods, in a process of its own, that takes its turns among ours: PyTorch by
// scripts/bench/pytorch.py, or any program that speaks its protocol (one JSON object a line; see there).
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "harness/core/approximation.hpp"
#include "harness/timing/turns.hpp"

namespace attnbench {

class Peer {
 public:
  // Throws Misuse when that is no program that can be started.
  static void check(const std::string& program);
  explicit Peer(const std::string& program);
  ~Peer();

  // A method as the peer has it, on these heads and with what was drawn for each of them (Approximation::state).
  // outputs: what our own gave, which it must equal to `tolerance` of their norm: else, and where it has no such
  // method, a Skip with the reason.
  template <class T>
  std::unique_ptr<TimedCall> prepare(const Params& method, const std::vector<HeadData<T>>& heads,
                                     const std::vector<Tensors>& states, bool causal, int threads,
                                     const std::vector<Matrix<T>>& outputs, double tolerance = 1e-3);

 private:
  struct Process;
  class Call;
  std::shared_ptr<Process> process_;
};

}  // namespace attnbench
