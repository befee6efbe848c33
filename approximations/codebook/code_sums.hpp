// The state that vector-quantised attention keeps: the number of keys on each code and the sum of their values. The
// decoder keeps the same state. methods.md D.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "approximations/codebook/nearest_codes.hpp"
#include "harness/core/approximation.hpp"
#include "harness/linalg/exp.hpp"

namespace attnbench {

// Counts and value sums of the keys on each code.
template <class T>
struct CodeSums {
  CodeSums(Index codes, Index dv) : counts(Matrix<T>::Zero(codes, 1)), values(Matrix<T>::Zero(codes, dv)) {}

  void add(Index code, const In<T>& V, Index j) {
    counts(code, 0) += 1;
    values.row(code) += V.row(j);
  }
  void add(const CodeSums& other) {
    counts += other.counts;
    values += other.values;
  }

  Matrix<T> counts;  // c x 1
  Matrix<T> values;  // c x dv
};

// The sums over all keys, computed in parts and added in order; the number of parts depends on the sizes alone.
template <class T>
CodeSums<T> sums_of(Context& context, const std::vector<Index>& codes, const In<T>& V, Index count) {
  const Index keys = static_cast<Index>(codes.size());
  constexpr Index most_parts = 8;
  const Index block = std::max({Index(2048), 4 * count, (keys - 1) / most_parts + 1});
  std::vector<CodeSums<T>> parts(static_cast<size_t>((keys - 1) / block + 1), {count, V.cols()});
  context.for_blocks(keys, block, [&](Context&, Index begin, Index own) {
    auto& part = parts[static_cast<size_t>(begin / block)];
    for (Index j = begin; j < begin + own; ++j) part.add(codes[static_cast<size_t>(j)], V, j);
  });
  for (size_t part = 1; part < parts.size(); ++part) parts[0].add(parts[part]);
  return std::move(parts[0]);
}

// Decoder: counts and value sums of the tokens so far, c (dv + 1) numbers. It refers to the method's codebook.
template <class T>
class CodeDecoder final : public Decoder<T> {
 public:
  CodeDecoder(const Matrix<T>& codebook, const std::vector<T>& half_norms, Index dv)
      : codebook_(codebook), half_norms_(half_norms), sums_(codebook.rows(), dv), weights_(1, codebook.rows()) {}

  void prefill(const Head<T>& tokens, Context& context) override {
    const auto codes = nearest_codes<T>(context, tokens.K, codebook_, half_norms_);
    for (size_t j = 0; j < codes.size(); ++j) sums_.add(codes[j], tokens.V, static_cast<Index>(j));
  }

  void step(const Head<T>& token, Context& context, Out<T> out) override {
    prefill(token, context);
    multiply_transposed<T>(context, token.Q, codebook_, weights_);
    auto weights = weights_.row(0).array();
    const auto used = sums_.counts.col(0).transpose().array() > 0;
    const T largest = used.select(weights, -std::numeric_limits<T>::infinity()).maxCoeff();
    // The logit of a code without keys may exceed `largest`: clamp it so that exp stays finite, then use 0.
    weights = used.select(exponential((weights - largest).min(T(0))), T(0));
    context.work.exps += static_cast<double>(weights.size());
    T normaliser;
    multiply<T>(context, weights_, sums_.counts, Out<T>(&normaliser, 1, 1, 1));
    multiply<T>(context, weights_, sums_.values, out);
    out /= normaliser;
  }

  size_t bytes() const override { return static_cast<size_t>(sums_.counts.size() + sums_.values.size()) * sizeof(T); }

 private:
  const Matrix<T>& codebook_;
  const std::vector<T>& half_norms_;
  CodeSums<T> sums_;
  Matrix<T> weights_;  // 1 x c
};

}  // namespace attnbench
