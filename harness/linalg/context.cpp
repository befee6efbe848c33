#include "harness/linalg/context.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>

#include "harness/linalg/crew.hpp"

namespace attnbench {

void Context::for_blocks(Index total, Index block, const std::function<void(Context&, Index, Index)>& body) {
  const Index count = (total + block - 1) / block;
  const auto run_block = [&](Context& context, Index b) {
    const Index first = b * block;
    body(context, first, std::min(block, total - first));
  };
  const int workers = static_cast<int>(std::min<Index>(threads_, count));
  if (workers <= 1) {
    Context all(threads_, rounding_, operands_);
    for (Index b = 0; b < count; ++b) run_block(all, b);
    work += all.work;
    return;
  }
  std::atomic<Index> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto worker = [&] {
    Context share(threads_ / workers, rounding_, operands_);
    try {
      for (Index b = next++; b < count; b = next++) run_block(share, b);
    } catch (...) {
      const std::scoped_lock lock(mutex);
      if (!failure) failure = std::current_exception();
      next = count;
    }
    const std::scoped_lock lock(mutex);
    work += share.work;
  };
  work_together(workers - 1, worker);
  if (failure) std::rethrow_exception(failure);
}

}  // namespace attnbench
