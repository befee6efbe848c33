// exp of Eigen's arrays: exponential(x) in place of x.exp(), for loops that are not worth more, and in_lockstep() for
// those that are. An entry has the same bits however it is computed: in a vector, in several, or alone at the end of a
// row.
//   x = n log 2 + r, |r| <= log 2 / 2, exp(x) = 2^n p(r), p a polynomial of least relative error with p(0) = 1
// Its error is below 0.9 units in the last place in float, or 1.2 where multiplication and addition are not fused, and
// 1 in double, or 1.3 (exp_test.cpp). exp(-inf) and all below `lowest`, the end of the range in which 2^n is normal,
// are 0; above the largest number's logarithm it is inf; NaN stays NaN. In fours it takes 0.56 of the time of
// Eigen 3.4's in float and 0.31 in double (AVX-512).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "harness/linalg/matrix.hpp"

namespace attnbench {

template <class T>
struct ExponentialConstants;

template <>
struct ExponentialConstants<float> {
  using Integer = std::int32_t;
  static constexpr int mantissa = 23;
  // Below log(2) (-126 + 1/2) = -86.9894, n is -126 or less, and the power of two that stands for it is 0.
  static constexpr float lowest = -87, highest = 89, log2_e = 1.44269504F;
  // log 2 in two parts: n times the first, of ten bits, is exact also where multiplication and addition are not fused.
  static constexpr float ln2 = 0.693359375F, ln2_rest = -2.12194440e-04F;
  // Added to a number, it leaves the nearest integer in the low bits of the sum: 1.5 2^23, and the exponent's offset
  // for 2^(n - 1), where n is 128 at most. The other factor 2 is in the polynomial.
  static constexpr float shifter = 12582912.0F + 126;
  static constexpr int degree = 6;
  static constexpr float p[degree + 1] = {
      2, 2, 2 * 0.499999934F, 2 * 0.166665204F, 2 * 0.0416683908F, 2 * 0.00836874527F, 2 * 0.00138145402F};
};

template <>
struct ExponentialConstants<double> {
  using Integer = std::int64_t;
  static constexpr int mantissa = 52;
  static constexpr double lowest = -708.5, highest = 709.9, log2_e = 1.4426950408889634;
  static constexpr double ln2 = 0x1.62e42fee00000p-1, ln2_rest = 1.9082149292705877e-10;
  static constexpr double shifter = 6755399441055744.0 + 1022;
  static constexpr int degree = 11;
  static constexpr double p[degree + 1] = {2,
                                           2,
                                           2 * 0x1.0000000000001p-1,
                                           2 * 0x1.5555555555556p-3,
                                           2 * 0x1.5555555553d63p-5,
                                           2 * 0x1.11111111109b3p-7,
                                           2 * 0x1.6c16c1788bd90p-10,
                                           2 * 0x1.a01a01a7c41d5p-13,
                                           2 * 0x1.a019b90d2ae7ap-16,
                                           2 * 0x1.71de0dae63bb3p-19,
                                           2 * 0x1.289185613a3d6p-22,
                                           2 * 0x1.af38a9b0ec855p-26};
};

template <class T>
struct Exponential : ExponentialConstants<T> {
  using Of = ExponentialConstants<T>;

  T operator()(T x) const {
    T one[1] = {x};
    in_lockstep(one);
    return one[0];
  }
  template <class Packet>
  Packet packetOp(const Packet& x) const {
    Packet one[1] = {x};
    in_lockstep(one);
    return one[0];
  }

  // x_v = exp(x_v) for several packets (or numbers). One packet is a chain of dependent steps, and a processor keeps
  // few chains in flight; four side by side are 1.3 times as fast as one after the other.
  template <class Packet, int count>
  static void in_lockstep(Packet (&x)[count]) {
    using namespace Eigen::internal;
    const Packet shift = pset1<Packet>(Of::shifter), ln2 = pset1<Packet>(Of::ln2), rest = pset1<Packet>(Of::ln2_rest);
    Packet shifted[count], sum[count];
    for (Packet& v : x) v = pmax(pmin(v, pset1<Packet>(Of::highest)), pset1<Packet>(Of::lowest));  // these keep NaN
    for (int v = 0; v < count; ++v) shifted[v] = fused(x[v], pset1<Packet>(Of::log2_e), shift);
    for (int v = 0; v < count; ++v) {
      const Packet minus_n = psub(shift, shifted[v]);
      x[v] = fused(minus_n, rest, fused(minus_n, ln2, x[v]));
    }
    for (Packet& v : sum) v = pset1<Packet>(Of::p[Of::degree]);
    for (int i = Of::degree - 1; i >= 0; --i)
      for (int v = 0; v < count; ++v) sum[v] = fused(sum[v], x[v], pset1<Packet>(Of::p[i]));
    for (int v = 0; v < count; ++v) x[v] = pmul(sum[v], power(shifted[v]));
  }

 private:
  template <class Packet>
  static Packet fused(const Packet& a, const Packet& b, const Packet& c) {
    return Eigen::internal::pmadd(a, b, c);
  }
  static T fused(T a, T b, T c) {  // as the vectors do it
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    return std::fma(a, b, c);
#else
    return a * b + c;
#endif
  }

  // 2^(n - 1), from the integer in the low bits: it becomes the exponent.
  template <class Packet>
  static Packet power(const Packet& shifted) {
    if constexpr (sizeof(Packet) == sizeof(T)) {
      return std::bit_cast<T>(std::bit_cast<typename Of::Integer>(shifted) << Of::mantissa);
    } else {
      typedef typename Of::Integer Integers __attribute__((vector_size(sizeof(Packet))));
      return std::bit_cast<Packet>(std::bit_cast<Integers>(shifted) << Of::mantissa);
    }
  }
};

// y_i = f(x_i). f changes an array of packets in place, or of numbers at the end: four packets at a time, for the same
// reason as in_lockstep. x may be y.
template <class T>
void map_in_lockstep(const T* x, T* y, Index count, const auto& f) {
  using Packet = typename Eigen::internal::packet_traits<T>::type;
  Index i = 0;
  const auto all = [&]<class Held, int together>(Held(&held)[together]) {
    constexpr Index each = std::is_same_v<Held, T> ? 1 : Eigen::internal::packet_traits<T>::size;
    for (; i + together * each <= count; i += together * each) {
      for (Index v = 0; v < together; ++v) held[v] = Eigen::internal::ploadu<Held>(x + i + v * each);
      f(held);
      for (Index v = 0; v < together; ++v) Eigen::internal::pstoreu(y + i + v * each, held[v]);
    }
  };
  Packet four[4], one[1];
  T number[1];
  all(four);
  all(one);
  all(number);
}

// Of an array expression.
template <class X>
auto exponential(const X& x) {
  return x.unaryExpr(Exponential<typename X::Scalar>());
}

}  // namespace attnbench

template <class T>
struct Eigen::internal::functor_traits<attnbench::Exponential<T>> {
  enum { Cost = 16 * NumTraits<T>::MulCost, PacketAccess = packet_traits<T>::HasExp };
};
