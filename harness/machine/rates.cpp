#include "harness/machine/rates.hpp"

#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <limits>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "harness/linalg/exponentials.hpp"
#include "harness/linalg/products.hpp"
#include "harness/machine/resources.hpp"

namespace attnbench {

namespace {

using Clock = std::chrono::steady_clock;

// The least time in which every thread finishes body(thread) once, over `repetitions` repetitions after an untimed one.
template <class Body>
double least_seconds(int threads, int repetitions, const Body& body) {
  std::barrier together(threads);
  double least = std::numeric_limits<double>::infinity();
  const auto worker = [&](int thread) {
    body(thread);
    for (int r = 0; r < repetitions; ++r) {
      together.arrive_and_wait();
      const auto start = Clock::now();
      body(thread);
      together.arrive_and_wait();
      if (thread == 0) least = std::min(least, std::chrono::duration<double>(Clock::now() - start).count());
    }
  };
  std::vector<std::jthread> others;
  for (int thread = 1; thread < threads; ++thread) others.emplace_back(worker, thread);
  worker(0);
  return least;
}

// The number of calls of body() that take about two milliseconds in one thread. That is long compared with the barrier,
// and short enough that some repetitions are undisturbed.
template <class Body>
Index calls_of_two_milliseconds(const Body& body) {
  Index calls = 1;
  for (;; calls *= 2) {
    const auto start = Clock::now();
    for (Index c = 0; c < calls; ++c) body();
    if (Clock::now() - start > std::chrono::milliseconds(1)) return 2 * calls;
  }
}

// How long each repetition takes, and how many there are.
struct Effort {
  bool brief = false;
  int repetitions() const { return brief ? 4 : 20; }
  template <class Body>
  Index calls(const Body& body) const {
    return brief ? 1 : calls_of_two_milliseconds(body);
  }
};

template <class T>
double fma_peak(int threads, Effort effort = {}) {
  using Packet = typename Eigen::internal::packet_traits<T>::type;
  // Ten chains hide a latency of four cycles on two units (eight are needed) and fit into sixteen registers.
  constexpr int chains = 10;
  constexpr Index steps = 10000, width = Eigen::internal::packet_traits<T>::size;
  const auto body = [](int) {
    const Packet half = Eigen::internal::pset1<Packet>(T(0.5));  // x / 2 + 1 / 2 stays near 1
    Packet x[chains];
    for (Packet& chain : x) chain = half;
    for (Index s = 0; s < steps; ++s)
      for (Packet& chain : x) chain = Eigen::internal::pmadd(chain, half, half);
    for (const Packet& chain : x) benchmark::DoNotOptimize(Eigen::internal::predux(chain));
  };
  const Index calls = effort.calls([&] { body(0); });
  const double seconds = least_seconds(threads, effort.repetitions(), [&](int thread) {
    for (Index c = 0; c < calls; ++c) body(thread);
  });
  return 2.0 * chains * static_cast<double>(width * steps * calls) * threads / seconds;
}

template <class T>
double exp_rate(int threads, Effort effort = {}) {
  constexpr Index rows = 16, columns = 64, passes = 64;  // a tile of at most 8 KB
  std::vector<Matrix<T>> tiles(static_cast<size_t>(threads), Matrix<T>::Zero(rows, columns));
  const std::vector<T> offset(columns, T(-1));  // x = exp(x - 1) again and again stays between 0 and 1
  const auto body = [&](int thread) {
    Context context;
    for (Index pass = 0; pass < passes; ++pass) {
      exponentiate<T>(context, tiles[static_cast<size_t>(thread)], {}, offset);
      benchmark::ClobberMemory();
    }
  };
  const Index calls = effort.calls([&] { body(0); });
  const double seconds = least_seconds(threads, effort.repetitions(), [&](int thread) {
    for (Index c = 0; c < calls; ++c) body(thread);
  });
  return static_cast<double>(rows * columns * passes * calls) * threads / seconds;
}

// Bytes of two arrays that fit into no cache, limited to 512 MB and a quarter of the available memory.
double beyond_caches() {
  const auto last_level = static_cast<double>(std::max(0L, sysconf(_SC_LEVEL3_CACHE_SIZE)));
  return std::min({512e6, std::max(128e6, 4 * last_level), available_memory() / 4});
}

// Bandwidth of a scaled copy. Does not count the lines that a cache reads before it writes them.
template <class T>
double bandwidth(int threads) {
  using Array = Eigen::Array<T, Eigen::Dynamic, 1>;
  const auto count = static_cast<Index>(beyond_caches() / (2 * sizeof(T) * static_cast<double>(threads)));
  std::vector<Array> from(static_cast<size_t>(threads)), to(from.size());
  const double seconds = least_seconds(threads, 4, [&](int thread) {
    Array &x = from[static_cast<size_t>(thread)], &y = to[static_cast<size_t>(thread)];
    if (x.size() == 0) x = Array::Ones(count);  // by the thread that reads it, in the untimed repetition
    y = x * T(0.5);
    benchmark::ClobberMemory();
  });
  return 2 * sizeof(T) * static_cast<double>(count) * threads / seconds;
}

template <class T>
Rates measured(int threads) {
  return {fma_peak<T>(threads), exp_rate<T>(threads), bandwidth<T>(threads)};
}

template <class T>
double rate_of_products(int threads, Product product, Index rows, Index inner, Index columns) {
  struct Operands {
    Matrix<T> A, B, C;
  };
  std::vector<Operands> all(static_cast<size_t>(threads));
  for (auto& [A, B, C] : all) {
    A = product == Product::transposed_multiply_add ? Matrix<T>::Ones(inner, rows) : Matrix<T>::Ones(rows, inner);
    B = product == Product::multiply_transposed ? Matrix<T>::Ones(columns, inner) : Matrix<T>::Ones(inner, columns);
    C = Matrix<T>::Zero(rows, columns);
  }
  const auto body = [&](int thread) {
    Context context;
    auto& [A, B, C] = all[static_cast<size_t>(thread)];
    switch (product) {
      case Product::multiply:
        return multiply<T>(context, A, B, C);
      case Product::multiply_add:
        return multiply_add<T>(context, A, B, C);
      case Product::multiply_transposed:
        return multiply_transposed<T>(context, A, B, C);
      case Product::transposed_multiply_add:
        return transposed_multiply_add<T>(context, A, B, C);
    }
  };
  const Index calls = calls_of_two_milliseconds([&] { body(0); });
  const double seconds = least_seconds(threads, Effort().repetitions() / 2, [&](int thread) {
    for (Index c = 0; c < calls; ++c) body(thread);
  });
  return 2.0 * static_cast<double>(rows * inner * columns * calls) * threads / seconds;
}

}  // namespace

const Rates& rates(Precision precision, int threads) {
  static std::mutex mutex;
  static std::map<std::pair<Precision, int>, Rates> kept;
  const std::scoped_lock lock(mutex);
  const auto [place, fresh] = kept.try_emplace({precision, threads});
  if (fresh) place->second = in_float(precision) ? measured<float>(threads) : measured<double>(threads);
  return place->second;
}

Rates arithmetic_now(Precision precision, int threads) {
  constexpr Effort brief{.brief = true};
  if (in_float(precision)) return {fma_peak<float>(threads, brief), exp_rate<float>(threads, brief)};
  return {fma_peak<double>(threads, brief), exp_rate<double>(threads, brief)};
}

double product_rate(Precision precision, int threads, Product product, Index rows, Index inner, Index columns) {
  return in_float(precision) ? rate_of_products<float>(threads, product, rows, inner, columns)
                             : rate_of_products<double>(threads, product, rows, inner, columns);
}

}  // namespace attnbench
