#include "harness/linalg/exponentials.hpp"

#include <algorithm>
#include <limits>

#include "harness/linalg/exp.hpp"
#include "harness/linalg/rounding.hpp"

namespace attnbench {

namespace {

template <class T, bool in_vectors>
struct Held {
  using Packet = typename Eigen::internal::packet_traits<T>::type;
  static constexpr Index numbers = Eigen::internal::packet_traits<T>::size;
};
template <class T>
struct Held<T, false> {
  using Packet = T;
  static constexpr Index numbers = 1;
};

// Some neighbouring columns, of which registers hold one row and what is summed down the rows: `count` vectors or
// numbers.
template <class T, bool in_vectors, int count>
struct Strip {
  using Packet = typename Held<T, in_vectors>::Packet;
  static constexpr Index each = Held<T, in_vectors>::numbers, width = count * each;
  static constexpr int vectors = count;
  Packet x[count];

  explicit Strip(T value) { std::fill_n(x, count, Eigen::internal::pset1<Packet>(value)); }
  explicit Strip(const T* from) {
    for (int v = 0; v < count; ++v) x[v] = Eigen::internal::ploadu<Packet>(from + v * each);
  }
  // Entries first, first + 1, ... of the numbers; zeroes for an empty span.
  Strip(auto numbers, Index first) : Strip(T(0)) {
    if (!numbers.empty()) *this = Strip(numbers.data() + first);
  }
  void store(T* to) const {
    for (int v = 0; v < count; ++v) Eigen::internal::pstoreu(to + v * each, x[v]);
  }
  void add(const Strip& other) {
    for (int v = 0; v < count; ++v) x[v] = Eigen::internal::padd(x[v], other.x[v]);
  }
  void raise(const Strip& other) {
    for (int v = 0; v < count; ++v) x[v] = Eigen::internal::pmax(x[v], other.x[v]);
  }
};

// Calls body.template operator()<count>(i) for the rows i, i + 1, ..., i + count - 1, so many that four vectors of the
// strip are at work: a narrow strip would wait for each of its vectors otherwise.
template <class Strip>
void for_rows(Index rows, const auto& body) {
  constexpr int together = 4 / Strip::vectors;
  Index i = 0;
  for (; i + together <= rows; i += together) body.template operator()<together>(i);
  if constexpr (together > 1)
    for (; i < rows; ++i) body.template operator()<1>(i);
}

// Calls body.template operator()<Strip>(first column) for strips that cover the columns, wide ones first.
template <class T>
void for_strips(Index columns, const auto& body) {
  Index j = 0;
  const auto all = [&]<class S>(S*) {
    for (; j + S::width <= columns; j += S::width) body.template operator()<S>(j);
  };
  all(static_cast<Strip<T, true, 4>*>(nullptr));
  all(static_cast<Strip<T, true, 1>*>(nullptr));
  all(static_cast<Strip<T, false, 1>*>(nullptr));
}

}  // namespace

template <class T>
void raise_to_column_maxima(const InArg<T>& X, std::span<const T> row_offset, std::span<T> maximum) {
  const In<T> view = X;
  for_strips<T>(view.cols(), [&]<class S>(Index j) {
    S largest(maximum.data() + j);
    for_rows<S>(view.rows(), [&]<int count>(Index i) {
      S of_these(-std::numeric_limits<T>::infinity());
      for (Index r = i; r < i + count; ++r) {
        S row(view.data() + r * view.outerStride() + j);
        if (!row_offset.empty()) row.add(S(row_offset[static_cast<size_t>(r)]));
        of_these.raise(row);
      }
      largest.raise(of_these);
    });
    largest.store(maximum.data() + j);
  });
}

template <class T>
void row_maxima(const InArg<T>& X, std::span<const T> column_offset, std::span<T> maximum) {
  const Eigen::Map<const Eigen::Array<T, 1, Eigen::Dynamic>> offset(column_offset.data(),
                                                                    static_cast<Index>(column_offset.size()));
  for (Index i = 0; i < X.rows(); ++i)
    maximum[static_cast<size_t>(i)] =
        column_offset.empty() ? X.row(i).maxCoeff() : (X.row(i).array() + offset).maxCoeff();
}

template <class T>
void exponentiate(Context& context, OutArg<T> X, std::span<const T> row_offset, std::span<const T> column_offset,
                  std::span<T> column_sum) {
  const Rounding rounding = context.rounding();
  for_strips<T>(X.cols(), [&]<class S>(Index j) {
    const S offset(column_offset, j);
    S sum(std::span<const T>(column_sum), j);
    for_rows<S>(X.rows(), [&]<int count>(Index i) {
      typename S::Packet x[count * S::vectors];
      for (int r = 0; r < count; ++r) {
        S row(X.data() + (i + r) * X.outerStride() + j);
        if (!row_offset.empty()) row.add(S(row_offset[static_cast<size_t>(i + r)]));
        row.add(offset);
        std::copy_n(row.x, S::vectors, x + r * S::vectors);
      }
      Exponential<T>::in_lockstep(x);
      for (int r = 0; r < count; ++r) {
        T* place = X.data() + (i + r) * X.outerStride() + j;
        S row(T(0));
        std::copy_n(x + r * S::vectors, S::vectors, row.x);
        row.store(place);
        if (rounding != Rounding::none) {
          round_to<T>(rounding, Out<T>(place, 1, S::width, S::width));
          row = S(place);
        }
        sum.add(row);
      }
    });
    if (!column_sum.empty()) sum.store(column_sum.data() + j);
  });
  context.work.exps += static_cast<double>(X.size());
}

#define ATTNBENCH_INSTANTIATE(T)                                                              \
  template void raise_to_column_maxima<T>(const InArg<T>&, std::span<const T>, std::span<T>); \
  template void row_maxima<T>(const InArg<T>&, std::span<const T>, std::span<T>);             \
  template void exponentiate<T>(Context&, OutArg<T>, std::span<const T>, std::span<const T>, std::span<T>);
ATTNBENCH_INSTANTIATE(float)
ATTNBENCH_INSTANTIATE(double)
#undef ATTNBENCH_INSTANTIATE

}  // namespace attnbench
