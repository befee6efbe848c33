// Recurrences. methods.md V. The attention matrix itself: entry (i, j) follows the value of token j through all later
// tokens to the query of row i, or the query back through them.
#include "tests/oracle/transcription.hpp"

namespace attnbench::oracle {

namespace {

Real softplus(Real z) { return std::log1p(std::exp(-std::abs(z))) + std::max(z, Real(0)); }
Real logistic(Real z) { return 1 / (1 + std::exp(-z)); }

// The gates of each token: keep, tokens x d, and write, tokens.
struct Tokens {
  Table keep;
  std::vector<Real> write;
};

Tokens nothing_forgotten(const HeadData<double>& head) {
  Tokens tokens{Table(head.K.rows(), head.K.cols()), std::vector<Real>(static_cast<size_t>(head.K.rows()), 1)};
  std::fill(tokens.keep.entries.begin(), tokens.keep.entries.end(), Real(1));
  return tokens;
}

Real given(const HeadData<double>& head, const std::string& name, Index t, Index c) {
  return static_cast<Real>(head.extra.at(name).numbers(t, c));
}

Table unit_rows(const Matrix<double>& X) {
  Table Y = table(X);
  for (Index i = 0; i < Y.rows; ++i) {
    Real square = 0;
    for (Index c = 0; c < Y.columns; ++c) square += Y(i, c) * Y(i, c);
    for (Index c = 0; c < Y.columns && square > 0; ++c) Y(i, c) /= std::sqrt(square);
  }
  return Y;
}

// entries(row, last, A_i, M_i): row i of A after token `last`, and the sums of absolute terms of its entries.
template <class Entries>
Answer rows_of(const HeadData<double>& head, Mask mask, const Entries& entries) {
  const Index nq = head.Q.rows(), nk = head.K.rows(), dv = head.V.cols();
  Answer answer{Matrix<double>::Zero(nq, nk), Matrix<double>::Zero(nq, dv),
                std::vector<double>(static_cast<size_t>(nq), 1)};
  for (Index i = 0; i < nq; ++i) {
    Index last = -1;
    while (last + 1 < nk && sees(mask, i, last + 1)) ++last;
    if (last < 0) continue;
    std::vector<Real> A(static_cast<size_t>(nk), 0), M(static_cast<size_t>(nk), 0), out(static_cast<size_t>(dv), 0);
    entries(i, last, A, M);
    Real terms = 1;
    for (Index j = 0; j <= last; ++j) {
      answer.A(i, j) = static_cast<double>(A[static_cast<size_t>(j)]);
      terms += M[static_cast<size_t>(j)];
      for (Index c = 0; c < dv; ++c)
        out[static_cast<size_t>(c)] += A[static_cast<size_t>(j)] * static_cast<Real>(head.V(j, c));
    }
    for (Index c = 0; c < dv; ++c) answer.out(i, c) = static_cast<double>(out[static_cast<size_t>(c)]);
    answer.condition[static_cast<size_t>(i)] = static_cast<double>(terms);
  }
  return answer;
}

// sum over channels of q_c k_c times the gates between, times the strength of writing.
Answer gated(const Tokens& tokens, const HeadData<double>& head, Mask mask) {
  return rows_of(head, mask, [&](Index i, Index last, std::vector<Real>& A, std::vector<Real>& M) {
    for (Index c = 0; c < head.K.cols(); ++c) {
      Real between = static_cast<Real>(head.Q(i, c));
      for (Index j = last; j >= 0; --j) {
        const Real term = between * static_cast<Real>(head.K(j, c)) * tokens.write[static_cast<size_t>(j)];
        A[static_cast<size_t>(j)] += term;
        M[static_cast<size_t>(j)] += std::abs(term);
        between *= tokens.keep(j, c);
      }
    }
  });
}

// The query back through the tokens: y_t-1 = D_t (y_t - w_t k_t (k_t.y_t)), and A_ij = w_j k_j.y_j.
Answer by_delta_rule(const Tokens& tokens, const HeadData<double>& head, Mask mask) {
  const Table Q = unit_rows(head.Q), K = unit_rows(head.K);
  return rows_of(head, mask, [&](Index i, Index last, std::vector<Real>& A, std::vector<Real>& M) {
    Table y(1, Q.columns);
    for (Index c = 0; c < Q.columns; ++c) y(0, c) = Q(i, c);
    for (Index j = last; j >= 0; --j) {
      const Real weight = tokens.write[static_cast<size_t>(j)] * dot(y, 0, K, j);
      A[static_cast<size_t>(j)] = weight;
      for (Index c = 0; c < Q.columns; ++c) {
        M[static_cast<size_t>(j)] += tokens.write[static_cast<size_t>(j)] * std::abs(y(0, c) * K(j, c));
        y(0, c) = tokens.keep(j, c) * (y(0, c) - weight * K(j, c));
      }
    }
  });
}

Real logit(const Tensors& state, Index gate, const Matrix<double>& X, Index row) {
  return dot(state.at("W"), gate, X, row);
}

void set_keep(Tokens& tokens, Index t, Real keep) {
  for (Index c = 0; c < tokens.keep.columns; ++c) tokens.keep(t, c) = keep;
}

// Of a draw for head 0, as all of the tests'.
Answer retnet(const Params& params, const Tensors&, const HeadData<double>& head, Mask mask) {
  Tokens tokens = nothing_forgotten(head);
  const Real gamma =
      params.text("slope") == "by-head" ? 1 - Real(1) / 32 : std::exp(-static_cast<Real>(params.real("slope")));
  for (Index t = 0; t < head.K.rows(); ++t) set_keep(tokens, t, gamma);
  return gated(tokens, head, mask);
}

Answer gla(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask) {
  Tokens tokens = nothing_forgotten(head);
  for (Index t = 0; t < head.K.rows(); ++t)
    for (Index c = 0; c < head.K.cols(); ++c)
      tokens.keep(t, c) = params.text("gates") == "given"
                              ? given(head, "keep_channels", t, c)
                              : std::pow(logistic(logit(state, c, head.K, t)), Real(1) / 16);
  return gated(tokens, head, mask);
}

Answer mamba2(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask) {
  Tokens tokens = nothing_forgotten(head);
  for (Index t = 0; t < head.K.rows(); ++t) {
    const bool are_given = params.text("gates") == "given";
    const Real step = are_given ? given(head, "write", t, 0) : softplus(logit(state, 0, head.K, t) - 3);
    set_keep(tokens, t, are_given ? given(head, "keep", t, 0) : std::exp(-step));
    tokens.write[static_cast<size_t>(t)] = step;
  }
  return gated(tokens, head, mask);
}

Answer deltanet(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask) {
  Tokens tokens = nothing_forgotten(head);
  for (Index t = 0; t < head.K.rows(); ++t)
    tokens.write[static_cast<size_t>(t)] =
        params.text("gates") == "given" ? given(head, "write", t, 0) : logistic(logit(state, 0, head.K, t));
  return by_delta_rule(tokens, head, mask);
}

Tokens forgetting(const Params& params, const Tensors& state, const HeadData<double>& head) {
  Tokens tokens = nothing_forgotten(head);
  for (Index t = 0; t < head.K.rows(); ++t) {
    const bool are_given = params.text("gates") == "given";
    set_keep(tokens, t, are_given ? given(head, "keep", t, 0) : std::exp(-softplus(logit(state, 0, head.K, t) - 3)));
    tokens.write[static_cast<size_t>(t)] =
        are_given ? given(head, "write", t, 0) : logistic(logit(state, 1, head.K, t));
  }
  return tokens;
}

Answer gated_deltanet(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask) {
  return by_delta_rule(forgetting(params, state, head), head, mask);
}

// x = (G + ridge I)^-1 q by elimination, and A_ij = (the weight of token j in G) k_j.x.
Answer mesanet(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask) {
  const Tokens tokens = forgetting(params, state, head);
  const Table Q = unit_rows(head.Q), K = unit_rows(head.K);
  const Index d = K.columns;
  return rows_of(head, mask, [&](Index i, Index last, std::vector<Real>& A, std::vector<Real>& M) {
    std::vector<Real> weight(static_cast<size_t>(last + 1));
    Real between = 1, trace = 0;
    for (Index j = last; j >= 0; --j) {
      weight[static_cast<size_t>(j)] = between * tokens.write[static_cast<size_t>(j)];
      trace += weight[static_cast<size_t>(j)];
      between *= tokens.keep(j, 0);
    }
    Table G(d, d), x(1, d);
    for (Index a = 0; a < d; ++a) {
      x(0, a) = Q(i, a);
      G(a, a) = static_cast<Real>(params.real("ridge"));
      for (Index b = 0; b < d; ++b)
        for (Index j = 0; j <= last; ++j) G(a, b) += weight[static_cast<size_t>(j)] * K(j, a) * K(j, b);
    }
    for (Index a = 0; a < d; ++a)  // positive definite: no pivots are needed
      for (Index b = a + 1; b < d; ++b) {
        const Real factor = G(b, a) / G(a, a);
        for (Index c = a; c < d; ++c) G(b, c) -= factor * G(a, c);
        x(0, b) -= factor * x(0, a);
      }
    for (Index a = d - 1; a >= 0; --a) {
      for (Index b = a + 1; b < d; ++b) x(0, a) -= G(a, b) * x(0, b);
      x(0, a) /= G(a, a);
    }
    const Real condition = 1 + trace / static_cast<Real>(params.real("ridge"));
    for (Index j = 0; j <= last; ++j) {
      A[static_cast<size_t>(j)] = weight[static_cast<size_t>(j)] * dot(x, 0, K, j);
      M[static_cast<size_t>(j)] = condition * std::abs(A[static_cast<size_t>(j)]);
    }
  });
}

Index level(Index p, Index j) {
  Index bits = 0;
  while (p >> bits != j >> bits) ++bits;
  return bits;
}

Answer log_linear(const Params&, const Tensors& state, const HeadData<double>& head, Mask mask) {
  return rows_of(head, mask, [&](Index i, Index last, std::vector<Real>& A, std::vector<Real>& M) {
    for (Index j = 0; j <= last; ++j) {
      const Real lambda = softplus(logit(state, level(last, j), head.Q, i)) / std::log(Real(2));
      A[static_cast<size_t>(j)] = lambda * dot(head.Q, i, head.K, j);
      for (Index c = 0; c < head.K.cols(); ++c)
        M[static_cast<size_t>(j)] +=
            lambda * std::abs(static_cast<Real>(head.Q(i, c)) * static_cast<Real>(head.K(j, c)));
    }
  });
}

const bool registered =
    add({.method = "retnet", .attention = retnet}) && add({.method = "gla", .attention = gla}) &&
    add({.method = "mamba-2", .attention = mamba2}) && add({.method = "deltanet", .attention = deltanet}) &&
    add({.method = "gated-deltanet", .attention = gated_deltanet}) &&
    add({.method = "mesanet", .attention = mesanet}) && add({.method = "log-linear", .attention = log_linear});

}  // namespace

}  // namespace attnbench::oracle
