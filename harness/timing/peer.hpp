// Another implementation of the same methods, in its own process, that takes turns among ours: one of
// scripts/bench/peers, or any program that speaks their protocol (one JSON object per line; protocol.py). A file in
// Python runs in the interpreter for plugins (--python).
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "harness/core/approximation.hpp"
#include "harness/timing/turns.hpp"

namespace attnbench {

class Peer {
 public:
  // Throws Misuse if that program cannot be started.
  static void check(const std::string& program);
  explicit Peer(const std::string& program);
  ~Peer();

  // The peer's implementation of a method, on these heads and with the tensors drawn for each of them
  // (Approximation::state). outputs: our outputs, which the peer's must match to `tolerance` of their norm. Throws Skip
  // with the reason if they do not match, or if the peer does not have the method.
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
