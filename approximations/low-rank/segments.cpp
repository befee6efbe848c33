#include "approximations/low-rank/segments.hpp"

#include "harness/linalg/rounding.hpp"

namespace attnbench {

template <class T>
void pool(Context& context, const In<T>& X, const Segments& segments, std::span<const T> weights, Out<T> pooled) {
  context.for_blocks(segments.count, 16, [&](Context& single, Index first, Index count) {
    for (Index a = first; a < first + count; ++a) {
      const Index begin = segments.begin(a), end = segments.end(a), held = std::clamp(X.rows(), begin, end);
      auto sum = pooled.row(a);
      sum.setZero();
      for (Index j = begin; j < held; ++j)
        if (weights.empty())
          sum += X.row(j);
        else
          sum += weights[static_cast<size_t>(j - begin)] * X.row(j);
      if (weights.empty()) sum *= 1 / static_cast<T>(end - begin);
      single.work.flops += static_cast<double>((weights.empty() ? 1 : 2) * (held - begin) * X.cols());
    }
    round_to<T>(single.rounding(), row_block(pooled, first, count));
  });
}

template void pool<float>(Context&, const In<float>&, const Segments&, std::span<const float>, Out<float>);
template void pool<double>(Context&, const In<double>&, const Segments&, std::span<const double>, Out<double>);

}  // namespace attnbench
