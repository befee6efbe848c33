// The parts of a random row, for methods that can give them: sums over sampled keys and the law of the draws, or
// estimated logits; and rows that are unbiased as a whole. The first two are two abilities for two claims, because an
// estimate without bias in the logits has one in the weights: E exp(l + e) = exp(l) E exp(e), which is exp(l + Var e /
// 2) for normal e. methods.md S.
#pragma once

#include "harness/core/approximation.hpp"

namespace attnbench {

// How the keys of one row are drawn. Each draw of key j adds exp(q.k_j) v_j / (s p_j) to the numerator of the row and
// exp(q.k_j) / (s p_j) to its denominator, where s is the number of draws.
struct SamplingLaw {
  enum class Draws {
    independent,  // from p, with replacement
    stratified,   // one from each of the s parts of probability 1/s that the keys have in their order
    distinct      // min(s, n) different keys, all sets alike: p_j = 1/n
  };
  std::vector<double> p;  // of each key that the row sees; they sum to one. Empty: it sees none
  Index samples = 0;      // s
  Draws draws = Draws::independent;
};

// Second base class, beside Approximation, of methods whose rows are quotients of sums over sampled keys. The closed
// forms (harness/theory/sampling_law.hpp), their overlay in figures and the claims on mean and variance follow from
// law().
template <class T>
class SampledRows {
 public:
  virtual ~SampledRows() = default;
  // The law of this row of the head.
  virtual SamplingLaw law(const Head<T>& head, Mask mask, Index row) const = 0;
  // The sums whose quotient is row first + i of attend, for i < numerators.rows():
  //   numerators_i exp(log_scale_i) estimates sum_j exp(q.k_j) v_j, and denominators_i exp(log_scale_i)
  //   sum_j exp(q.k_j). All three are 0 if the row sees no key.
  virtual void sums(const Head<T>& head, Mask mask, Index first, Context& context, Out<T> numerators,
                    std::span<T> denominators, std::span<T> log_scale) const = 0;
};

// Null if the method samples no keys.
template <class T>
const SampledRows<T>* sampled_rows(const Approximation<T>& method) {
  return dynamic_cast<const SampledRows<T>*>(&method);
}

// Second base class of methods whose weights are exponentials of estimated logits, as those of sketched or quantised
// keys. A method that offers it claims that its logits have no bias.
template <class T>
class EstimatedLogits {
 public:
  virtual ~EstimatedLogits() = default;
  // block_ij estimates q_i.k_j; block is nq x nk.
  virtual void logits(const Head<T>& head, Context& context, Out<T> block) const = 0;
};

// Null if the method estimates no logits.
template <class T>
const EstimatedLogits<T>* estimated_logits(const Approximation<T>& method) {
  return dynamic_cast<const EstimatedLogits<T>*>(&method);
}

// Second base class of methods whose rows are unbiased as a whole: the mean of attend over draws is the output of
// softmax. A method that derives from it claims `mean-rows`.
template <class T>
class UnbiasedRows {
 public:
  virtual ~UnbiasedRows() = default;
};

// Whether the method claims it.
template <class T>
bool has_unbiased_rows(const Approximation<T>& method) {
  return dynamic_cast<const UnbiasedRows<T>*>(&method) != nullptr;
}

}  // namespace attnbench
