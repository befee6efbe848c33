// The parts of a random row, for methods that can give them: sums whose means are softmax's, and for sampled keys the
// law of the draws; or estimated logits; and rows that are unbiased as a whole. The first two are two abilities for two
// claims, because an
// estimate without bias in the logits has one in the weights: E exp(l + e) = exp(l) E exp(e), which is exp(l + Var e /
// 2) for normal e. methods.md S.
#pragma once

#include "harness/core/approximation.hpp"

namespace attnbench {

// How the keys of one row are drawn. Each draw of key j adds exp(q.k_j) v_j / (s p_j) to the numerator of the row and
// exp(q.k_j) / (s p_j) to its denominator, where s is the number of draws. Keys may be added beside the draws, once and
// as they are; a draw of such a key adds nothing.
struct SamplingLaw {
  enum class Draws {
    independent,  // from p, with replacement
    stratified,   // one from each of the s parts of probability 1/s that the keys have in their order
    distinct,     // min(s, m) different keys of the m with p_j > 0, all sets alike: p_j = 1/m
    dependent     // in any other way: s p_j is the mean number of draws of key j, and only means have closed forms
  };
  // Of each key that the row sees. They sum to one, except for dependent draws. Empty: it sees none.
  std::vector<double> p;
  Index samples = 0;  // s
  Draws draws = Draws::independent;
  std::vector<bool> exact = {};  // of each key: added beside the draws. Empty: none is

  bool adds_exactly(Index key) const { return !exact.empty() && exact[static_cast<size_t>(key)]; }
  // Whether a draw may add anything.
  bool draws_keys() const {
    for (size_t j = 0; j < p.size(); ++j)
      if (p[j] > 0 && !adds_exactly(static_cast<Index>(j))) return true;
    return false;
  }
};

// Second base class, beside Approximation, of methods whose rows are quotients of random sums without bias. A method
// that derives from it claims `mean-weights`.
template <class T>
class UnbiasedSums {
 public:
  virtual ~UnbiasedSums() = default;
  // The sums whose quotient is row first + i of attend, for i < numerators.rows():
  //   numerators_i exp(log_scale_i) estimates sum_j exp(q.k_j) v_j, and denominators_i exp(log_scale_i)
  //   sum_j exp(q.k_j). All three are 0 if the row sees no key.
  virtual void sums(const Head<T>& head, Mask mask, Index first, Context& context, Out<T> numerators,
                    std::span<T> denominators, std::span<T> log_scale) const = 0;
  // Drawn tensors that are held, such as those of a hash, which decides on a law. Moments are over draws of the others.
  virtual std::vector<std::string> given() const { return {}; }
  // Parameters at which `check` tests the law, "bits=2,tables=6", where it would take too many draws at others. Empty:
  // a small budget will do.
  virtual std::string tested_at() const { return ""; }
};

// Null if the method gives no such sums.
template <class T>
const UnbiasedSums<T>* unbiased_sums(const Approximation<T>& method) {
  return dynamic_cast<const UnbiasedSums<T>*>(&method);
}

// The part of the state that given() names, for Draw::state of other draws.
template <class T>
Tensors given_state(const Approximation<T>& method, const UnbiasedSums<T>& sums) {
  Tensors state = method.state(), given;
  for (const std::string& name : sums.given()) given[name] = std::move(state.at(name));
  return given;
}

// The same for sums over sampled keys. The closed forms (harness/theory/sampling_law.hpp), their overlay in figures and
// the claims on variances follow from law().
template <class T>
class SampledRows : public UnbiasedSums<T> {
 public:
  // The law of this row of the head, given the tensors of state() that given() names.
  virtual SamplingLaw law(const Head<T>& head, Mask mask, Index row) const = 0;
};

// Null if the method samples no keys.
template <class T>
const SampledRows<T>* sampled_rows(const Approximation<T>& method) {
  return dynamic_cast<const SampledRows<T>*>(&method);
}

// Second base class of methods whose weights are exponentials of estimated logits, as those of sketched or quantised
// keys. A method that offers it claims that its logits have no bias, unless it says otherwise.
template <class T>
class EstimatedLogits {
 public:
  virtual ~EstimatedLogits() = default;
  // block_ij estimates q_i.k_j; block is nq x nk.
  virtual void logits(const Head<T>& head, Context& context, Out<T> block) const = 0;
  // Whether the mean of an estimate over draws is q.k.
  virtual bool unbiased() const { return true; }
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
