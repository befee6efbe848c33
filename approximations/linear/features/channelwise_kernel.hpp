// Kernel theory of deterministic maps that act on each channel separately: the kernel is the same in every draw.
#pragma once

#include <cassert>
#include <string>

#include "harness/core/theory.hpp"

namespace attnbench {

// K(q, k) = sum_l phi(q_l) phi(k_l), variance 0.
template <class Function>
KernelTheory channelwise_kernel(const std::string& target, Function phi) {
  return {.target = target,
          .mean =
              [phi](const Pair& p) {
                assert(std::ssize(p.q) == p.d && std::ssize(p.k) == p.d);
                double sum = 0;
                for (size_t l = 0; l < p.q.size(); ++l) sum += phi(p.q[l]) * phi(p.k[l]);
                return sum;
              },
          .variance = [](const Pair&) { return 0.0; }};
}

}  // namespace attnbench
