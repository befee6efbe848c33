// The engine of recurrences: linear attention whose state forgets, and which may erase what it holds for a key before
// it writes a new value. One token t after another,
//   S_t = D_t S_t-1 + k_t u_t^T,  u_t = w_t (v_t - S_t-1^T D_t k_t),  out_t = S_t^T q_t              methods.md V
// S is d x dv and starts at 0. D_t = diag(keep_t), with one gate for the whole state or one a channel of the keys, and
// w_t is the strength of writing. Without the delta rule u_t = w_t v_t. Row i of a head reads the state after the last
// token that it sees; a row that sees none is 0. Rows are not normalised.
//
// A chunk of tokens is taken in at once. With Gamma_ts = D_s+1 ... D_t and the state S_0 before the chunk,
//   S_t = Gamma_t0 S_0 + sum_(s <= t) Gamma_ts k_s u_s^T
// so that outputs are q_t Gamma_t0 S_0 + sum_s (q_t Gamma_ts k_s) u_s^T, and the delta rule is the triangular system
//   u_t + w_t sum_(s < t) (k_t Gamma_ts k_s) u_s = w_t (v_t - S_0^T Gamma_t0 k_t)
// Gamma is built by products of gates, not as a quotient of products from the start: a gate of 0 is exact, and nothing
// overflows. O(n (d dv + chunk (d + dv))) time, O(d dv + chunk (d + dv + chunk)) memory beside the gates.
#pragma once

#include "approximations/recurrences/gates.hpp"
#include "harness/core/approximation.hpp"

namespace attnbench {

// The state of one head.
template <class T>
class RecurrentState {
 public:
  RecurrentState(Index d, Index dv, bool erases) : S_(Matrix<T>::Zero(d, dv)), erases_(erases) {}

  // Takes in a chunk of tokens. Query i reads the state after token first + i of the chunk; Q may have no rows.
  void take_in(const In<T>& K, const In<T>& V, const In<T>& keep, const In<T>& write, const In<T>& Q, Index first,
               Context&, Out<T> out);
  // Rows that read the state as it is now.
  void read(const In<T>& Q, Context& context, Out<T> out) const { multiply<T>(context, Q, S_, out); }
  const Matrix<T>& S() const { return S_; }

 private:
  Matrix<T> S_;
  bool erases_;
};

template <class T>
class Recurrence : public Approximation<T>, public Differentiable<T> {
 public:
  struct Form {
    bool erases = false;       // the delta rule
    bool unit_length = false;  // keys and queries are divided by their lengths
    Index gates = 0;           // logits of gates, a number a token, that come from a law unless the head has gates
  };
  Recurrence(const Draw& draw, Form form) : chunk_(draw.params.integer("chunk")), form_(form) {
    if (form.gates > 0 && !are_given(draw.params)) law_.emplace(draw, form.gates);
  }

  Tensors state() const override { return law_ ? law_->state() : Tensors(); }
  void attend(const Head<T>&, Mask, Context&, Out<T> out) const override;
  std::unique_ptr<Decoder<T>> decoder(const Shape&) const override;
  const Differentiable<T>* differentiable() const override { return this; }
  void forward(const Head<T>& head, Mask mask, Context& context, Out<T> out, std::vector<T>& saved) const override {
    saved.clear();
    attend(head, mask, context, out);
  }
  void backward(const Head<T>&, Mask, const In<T>& out, const std::vector<T>& saved, const In<T>& G, Context&,
                Gradients<T>) const override;

 protected:
  // Null when the head has the gates.
  const GateLogits<T>* law() const { return law_ ? &*law_ : nullptr; }
  // Of every key of the head.
  virtual Gates<T> gates(const Head<T>& head, Context&) const = 0;
  // Adds to dK what the gates pass on. slopes: dL/d keep and dL/d write, of the shapes of the gates.
  virtual void pull_gates(const Head<T>& head, const Gates<T>& gates, const Gates<T>& slopes, Context&,
                          Out<T> dK) const {
    (void)head, (void)gates, (void)slopes, (void)dK;
  }

 private:
  class Decoding;

  Matrix<T> prepared(const In<T>& X) const;  // of unit length, or a copy
  // Turns the gradient of rows Y of unit length into that of the rows X that they come from.
  static void pull_length(const In<T>& X, const Matrix<T>& Y, Out<T> slopes);

  Index chunk_;
  Form form_;
  std::optional<GateLogits<T>> law_;
};

// Shared by the entries of this family.
Parameter chunk_parameter();
Claims recurrence_claims(const Shape& shape);
// channels: whether the gates are one a channel.
Work recurrence_cost(const Params& params, const Shape& shape, bool channels, bool erases);
double recurrence_memory(const Params& params, const Shape& shape, bool channels, bool erases);

}  // namespace attnbench
