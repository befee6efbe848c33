// The interface of a method, and its registry entry.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/core/problem.hpp"
#include "harness/core/registry.hpp"
#include "harness/core/theory.hpp"
#include "harness/linalg/context.hpp"
#include "harness/random/streams.hpp"

namespace attnbench {

// K_ij = exp(log_rows_i + log_columns_j) block_ij estimates the weight that the method uses instead of exp(q_i.k_j),
// before normalisation. block is nq x nk. The caller that normalises applies the mask.
template <class T>
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void kernel(const Head<T>& head, Context&, Out<T> block, std::span<T> log_rows,
                      std::span<T> log_columns) const = 0;
  // Only the diagonal, K_ii = value_i exp(log_scale_i), for nq = nk.
  virtual void diagonal(const Head<T>& head, Context&, std::span<T> values, std::span<T> log_scale) const;
  // sum_j K_ij over the keys that row i sees, as value_i exp(log_scale_i).
  virtual void normalisers(const Head<T>& head, Mask, Context&, std::span<T> values, std::span<T> log_scale) const;
};

// A = L R^T without forming A: L is nq x F, R is nk x F. Only for masks without causality.
template <class T>
class Factored {
 public:
  virtual ~Factored() = default;
  virtual void factors(const Head<T>& head, Mask, Context&, Matrix<T>& L, Matrix<T>& R) const = 0;
};

// Rows [first, first + A.rows()) of the attention matrix; A has nk columns.
template <class T>
class Rows {
 public:
  virtual ~Rows() = default;
  virtual void attention_rows(const Head<T>& head, Mask, Index first, Context&, Out<T> A) const = 0;
  // out = A^T G for G nq x b, out nk x b. The default works on blocks of rows, with O(block nk + nk b) memory per
  // thread.
  virtual void transposed_times(const Head<T>& head, Mask, const In<T>& G, Context&, Out<T> out) const;
};

// The keys to which a sparse method gives weight; all other entries of A are 0.
template <class T>
class Pattern {
 public:
  virtual ~Pattern() = default;
  // Sets keys[i] to the keys of row first + i, ascending, without those that the mask hides, for i < keys.size().
  virtual void keys_of_rows(const Head<T>& head, Mask, Index first, Context&,
                            std::span<std::vector<Index>> keys) const = 0;
};

// How a method without an attention matrix mixes tokens: M_ij = d out_ic / d V_jc, nq x nk, for one column c.
template <class T>
class TokenMixing {
 public:
  virtual ~TokenMixing() = default;
  virtual void token_jacobian(const Head<T>& head, Mask, Index column, Context&, Out<T> M) const = 0;
};

// Attention to one token after another, as a model computes it during generation. Row t equals row t of causal
// attention over the tokens so far.
template <class T>
class Decoder {
 public:
  virtual ~Decoder() = default;
  // Takes in a block of earlier tokens at once. Positions continue after those taken in already.
  virtual void prefill(const Head<T>& tokens, Context&) = 0;
  // False: prefill is one step after another, and as slow.
  virtual bool takes_prompts() const { return true; }
  // Takes in the next token (q and k 1 x d, v 1 x dv), then writes its row of the output (1 x dv).
  virtual void step(const Head<T>& token, Context&, Out<T> out) = 0;
  // Bytes kept from one step to the next: keys and values, or a state of constant size.
  virtual size_t bytes() const = 0;
};

// Gradients of a loss with respect to Q, K and V, each of the same shape as its matrix. They are overwritten, not added
// to.
template <class T>
struct Gradients {
  Out<T> Q, K, V;
};

// Attention with a hand-written backward pass. The loss enters through G (nq x dv), its gradient with respect to out.
template <class T>
class Differentiable {
 public:
  virtual ~Differentiable() = default;
  // Computes the same as attend, and saves in `saved` the O(nq) numbers that the backward pass needs.
  virtual void forward(const Head<T>& head, Mask mask, Context& context, Out<T> out, std::vector<T>& saved) const = 0;
  virtual void backward(const Head<T>& head, Mask mask, const In<T>& out, const std::vector<T>& saved, const In<T>& G,
                        Context& context, Gradients<T> gradients) const = 0;
};

// One drawn and fitted method for one head. The constructor draws; afterwards everything is const, so an instance gives
// the same numbers however often and from however many threads it is called.
template <class T>
class Approximation {
 public:
  virtual ~Approximation() = default;
  // out = A V, nq x dv: the path that is timed. A row without a visible key, or without a key of non-zero weight, is 0.
  virtual void attend(const Head<T>& head, Mask mask, Context& context, Out<T> out) const = 0;
  // The drawn or fitted tensors, such as projections and codebooks. Draw::state makes the same instance from them.
  virtual Tensors state() const { return {}; }
  // Further abilities of this instance. If one is null, an experiment that needs it skips, with the reason.
  virtual const Kernel<T>* kernel() const { return nullptr; }
  virtual const Factored<T>* factored() const { return nullptr; }
  virtual const Rows<T>* rows() const { return nullptr; }
  virtual const Pattern<T>* pattern() const { return nullptr; }
  virtual const TokenMixing<T>* mixing() const { return nullptr; }
  virtual const Differentiable<T>* differentiable() const { return nullptr; }
  // A decoder that has taken in no token yet, for at most shape.nk tokens (shape.d and shape.dv are a token's). It
  // refers to this instance, which must outlive it.
  virtual std::unique_ptr<Decoder<T>> decoder(const Shape&) const { return nullptr; }
};

// Everything that a constructor may use. calibration: a head that fitted methods learn from (scaled, like Head).
struct Draw {
  Shape shape;
  const Params& params;
  Streams streams;
  Index head = 0;
  Index replicate = 0;
  const Head<double>* calibration = nullptr;
  const Tensors* state = nullptr;
  Index layer = 0, layers = 1;  // the place of the head in a model, where it is known

  // The same draw for a method inside this one, whose parameters must outlive it.
  Draw with(const Params& other) const {
    return {shape, other, streams, head, replicate, calibration, state, layer, layers};
  }
  // The injected tensor of that name and shape, or null if none was injected. Throws Misuse for a wrong shape.
  const Matrix<double>* injected(const std::string& name, Index rows, Index columns) const;
};

// How attend makes its output from the weights K of its kernel. row_sums: out_i = sum_j K_ij v_j / sum_j K_ij. none:
// out = K V. l2: each row of K V is divided by its Euclidean length.
enum class Normaliser { row_sums, none, l2 };

inline constexpr const char* exact_always = "always";  // of Claims::exact_when

// The promises of a spec, given its parameters. Tests check all of them for every registered method. Parameters that
// reproduce a published library's behaviour (Parameter::published) change no claim: `check` shows which claims they
// break.
struct Claims {
  bool row_stochastic = false;           // rows of A sum to one
  bool non_negative = false;             // entries of A are >= 0
  bool permutation_equivariant = false;  // reordering keys with their values changes nothing
  std::string no_form;                   // why this shape and mask have no form; empty: they have one
  bool equal_keys = false;               // where all keys are equal, each row is the mean of the values that it sees
  bool causal_exact = false;             // with a causal mask, row i depends on keys j <= i only
  bool linear_in_V = true;               // attend(Q, K, aV + bW) = a attend(Q, K, V) + b attend(Q, K, W)
  bool scales_with_V = false;            // of a method that is not linear in V: attend(Q, K, 4V) = 4 attend(Q, K, V)
  std::string no_attention_matrix;       // why no A satisfies out = A V; empty: one does
  std::optional<Index> rank_at_most;     // of A without a causal mask
  // A parameter assignment that makes the method equal to softmax attention ("top=1000000000"), or to the method after
  // "is" ("landmarks=96 is kernelized-attention:scale=2"), or exact_always, if it is softmax for every value.
  // Semicolons part several cases.
  std::string exact_when;
  Normaliser normaliser = Normaliser::row_sums;  // of the weights that kernel() gives
  bool mixes_heads = false;                      // several heads in one call (AllHeads) are more than each by itself
  std::string no_extremes = {};  // why extreme Q and K give infinite numbers or lose all keys; empty: they do not
  // The claims that hold by construction, by the names that `check` gives them, and by what: {"rank", "the number of
  // its features"}.
  std::map<std::string, std::string> implied = {};
};

// An input that a method needs beside Q, K and V, and that an input of the registry or a file may provide.
struct Need {
  // How `check` fills it, and every caller that is not given positions: normal numbers, uniform ones between 0 and 1,
  // or the number of each row from 0, which for queries continues that of the earlier keys.
  enum class Values { normal, uniform, positions };

  std::string name;                       // "gate"
  std::string rows = "n", columns = "1";  // n (one a key), nq (one a query), d, dv, or a number
  Values values = Values::normal;
  std::string meaning = {};                       // one line, for `describe`
  std::pair<std::string, std::string> when = {};  // a parameter and the value with which it is needed; empty: always
};

// The output of attend, nq x dv, in double by the plain formula and by none of the method's own code. `drawn` is an
// instance of this draw; what was drawn or fitted is read from drawn.state().
using Transcription = std::function<Matrix<double>(const Draw& draw, const Approximation<double>& drawn,
                                                   const Head<double>& head, Mask mask)>;

// Numbers of the authors' own code: an output, nq x dv, and the head that gave it. A transcription shares its author's
// misreadings of the paper, and these numbers do not.
struct Golden {
  std::string name;  // "softpick.npz"
  HeadData<double> head;
  Mask mask;
  Matrix<double> out;
  double spacing;  // of the numbers at 1: that of the type in which they were computed
};

template <class T>
using MakeApproximation = std::function<std::unique_ptr<Approximation<T>>(const Draw&)>;

// The defaults of an entry. They are functions because each file that registers a method would otherwise compile them
// again: with Registry and add below a quarter of the time of a short method.
using TheoryOf =
    std::function<std::optional<KernelTheory>(const Params&, const Shape&, const Head<double>* calibration)>;
std::function<bool(const Params&)> never_fitted();
TheoryOf no_theory();
std::function<void(const Params&)> no_check();
std::function<std::vector<std::string>(const Params&, const Shape&)> no_caveats();

struct MethodEntry {
  static constexpr const char* kind = "method";
  static constexpr const char* plural = "methods";

  Description text;
  std::vector<Parameter> parameters;
  MakeApproximation<float> f32;
  MakeApproximation<double> f64;
  std::function<Claims(const Params&, const Shape&)> claims;
  // Peak bytes of one attend on one thread beyond inputs, output and the instance's own state: leading terms.
  std::function<double(const Params&, const Shape&)> memory;
  std::function<Work(const Params&, const Shape&)> cost;  // analytic, of one attend (methods.md H)
  // Where the data decide how much attend does: its fewest FLOPs, `cost` being the most. Empty: they do not.
  std::function<double(const Params&, const Shape&)> least_flops = {};
  bool memory_assumed = false, cost_assumed = false;  // the author of a Python class gave none
  bool asks_for_seed = false;                         // a class in Python whose constructor names a seed
  // Asks a worker for a cost that must be measured (harness/experiment/measured_cost.hpp). Empty: this process may call
  // the method itself.
  std::function<std::optional<double>(const std::string& what, const Params&, const Shape&)> measured = {};
  // Bytes that a decoder keeps after shape.nk tokens. Empty: only Decoder::bytes knows.
  std::function<double(const Params&, const Shape&)> decoder_bytes = {};
  // Whether this spec learns from the calibration head.
  std::function<bool(const Params&)> fitted = never_fitted();
  // The theory of the kernel estimate, when the spec learns from that head (null: the head is not known yet, and
  // everything that depends on it is left out). nullopt: no kernel is estimated, or no theory is known.
  TheoryOf theory = no_theory();
  // The inputs beside Q, K and V that attend reads by Head::needed.
  std::vector<Need> needs = {};
  // The second path that proves the formula (`check`). Empty: the method gives none.
  Transcription transcription = {};
  // Outputs of the authors' code for these parameters. Empty: the method has no such numbers.
  std::function<std::vector<Golden>(const Params&)> golden = {};
  // Throws Misuse for values that contradict each other, before anything is drawn.
  std::function<void(const Params&)> check = no_check();
  // Warnings for a user of this spec, such as padding, imbalance, or known harm.
  std::function<std::vector<std::string>(const Params&, const Shape&)> caveats = no_caveats();
};

extern template class Registry<MethodEntry>;

// Throws Misuse unless attend of that spec divides the weights of its kernel by their row sums. `user`: the method that
// mixes these weights with others.
void require_row_sums(const Params& base, const std::string& user);

// Checks the shape, throwing Misuse (sizes) or Skip (no form for that mask), then draws.
template <class T>
std::unique_ptr<Approximation<T>> make_approximation(const Draw& draw);

// Completes the entry with both scalar types of one class template: method<Softmax>({...}). Static, because gcc 12
// gives instances for a class template of an unnamed namespace external linkage: two files with classes of one name
// would both get the first file's class.
template <template <class> class Method>
static MethodEntry method(MethodEntry entry) {
  entry.f32 = [](const Draw& draw) { return std::make_unique<Method<float>>(draw); };
  entry.f64 = [](const Draw& draw) { return std::make_unique<Method<double>>(draw); };
  return entry;
}

}  // namespace attnbench
