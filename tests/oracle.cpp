#include "tests/oracle.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <stdexcept>

namespace attnbench::oracle {

namespace {

using Real = long double;

struct Table {
  Table(Index row_count, Index column_count)
      : rows(row_count), columns(column_count), entries(static_cast<size_t>(row_count * column_count), 0) {}
  Real& operator()(Index i, Index j) { return entries[static_cast<size_t>(i * columns + j)]; }
  Real operator()(Index i, Index j) const { return entries[static_cast<size_t>(i * columns + j)]; }

  Index rows, columns;
  std::vector<Real> entries;
};

// weight_ij = value_ij exp(log_ij); magnitude_ij is the sum of the absolute terms that value_ij is the sum of.
struct Weights {
  Weights(Index nq, Index nk) : value(nq, nk), magnitude(nq, nk), log(nq, nk) {}
  Table value, magnitude, log;
};

Real dot(const Matrix<double>& X, Index i, const Matrix<double>& Y, Index j) {
  Real sum = 0;
  for (Index l = 0; l < X.cols(); ++l) sum += static_cast<Real>(X(i, l)) * static_cast<Real>(Y(j, l));
  return sum;
}

bool sees(Mask mask, Index i, Index j) {
  const bool padding = mask.keys >= 0 && j >= mask.keys;
  const bool future = mask.causal && j > i + mask.offset;
  return !padding && !future;
}

bool in_band(Mask mask, Index window, Index i, Index j) { return std::abs(i + mask.offset - j) <= window; }

using Set = std::function<bool(Index, Index)>;  // of pairs (query, key)

// A_ij = weight_ij / (sum of weight_il over the l in `normalised`) for the j in `kept`, 0 elsewhere.
Answer normalise(const Weights& weights, const HeadData<double>& head, const Set& normalised, const Set& kept) {
  const Index nq = weights.value.rows, nk = weights.value.columns, dv = head.V.cols();
  Answer answer{Matrix<double>::Zero(nq, nk), Matrix<double>::Zero(nq, dv),
                std::vector<double>(static_cast<size_t>(nq), 1)};
  for (Index i = 0; i < nq; ++i) {
    Real largest = -INFINITY, sum = 0, absolute = 0;
    for (Index j = 0; j < nk; ++j)
      if (normalised(i, j)) largest = std::max(largest, weights.log(i, j));
    if (largest == -INFINITY) continue;
    for (Index j = 0; j < nk; ++j)
      if (normalised(i, j)) {
        const Real scale = std::exp(weights.log(i, j) - largest);
        sum += weights.value(i, j) * scale;
        absolute += weights.magnitude(i, j) * scale;
      }
    if (sum == 0) continue;
    answer.condition[static_cast<size_t>(i)] = static_cast<double>(absolute / std::abs(sum));
    std::vector<Real> out(static_cast<size_t>(dv), 0);
    for (Index j = 0; j < nk; ++j)
      if (kept(i, j)) {
        const Real a = weights.value(i, j) * std::exp(weights.log(i, j) - largest) / sum;
        answer.A(i, j) = static_cast<double>(a);
        for (Index l = 0; l < dv; ++l) out[static_cast<size_t>(l)] += a * static_cast<Real>(head.V(j, l));
      }
    for (Index l = 0; l < dv; ++l) answer.out(i, l) = static_cast<double>(out[static_cast<size_t>(l)]);
  }
  return answer;
}

Answer normalise_visible(const Weights& weights, const HeadData<double>& head, Mask mask) {
  const Set visible = [=](Index i, Index j) { return sees(mask, i, j); };
  return normalise(weights, head, visible, visible);
}

// Weights exp(logit), all positive.
template <class Logit>
Weights exponential(Index nq, Index nk, const Logit& logit) {
  Weights weights(nq, nk);
  for (Index i = 0; i < nq; ++i)
    for (Index j = 0; j < nk; ++j) {
      weights.log(i, j) = logit(i, j);
      weights.value(i, j) = weights.magnitude(i, j) = 1;
    }
  return weights;
}

// methods.md 0.
Weights softmax_weights(const HeadData<double>& head) {
  return exponential(head.Q.rows(), head.K.rows(), [&](Index i, Index j) { return dot(head.Q, i, head.K, j); });
}

// exp(-|q - k|^2 / 2), the distance entry by entry. methods.md A7.
Weights gaussian_kernel_weights(const HeadData<double>& head) {
  return exponential(head.Q.rows(), head.K.rows(), [&](Index i, Index j) {
    Real distance = 0;
    for (Index l = 0; l < head.Q.cols(); ++l) {
      const Real difference = static_cast<Real>(head.Q(i, l)) - static_cast<Real>(head.K(j, l));
      distance += difference * difference;
    }
    return -distance / 2;
  });
}

// What a feature map is given: queries and keys, one a row.
struct Inputs {
  Table q, k;
};

using FeatureMapWeights = std::function<Weights(const Inputs&, const Tensors&, const Params&)>;

Table table(const Matrix<double>& X) {
  Table rows(X.rows(), X.cols());
  for (Index i = 0; i < X.rows(); ++i)
    for (Index l = 0; l < X.cols(); ++l) rows(i, l) = static_cast<Real>(X(i, l));
  return rows;
}

Real dot(const Table& X, Index i, const Matrix<double>& W, Index f) {
  Real sum = 0;
  for (Index l = 0; l < X.columns; ++l) sum += X(i, l) * static_cast<Real>(W(f, l));
  return sum;
}

Real absolute_dot(const Table& X, Index i, const Matrix<double>& W, Index f) {
  Real sum = 0;
  for (Index l = 0; l < X.columns; ++l) sum += std::abs(X(i, l) * static_cast<Real>(W(f, l)));
  return sum;
}

Real dot(const Table& X, Index i, const Table& Y, Index j) {
  Real sum = 0;
  for (Index l = 0; l < X.columns; ++l) sum += X(i, l) * Y(j, l);
  return sum;
}

Real count(const Matrix<double>& W) { return static_cast<Real>(W.rows()); }

// Weights sum_f exp(of_queries(i, f) + of_keys(j, f)). Extended precision holds exponents down to -11000, so taking out
// the largest exponent of a row is enough up to |omega| (|q| + |k|) of that size.
Weights of_exponents(Table of_queries, Table of_keys) {
  const auto exponentiate = [](Table& phi) {
    std::vector<Real> log_scale;
    for (Index i = 0; i < phi.rows; ++i) {
      Real largest = -INFINITY;
      for (Index f = 0; f < phi.columns; ++f) largest = std::max(largest, phi(i, f));
      for (Index f = 0; f < phi.columns; ++f) phi(i, f) = std::exp(phi(i, f) - largest);
      log_scale.push_back(largest);
    }
    return log_scale;
  };
  const auto log_q = exponentiate(of_queries), log_k = exponentiate(of_keys);
  Weights weights(of_queries.rows, of_keys.rows);
  for (Index i = 0; i < of_queries.rows; ++i)
    for (Index j = 0; j < of_keys.rows; ++j) {
      weights.value(i, j) = weights.magnitude(i, j) = dot(of_queries, i, of_keys, j);
      weights.log(i, j) = log_q[static_cast<size_t>(i)] + log_k[static_cast<size_t>(j)];
    }
  return weights;
}

// The same for exponents that are a function (X, row, feature) of both sides.
template <class Exponent>
Weights of_exponents(const Inputs& in, Index features, const Exponent& exponent) {
  const auto of = [&](const Table& X) {
    Table phi(X.rows, features);
    for (Index i = 0; i < X.rows; ++i)
      for (Index f = 0; f < features; ++f) phi(i, f) = exponent(X, i, f);
    return phi;
  };
  return of_exponents(of(in.q), of(in.k));
}

// Features of any sign, and beside each what its rounding is relative to.
struct Features {
  Features(Index rows, Index columns) : value(rows, columns), magnitude(rows, columns) {}
  Table value, magnitude;
};

// Weights exp(log_factor) sum_f of_queries(i, f) of_keys(j, f).
Weights of_values(const Features& of_queries, const Features& of_keys, Real log_factor) {
  Weights weights(of_queries.value.rows, of_keys.value.rows);
  for (Index i = 0; i < of_queries.value.rows; ++i)
    for (Index j = 0; j < of_keys.value.rows; ++j) {
      weights.value(i, j) = dot(of_queries.value, i, of_keys.value, j);
      weights.magnitude(i, j) = dot(of_queries.magnitude, i, of_keys.magnitude, j);
      weights.log(i, j) = log_factor;
    }
  return weights;
}

// methods.md A1: mean over omega of exp(omega.q - |q|^2/2) exp(omega.k - |k|^2/2).
Weights positive_weights(const Inputs& in, const Tensors& state, const Params&) {
  const Matrix<double>& W = state.at("projection");
  return of_exponents(in, W.rows(), [&](const Table& X, Index i, Index f) {
    return dot(X, i, W, f) - dot(X, i, X, i) / 2 - std::log(count(W)) / 2;
  });
}

// methods.md A3: the same with omega and with -omega, both over 2m.
Weights hyperbolic_weights(const Inputs& in, const Tensors& state, const Params&) {
  const Matrix<double>& W = state.at("projection");
  return of_exponents(in, 2 * W.rows(), [&](const Table& X, Index i, Index f) {
    const Real u = f < W.rows() ? dot(X, i, W, f) : -dot(X, i, W, f - W.rows());
    return u - dot(X, i, X, i) / 2 - std::log(2 * count(W)) / 2;
  });
}

// methods.md A5: (1-4A)^(d/4) exp(A |omega|^2 + (1-4A)^(1/2) omega.x - |x|^2/2).
Weights oprf_weights(const Inputs& in, const Tensors& state, const Params&) {
  const Matrix<double>& W = state.at("projection");
  const Real A = static_cast<Real>(state.at("a")(0, 0)), d = static_cast<Real>(W.cols());
  return of_exponents(in, W.rows(), [&](const Table& X, Index i, Index f) {
    return d / 4 * std::log(1 - 4 * A) + A * dot(W, f, W, f) + std::sqrt(1 - 4 * A) * dot(X, i, W, f) -
           dot(X, i, X, i) / 2 - std::log(count(W)) / 2;
  });
}

// methods.md A6: det(I-4A)^(1/4) exp(omega' A omega + omega' (I-4A)^(1/2) U' x - |x|^2/2), A diagonal.
Weights sderf_weights(const Inputs& in, const Tensors& state, const Params&) {
  const Matrix<double>&W = state.at("projection"), &a = state.at("a"), &U = state.at("U");
  const auto turned = [&](const Table& X) {  // rows U' x
    Table Y(X.rows, X.columns);
    for (Index i = 0; i < X.rows; ++i)
      for (Index l = 0; l < X.columns; ++l)
        for (Index c = 0; c < X.columns; ++c) Y(i, l) += static_cast<Real>(U(c, l)) * X(i, c);
    return Y;
  };
  const auto exponents = [&](const Table& X) {
    const Table Y = turned(X);
    Table phi(X.rows, W.rows());
    for (Index i = 0; i < X.rows; ++i)
      for (Index f = 0; f < W.rows(); ++f) {
        phi(i, f) = -dot(X, i, X, i) / 2 - std::log(count(W)) / 2;
        for (Index l = 0; l < X.columns; ++l) {
          const Real omega = static_cast<Real>(W(f, l)), width = 1 - 4 * static_cast<Real>(a(0, l));
          phi(i, f) += std::log(width) / 4 + (1 - width) / 4 * omega * omega + std::sqrt(width) * omega * Y(i, l);
        }
      }
    return phi;
  };
  return of_exponents(exponents(in.q), exponents(in.k));
}

// The inverse of a small matrix by elimination with pivoting.
Table inverse(Table M) {
  const Index d = M.rows;
  Table result(d, d);
  for (Index i = 0; i < d; ++i) result(i, i) = 1;
  for (Index c = 0; c < d; ++c) {
    Index pivot = c;
    for (Index i = c; i < d; ++i)
      if (std::abs(M(i, c)) > std::abs(M(pivot, c))) pivot = i;
    const Real head = M(pivot, c);
    for (Index l = 0; l < d; ++l) {
      std::swap(M(pivot, l), M(c, l));
      std::swap(result(pivot, l), result(c, l));
      M(c, l) /= head;
      result(c, l) /= head;
    }
    for (Index i = 0; i < d; ++i) {
      if (i == c) continue;
      const Real factor = M(i, c);
      for (Index l = 0; l < d; ++l) {
        M(i, l) -= factor * M(c, l);
        result(i, l) -= factor * result(c, l);
      }
    }
  }
  return result;
}

// methods.md 0: q' = q G, k' = k G^-T.
Inputs transformed(const Inputs& in, const Matrix<double>& G) {
  const Table back = inverse(table(G));
  Inputs out{Table(in.q.rows, in.q.columns), Table(in.k.rows, in.k.columns)};
  for (Index l = 0; l < G.cols(); ++l)
    for (Index c = 0; c < G.rows(); ++c) {
      for (Index i = 0; i < in.q.rows; ++i) out.q(i, l) += in.q(i, c) * static_cast<Real>(G(c, l));
      for (Index j = 0; j < in.k.rows; ++j) out.k(j, l) += in.k(j, c) * back(l, c);
    }
  return out;
}

// methods.md A6: OPRF of the transformed inputs; G is diagonal for SADERF.
Weights transformed_oprf_weights(const Inputs& in, const Tensors& state, const Params& params) {
  return oprf_weights(transformed(in, state.at("G")), state, params);
}

// methods.md A11, and exp of A7: exp(omega.x), with the norm factor of keys where the spec says so.
Weights simplified_weights(const Inputs& in, const Tensors& state, const Params& params) {
  const Matrix<double>& W = state.at("projection");
  const bool key_norm = params.has("key_norm") && params.flag("key_norm");
  const auto exponents = [&](const Table& X, bool norm) {
    Table phi(X.rows, W.rows());
    for (Index i = 0; i < X.rows; ++i)
      for (Index f = 0; f < W.rows(); ++f)
        phi(i, f) = dot(X, i, W, f) - (norm ? dot(X, i, X, i) / 2 : 0) - std::log(count(W)) / 2;
    return phi;
  };
  return of_exponents(exponents(in.q, false), exponents(in.k, key_norm));
}

// The mean over omega of cos(omega.(q - k)), methods.md A2, A7. The methods add cos cos and sin sin, each at most 1,
// hence the magnitude. The angles are taken once a token, then the cosine of their difference (in double: it is off by
// 1e-16, which no condition makes visible, and ten times faster).
Weights gaussian_weights(const Inputs& in, const Tensors& state, const Params&) {
  const Matrix<double>& W = state.at("projection");
  const auto angles = [&](const Table& X) {
    Table angle(X.rows, W.rows());
    for (Index i = 0; i < X.rows; ++i)
      for (Index f = 0; f < W.rows(); ++f) angle(i, f) = dot(X, i, W, f);
    return angle;
  };
  const Table of_q = angles(in.q), of_k = angles(in.k);
  Weights weights(in.q.rows, in.k.rows);
  for (Index i = 0; i < of_q.rows; ++i)
    for (Index j = 0; j < of_k.rows; ++j) {
      Real sum = 0;
      for (Index f = 0; f < W.rows(); ++f) sum += std::cos(static_cast<double>(of_q(i, f) - of_k(j, f)));
      weights.value(i, j) = sum / count(W);
      weights.magnitude(i, j) = 1;
    }
  return weights;
}

// methods.md A2: exp((|q|^2 + |k|^2)/2) times that.
Weights trig_weights(const Inputs& in, const Tensors& state, const Params& params) {
  Weights weights = gaussian_weights(in, state, params);
  for (Index i = 0; i < in.q.rows; ++i)
    for (Index j = 0; j < in.k.rows; ++j) weights.log(i, j) = (dot(in.q, i, in.q, i) + dot(in.k, j, in.k, j)) / 2;
  return weights;
}

// Weights of elementwise features: mean over omega of f(omega.q) f(omega.k), where f gets the number of the row of W.
// power: of omega.x, of whose terms' sizes the magnitude is made; 0 for bounded f.
template <class F>
Weights elementwise_weights(const Inputs& in, const Matrix<double>& W, int power, const F& f) {
  const auto of = [&](const Table& X) {
    Features phi(X.rows, W.rows());
    for (Index i = 0; i < X.rows; ++i)
      for (Index row = 0; row < W.rows(); ++row) {
        phi.value(i, row) = f(dot(X, i, W, row), row);
        phi.magnitude(i, row) = std::pow(absolute_dot(X, i, W, row), power);
      }
    return phi;
  };
  return of_values(of(in.q), of(in.k), -std::log(count(W)));
}

// methods.md A7.
template <class F>
auto generalised_weights(int power, const F& f) {
  return [=](const Inputs& in, const Tensors& state, const Params&) {
    return elementwise_weights(in, state.at("projection"), power, [&](Real u, Index) { return f(u); });
  };
}

// methods.md A7: sqrt(2) cos(omega.x + b).
Weights phase_weights(const Inputs& in, const Tensors& state, const Params&) {
  const Matrix<double>& phases = state.at("phases");
  return elementwise_weights(in, state.at("projection"), 0, [&](Real u, Index row) {
    return std::sqrt(Real(2)) * std::cos(u + static_cast<Real>(phases(0, row)));
  });
}

// methods.md A8: mean over features of prod_t (r_t.q)(r_t.k) / (N! P(N)).
Weights maclaurin_weights(const Inputs& in, const Tensors& state, const Params& params) {
  const Matrix<double>&degrees = state.at("degrees"), &vectors = state.at("vectors");
  const Real rate = static_cast<Real>(params.real("rate"));
  const bool poisson = params.text("degrees") == "poisson";
  const auto of = [&](const Table& X) {
    Features phi(X.rows, degrees.rows());
    for (Index i = 0; i < X.rows; ++i) {
      Index row = 0;
      for (Index f = 0; f < degrees.rows(); ++f) {
        const Index N = static_cast<Index>(degrees(f, 0));
        Real factorial = 1;
        for (Index t = 2; t <= N; ++t) factorial *= static_cast<Real>(t);
        const Real probability = poisson ? std::exp(-rate) * std::pow(rate, static_cast<Real>(N)) / factorial
                                         : std::pow(Real(2), -static_cast<Real>(N + 1));
        Real value = 1 / std::sqrt(factorial * probability), magnitude = value;
        for (Index t = 0; t < N; ++t, ++row) {
          value *= dot(X, i, vectors, row);
          magnitude *= absolute_dot(X, i, vectors, row);
        }
        phi.value(i, f) = value;
        phi.magnitude(i, f) = magnitude;
      }
    }
    return phi;
  };
  return of_values(of(in.q), of(in.k), -std::log(count(degrees)));
}

// methods.md A9: CountSketches convolved, of one power or of all terms of the series of exp.
Weights tensor_sketch_weights(const Inputs& in, const Tensors& state, const Params& params) {
  const Matrix<double>&buckets = state.at("buckets"), &signs = state.at("signs");
  const Index m = params.integer("m"), degree = params.integer("degree");
  const bool series = params.text("series") == "taylor";
  // x's CountSketch by that row of the hashes, and the same without signs of any kind.
  const auto sketch = [&](const Table& X, Index i, Index row, bool absolute) {
    std::vector<Real> C(static_cast<size_t>(m), 0);
    for (Index l = 0; l < X.columns; ++l) {
      const Real x = static_cast<Real>(signs(row, l)) * X(i, l);
      C[static_cast<size_t>(buckets(row, l))] += absolute ? std::abs(x) : x;
    }
    return C;
  };
  const auto convolved = [&](const std::vector<Real>& a, const std::vector<Real>& b) {
    std::vector<Real> c(a.size(), 0);
    for (size_t s = 0; s < a.size(); ++s)
      for (size_t t = 0; t < b.size(); ++t) c[(s + t) % c.size()] += a[s] * b[t];
    return c;
  };
  const auto features = [&](const Table& X, bool absolute) {
    Table phi(X.rows, series ? 1 + degree * m : m);
    for (Index i = 0; i < X.rows; ++i) {
      Index row = 0, column = 0;
      if (series) phi(i, column++) = 1;
      Real factorial = 1;
      for (Index p = 1; p <= degree; ++p) {
        factorial *= static_cast<Real>(p);
        if (!series && p < degree) continue;
        std::vector<Real> TS = sketch(X, i, row++, absolute);
        for (Index t = 1; t < p; ++t) TS = convolved(TS, sketch(X, i, row++, absolute));
        for (const Real entry : TS) phi(i, column++) = series ? entry / std::sqrt(factorial) : entry;
      }
    }
    return phi;
  };
  const auto of = [&](const Table& X) {
    Features phi(0, 0);
    phi.value = features(X, false);
    phi.magnitude = features(X, true);
    return phi;
  };
  return of_values(of(in.q), of(in.k), 0);
}

// methods.md C: sum over channels of phi(q_l) phi(k_l), phi >= 0.
template <class Phi>
Weights channelwise_weights(const Inputs& in, const Phi& phi) {
  Weights weights(in.q.rows, in.k.rows);
  for (Index i = 0; i < in.q.rows; ++i)
    for (Index j = 0; j < in.k.rows; ++j) {
      Real sum = 0;
      for (Index l = 0; l < in.q.columns; ++l) sum += phi(in.q(i, l)) * phi(in.k(j, l));
      weights.value(i, j) = weights.magnitude(i, j) = sum;
    }
  return weights;
}

Weights elu_weights(const Inputs& in, const Tensors&, const Params&) {
  return channelwise_weights(in, [](Real x) { return x > 0 ? 1 + x : std::exp(x); });
}

// methods.md C: powers of relu, with an epsilon on top.
FeatureMapWeights relu_weights(int power) {
  return [=](const Inputs& in, const Tensors&, const Params& params) {
    const Real epsilon = static_cast<Real>(params.real("epsilon"));
    return channelwise_weights(in, [=](Real x) { return (x > 0 ? std::pow(x, Real(power)) : 0) + epsilon; });
  };
}

// methods.md C: sum over channels of exp(q_l + k_l), and A11: over exp(|k|^2/2).
Weights exp_weights(const Inputs& in, const Tensors&, const Params& params) {
  const bool key_norm = params.text("features") == "exp-norm";
  const auto exponents = [&](const Table& X, bool norm) {
    Table phi(X.rows, X.columns);
    for (Index i = 0; i < X.rows; ++i)
      for (Index l = 0; l < X.columns; ++l) phi(i, l) = X(i, l) - (norm ? dot(X, i, X, i) / 2 : 0);
    return phi;
  };
  return of_exponents(exponents(in.q, false), exponents(in.k, key_norm));
}

// methods.md C: softmax(q).softmax(k) + softmax(-q).softmax(-k).
Weights softmax_map_weights(const Inputs& in, const Tensors&, const Params&) {
  const auto softmax_of = [](const Table& X, Real sign) {
    Table p(X.rows, X.columns);
    for (Index i = 0; i < X.rows; ++i) {
      Real sum = 0;
      for (Index l = 0; l < X.columns; ++l) sum += p(i, l) = std::exp(sign * X(i, l));
      for (Index l = 0; l < X.columns; ++l) p(i, l) /= sum;
    }
    return p;
  };
  Weights weights(in.q.rows, in.k.rows);
  for (const Real sign : {1, -1}) {
    const Table p = softmax_of(in.q, sign), r = softmax_of(in.k, sign);
    for (Index i = 0; i < in.q.rows; ++i)
      for (Index j = 0; j < in.k.rows; ++j) weights.value(i, j) += dot(p, i, r, j);
  }
  weights.magnitude = weights.value;
  return weights;
}

const std::map<std::string, FeatureMapWeights>& random_maps() {
  static const std::map<std::string, FeatureMapWeights> table{
      {"positive", positive_weights},
      {"hyperbolic", hyperbolic_weights},
      {"trig", trig_weights},
      {"oprf", oprf_weights},
      {"sderf", sderf_weights},
      {"aderf", transformed_oprf_weights},
      {"saderf", transformed_oprf_weights},
      {"simplified", simplified_weights},
      {"exp", simplified_weights},
      {"gaussian", gaussian_weights},
      {"gaussian-phase", phase_weights},
      {"identity", generalised_weights(1, [](Real u) { return u; })},
      {"relu", generalised_weights(1, [](Real u) { return u > 0 ? u : 0; })},
      {"relu2", generalised_weights(2, [](Real u) { return u > 0 ? u * u : 0; })},
      {"step", generalised_weights(0, [](Real u) { return Real(u > 0 ? 1 : 0); })},
      {"sign", generalised_weights(0, [](Real u) { return Real(u > 0   ? 1
                                                               : u < 0 ? -1
                                                                       : 0); })},
      {"abs", generalised_weights(1, [](Real u) { return std::abs(u); })},
      {"square", generalised_weights(2, [](Real u) { return u * u; })},
      {"erf", generalised_weights(0, [](Real u) { return std::erf(u); })},
      {"cos", generalised_weights(0, [](Real u) { return std::cos(u); })},
      {"maclaurin", maclaurin_weights},
      {"tensor-sketch", tensor_sketch_weights}};
  return table;
}

const std::map<std::string, FeatureMapWeights>& deterministic_maps() {
  static const std::map<std::string, FeatureMapWeights> table{
      {"elu", elu_weights},      {"exp", exp_weights},       {"exp-norm", exp_weights},
      {"relu", relu_weights(1)}, {"relu2", relu_weights(2)}, {"softmax", softmax_map_weights}};
  return table;
}

// Those that the spec's `features` is looked up in.
const std::map<std::string, FeatureMapWeights>& feature_maps(const Params& params) {
  return params.catalogue_of("features") == "features" ? random_maps() : deterministic_maps();
}

// Linear attention of either kind, before the mask: `linear` may act on unscaled inputs, d^1/4 larger, `performer` on
// q' = q G and k' = k G^-T + c, where exp(q.k) = exp(q'.k') exp(-q'.c) (methods.md 0).
Weights fresh_linear_weights(const Params& params, const Tensors& state, const HeadData<double>& head) {
  Inputs in{table(head.Q), table(head.K)};
  if (params.has("inputs") && params.text("inputs") == "unscaled") {
    const Real factor = std::sqrt(std::sqrt(static_cast<Real>(head.Q.cols())));
    for (Real& x : in.q.entries) x *= factor;
    for (Real& x : in.k.entries) x *= factor;
  }
  const auto& map = feature_maps(params).at(params.text("features"));
  if (!state.contains("transform")) return map(in, state, params);
  const Matrix<double>& c = state.at("shift");
  in = transformed(in, state.at("transform"));
  for (Index j = 0; j < in.k.rows; ++j)
    for (Index l = 0; l < in.k.columns; ++l) in.k(j, l) += static_cast<Real>(c(0, l));
  Weights weights = map(in, state, params);
  for (Index i = 0; i < in.q.rows; ++i)
    for (Index j = 0; j < in.k.rows; ++j) weights.log(i, j) -= dot(in.q, i, c, 0);
  return weights;
}

// The same, kept from the last call: tests ask for one head under several masks, of which the weights do not depend.
const Weights& linear_weights(const Params& params, const Tensors& state, const HeadData<double>& head) {
  static std::string spec;
  static Tensors given;
  static std::optional<Weights> last;
  Tensors all = state;
  all["Q"] = head.Q;
  all["K"] = head.K;
  const auto same = [](const auto& a, const auto& b) {
    return a.first == b.first && a.second.rows() == b.second.rows() && a.second.cols() == b.second.cols() &&
           a.second == b.second;
  };
  if (!last || spec != params.spec() || !std::equal(all.begin(), all.end(), given.begin(), given.end(), same)) {
    last = fresh_linear_weights(params, state, head);
    spec = params.spec();
    given = std::move(all);
  }
  return *last;
}

// methods.md D: exp(q.c) with c the code nearest to the key, ties to the lowest index.
Weights quantised_weights(const HeadData<double>& head, const Tensors& state) {
  const Matrix<double>& codebook = state.at("codebook");
  std::vector<Index> nearest;
  for (Index j = 0; j < head.K.rows(); ++j) {
    Index best = 0;
    Real least = INFINITY;
    for (Index c = 0; c < codebook.rows(); ++c) {
      Real distance = 0;
      for (Index l = 0; l < codebook.cols(); ++l) {
        const Real difference = static_cast<Real>(head.K(j, l)) - static_cast<Real>(codebook(c, l));
        distance += difference * difference;
      }
      if (distance < least) {
        least = distance;
        best = c;
      }
    }
    nearest.push_back(best);
  }
  return exponential(head.Q.rows(), head.K.rows(),
                     [&](Index i, Index j) { return dot(head.Q, i, codebook, nearest[static_cast<size_t>(j)]); });
}

// methods.md D: sum over codes of exp(q.c_y) p(y|k), p(y|k) = softmax_y(log pi_y - |k - c_y|^2 / (2 sigma^2)).
Weights soft_quantised_weights(const Params& params, const HeadData<double>& head, const Tensors& state) {
  const Matrix<double>& codebook = state.at("codebook");
  const Real sigma = static_cast<Real>(params.real("sigma"));
  Table of_queries(head.Q.rows(), codebook.rows()), of_keys(head.K.rows(), codebook.rows());
  for (Index i = 0; i < head.Q.rows(); ++i)
    for (Index y = 0; y < codebook.rows(); ++y) of_queries(i, y) = dot(head.Q, i, codebook, y);
  for (Index j = 0; j < head.K.rows(); ++j) {
    Real largest = -INFINITY, sum = 0;
    for (Index y = 0; y < codebook.rows(); ++y) {
      Real distance = 0;
      for (Index l = 0; l < codebook.cols(); ++l) {
        const Real difference = static_cast<Real>(head.K(j, l)) - static_cast<Real>(codebook(y, l));
        distance += difference * difference;
      }
      const Real weight = state.contains("counts") ? static_cast<Real>(state.at("counts")(y, 0)) : 1;
      of_keys(j, y) = std::log(weight) - distance / (2 * sigma * sigma);
      largest = std::max(largest, of_keys(j, y));
    }
    for (Index y = 0; y < codebook.rows(); ++y) sum += std::exp(of_keys(j, y) - largest);
    for (Index y = 0; y < codebook.rows(); ++y) of_keys(j, y) -= largest + std::log(sum);
  }
  return of_exponents(of_queries, of_keys);
}

Weights uniform_weights(const HeadData<double>& head) {
  return exponential(head.Q.rows(), head.K.rows(), [](Index, Index) { return Real(0); });
}

// Weights f(q.k), f a sum of powers; the magnitude is f of the absolute terms of q.k.
template <class Function>
Weights of_products(const HeadData<double>& head, const Function& f) {
  Weights weights(head.Q.rows(), head.K.rows());
  for (Index i = 0; i < head.Q.rows(); ++i)
    for (Index j = 0; j < head.K.rows(); ++j) {
      Real absolute = 0;
      for (Index l = 0; l < head.Q.cols(); ++l)
        absolute += std::abs(static_cast<Real>(head.Q(i, l)) * static_cast<Real>(head.K(j, l)));
      weights.value(i, j) = f(dot(head.Q, i, head.K, j));
      weights.magnitude(i, j) = f(absolute);
    }
  return weights;
}

// methods.md C: (q.k)^p.
Weights polynomial_weights(const Params& params, const HeadData<double>& head) {
  const Real degree = static_cast<Real>(params.integer("degree"));
  return of_products(head, [=](Real s) { return std::pow(s, degree); });
}

// methods.md C: 1 + s + s^2/2, or 1 + cosine.
Weights taylor_weights(const Params& params, const HeadData<double>& head) {
  if (params.integer("order") == 2) return of_products(head, [](Real s) { return 1 + s + s * s / 2; });
  Weights weights = of_products(head, [](Real s) { return s; });
  for (Index i = 0; i < head.Q.rows(); ++i)
    for (Index j = 0; j < head.K.rows(); ++j) {
      const Real lengths = std::sqrt(dot(head.Q, i, head.Q, i)) * std::sqrt(dot(head.K, j, head.K, j));
      weights.value(i, j) = lengths > 0 ? 1 + weights.value(i, j) / lengths : 1;
      weights.magnitude(i, j) = lengths > 0 ? 1 + weights.magnitude(i, j) / lengths : 1;
    }
  return weights;
}

// methods.md C: relu(q).relu(k) cos(pi (i - j) / 2M), M the positions that rows and keys stand on.
Weights cosformer_weights(const HeadData<double>& head, Mask mask) {
  const Index nq = head.Q.rows(), nk = head.K.rows();
  const Index M = std::max(nk, nq + mask.offset) - std::min<Index>(0, mask.offset);
  const Real pi = std::acos(Real(-1));
  Weights weights(nq, nk);
  for (Index i = 0; i < nq; ++i)
    for (Index j = 0; j < nk; ++j) {
      Real sum = 0;
      for (Index l = 0; l < head.Q.cols(); ++l)
        sum += std::max(static_cast<Real>(head.Q(i, l)), Real(0)) * std::max(static_cast<Real>(head.K(j, l)), Real(0));
      const Real distance = static_cast<Real>(i + mask.offset - j);
      weights.value(i, j) = weights.magnitude(i, j) = sum * std::cos(pi * distance / (2 * static_cast<Real>(M)));
    }
  return weights;
}

Answer softmax(const Params&, const Tensors&, const HeadData<double>& head, Mask mask) {
  return normalise_visible(softmax_weights(head), head, mask);
}

Answer rbf(const Params&, const Tensors&, const HeadData<double>& head, Mask mask) {
  return normalise_visible(gaussian_kernel_weights(head), head, mask);
}

Answer uniform(const Params&, const Tensors&, const HeadData<double>& head, Mask mask) {
  return normalise_visible(uniform_weights(head), head, mask);
}

// A_ij = 1 for the row's own key, if that is one that it sees.
Answer identity(const Params&, const Tensors&, const HeadData<double>& head, Mask mask) {
  const Set own = [=](Index i, Index j) { return sees(mask, i, j) && in_band(mask, 0, i, j); };
  return normalise(uniform_weights(head), head, own, own);
}

Answer zero(const Params&, const Tensors&, const HeadData<double>& head, Mask) {
  return normalise(
      uniform_weights(head), head, [](Index, Index) { return false; }, [](Index, Index) { return false; });
}

Answer polynomial(const Params& params, const Tensors&, const HeadData<double>& head, Mask mask) {
  return normalise_visible(polynomial_weights(params, head), head, mask);
}

Answer taylor(const Params& params, const Tensors&, const HeadData<double>& head, Mask mask) {
  return normalise_visible(taylor_weights(params, head), head, mask);
}

Answer cosformer(const Params&, const Tensors&, const HeadData<double>& head, Mask mask) {
  return normalise_visible(cosformer_weights(head, mask), head, mask);
}

// methods.md C: A_ij = sum_c softmax over c of q_ic times softmax over j of k_jc.
Answer efficient(const Params& params, const Tensors&, const HeadData<double>& head, Mask mask) {
  const Index nq = head.Q.rows(), nk = head.K.rows(), d = head.Q.cols();
  const Real factor = params.text("inputs") == "unscaled" ? std::sqrt(std::sqrt(static_cast<Real>(d))) : 1;
  Weights weights(nq, nk);
  for (Index c = 0; c < d; ++c) {
    Real of_keys = 0;
    for (Index j = 0; j < nk; ++j)
      if (sees(mask, 0, j)) of_keys += std::exp(factor * static_cast<Real>(head.K(j, c)));
    for (Index i = 0; i < nq; ++i) {
      Real of_channels = 0;
      for (Index l = 0; l < d; ++l) of_channels += std::exp(factor * static_cast<Real>(head.Q(i, l)));
      const Real of_query = std::exp(factor * static_cast<Real>(head.Q(i, c))) / of_channels;
      for (Index j = 0; j < nk; ++j)
        weights.value(i, j) += of_query * std::exp(factor * static_cast<Real>(head.K(j, c))) / of_keys;
    }
  }
  weights.magnitude = weights.value;
  return normalise_visible(weights, head, mask);  // the rows sum to one as they are
}

Answer linear(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask) {
  return normalise_visible(linear_weights(params, state, head), head, mask);
}

Answer vq(const Params&, const Tensors& state, const HeadData<double>& head, Mask mask) {
  return normalise_visible(quantised_weights(head, state), head, mask);
}

Answer soft_vq(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask) {
  return normalise_visible(soft_quantised_weights(params, head, state), head, mask);
}

// methods.md F, and the first tokens.
Answer sink_window(const Params& params, const Tensors&, const HeadData<double>& head, Mask mask) {
  const Index window = params.integer("window"), sinks = params.integer("sinks");
  const Set seen = [=](Index i, Index j) { return sees(mask, i, j) && (j < sinks || in_band(mask, window, i, j)); };
  return normalise(softmax_weights(head), head, seen, seen);
}

// H2O, Algorithm 1: keys come one by one, and for each beyond the budget the one goes that got least attention, of
// those that will not be among the last `recent`.
std::vector<std::vector<Index>> heavy_hitters(const Params& params, const HeadData<double>& head, Mask mask,
                                              Real* closest) {
  const Index recent = params.integer("recent"), budget = params.integer("heavy") + recent;
  std::vector<Real> score(static_cast<size_t>(head.K.rows()), 0);
  std::vector<Index> kept;
  std::vector<std::vector<Index>> of_rows;
  Index came = 0;
  for (Index i = 0; i < head.Q.rows(); ++i) {
    for (; came < head.K.rows() && sees(mask, i, came); ++came) {
      if (static_cast<Index>(kept.size()) == budget) {
        size_t least = 0;  // kept is in the order of coming: the first of equals goes
        Real second = INFINITY;
        const auto score_of = [&](size_t place) { return score[static_cast<size_t>(kept[place])]; };
        for (size_t place = 1; place < kept.size() && kept[place] <= came - recent; ++place) {
          second = std::min(second, std::max(score_of(place), score_of(least)));
          if (score_of(place) < score_of(least)) least = place;
        }
        if (second > score_of(least)) *closest = std::min(*closest, (second - score_of(least)) / second);
        kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(least));
      }
      kept.push_back(came);
    }
    Real largest = -INFINITY, sum = 0;
    for (const Index j : kept) largest = std::max(largest, dot(head.Q, i, head.K, j));
    for (const Index j : kept) sum += std::exp(dot(head.Q, i, head.K, j) - largest);
    for (const Index j : kept) score[static_cast<size_t>(j)] += std::exp(dot(head.Q, i, head.K, j) - largest) / sum;
    of_rows.push_back(kept);
  }
  return of_rows;
}

Answer heavy_hitter(const Params& params, const Tensors&, const HeadData<double>& head, Mask mask) {
  Real closest = INFINITY;
  const auto kept = heavy_hitters(params, head, mask, &closest);
  const Set seen = [&](Index i, Index j) {
    const auto& row = kept[static_cast<size_t>(i)];
    return std::find(row.begin(), row.end(), j) != row.end();
  };
  return normalise(softmax_weights(head), head, seen, seen);
}

// methods.md F: the softmax of the window.
Answer local(const Params& params, const Tensors&, const HeadData<double>& head, Mask mask) {
  const Index window = params.integer("window");
  const Set seen = [=](Index i, Index j) { return sees(mask, i, j) && in_band(mask, window, i, j); };
  return normalise(softmax_weights(head), head, seen, seen);
}

// methods.md F: (a) mask, then renormalise; (b) normalise the full row, then cut.
Answer truncated(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask) {
  const Index window = params.integer("window");
  const Set visible = [=](Index i, Index j) { return sees(mask, i, j); };
  const Set band = [=](Index i, Index j) { return sees(mask, i, j) && in_band(mask, window, i, j); };
  return normalise(linear_weights(params, state, head), head, params.flag("renormalise") ? band : visible, band);
}

// methods.md E: softmax(q (E k)^T) F over the unpadded keys. Mean pooling averages segment a = [a n / r, (a+1) n / r).
Answer linformer(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask) {
  const Index nq = head.Q.rows(), nk = head.K.rows(), r = params.integer("r");
  const Index keys = mask.keys < 0 ? nk : std::min(mask.keys, nk);
  Table E(r, keys), F(r, keys);
  for (Index a = 0; a < r; ++a)
    for (Index j = 0; j < keys; ++j)
      if (params.text("projection") == "mean-pool") {
        const Index begin = a * keys / r, end = (a + 1) * keys / r;
        E(a, j) = F(a, j) = j >= begin && j < end ? 1 / static_cast<Real>(end - begin) : 0;
      } else {
        E(a, j) = static_cast<Real>(state.at("E")(a, j));
        F(a, j) = static_cast<Real>(state.at("F")(a, j));
      }
  Answer answer{Matrix<double>::Zero(nq, nk), Matrix<double>::Zero(nq, head.V.cols()),
                std::vector<double>(static_cast<size_t>(nq), 1)};
  if (keys == 0) return answer;
  const auto project = [&](const Table& projection, const Matrix<double>& X) {
    Table projected(r, X.cols());
    for (Index a = 0; a < r; ++a)
      for (Index l = 0; l < X.cols(); ++l)
        for (Index j = 0; j < keys; ++j) projected(a, l) += projection(a, j) * static_cast<Real>(X(j, l));
    return projected;
  };
  const Table projected_keys = project(E, head.K), projected_values = project(F, head.V);
  for (Index i = 0; i < nq; ++i) {
    std::vector<Real> weight;
    Real largest = -INFINITY, sum = 0, absolute = 0;
    for (Index a = 0; a < r; ++a) {
      Real logit = 0;
      for (Index l = 0; l < head.K.cols(); ++l) logit += static_cast<Real>(head.Q(i, l)) * projected_keys(a, l);
      weight.push_back(logit);
      largest = std::max(largest, logit);
    }
    for (Real& w : weight) sum += w = std::exp(w - largest);
    for (Real& w : weight) w /= sum;
    for (Index j = 0; j < keys; ++j) {
      Real entry = 0;
      for (Index a = 0; a < r; ++a) {
        entry += weight[static_cast<size_t>(a)] * F(a, j);
        absolute += weight[static_cast<size_t>(a)] * std::abs(F(a, j));
      }
      answer.A(i, j) = static_cast<double>(entry);
    }
    answer.condition[static_cast<size_t>(i)] = static_cast<double>(std::max(Real(1), absolute));
    for (Index l = 0; l < head.V.cols(); ++l) {
      Real out = 0;
      for (Index a = 0; a < r; ++a) out += weight[static_cast<size_t>(a)] * projected_values(a, l);
      answer.out(i, l) = static_cast<double>(out);
    }
  }
  return answer;
}

using Method = Answer (*)(const Params&, const Tensors&, const HeadData<double>&, Mask);

const std::map<std::string, Method>& methods() {
  static const std::map<std::string, Method> table{{"softmax", softmax},
                                                   {"uniform", uniform},
                                                   {"zero", zero},
                                                   {"identity", identity},
                                                   {"linear", linear},
                                                   {"performer", linear},
                                                   {"polynomial", polynomial},
                                                   {"taylor", taylor},
                                                   {"cosformer", cosformer},
                                                   {"efficient", efficient},
                                                   {"rbf", rbf},
                                                   {"local", local},
                                                   {"vq", vq},
                                                   {"sink-window", sink_window},
                                                   {"heavy-hitter", heavy_hitter},
                                                   {"soft-vq", soft_vq},
                                                   {"truncated", truncated},
                                                   {"linformer", linformer}};
  return table;
}

}  // namespace

bool transcribes(const std::string& method) { return methods().contains(method); }

std::optional<std::string> unknown_features(const Params& params) {
  if (!params.has("features") || feature_maps(params).contains(params.text("features"))) return std::nullopt;
  return params.text("features");
}

std::optional<Estimate> kernel(const Params& params, const Tensors& state, const HeadData<double>& head) {
  std::optional<Weights> weights;
  if (params.name() == "softmax") weights = softmax_weights(head);
  if (params.name() == "rbf") weights = gaussian_kernel_weights(head);
  if (params.name() == "vq") weights = quantised_weights(head, state);
  if (params.name() == "soft-vq") weights = soft_quantised_weights(params, head, state);
  if (params.has("features")) weights = linear_weights(params, state, head);
  if (params.name() == "polynomial") weights = polynomial_weights(params, head);
  if (params.name() == "taylor") weights = taylor_weights(params, head);
  if (params.name() == "cosformer") weights = cosformer_weights(head, {});
  if (!weights) return std::nullopt;
  const auto matrix = [](const Table& entries) {
    Matrix<double> M(entries.rows, entries.columns);
    for (Index i = 0; i < M.rows(); ++i)
      for (Index j = 0; j < M.cols(); ++j) M(i, j) = static_cast<double>(entries(i, j));
    return M;
  };
  return Estimate{matrix(weights->value), matrix(weights->magnitude), matrix(weights->log)};
}

bool jumps(const Params& params) {
  return params.name() == "heavy-hitter" ||
         (params.has("features") && (params.text("features") == "step" || params.text("features") == "sign"));
}

double distance_to_jump(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask) {
  if (params.name() == "heavy-hitter") {
    Real closest = INFINITY;
    heavy_hitters(params, head, mask, &closest);
    return static_cast<double>(closest);
  }
  const Matrix<double>& W = state.at("projection");
  Real least = INFINITY;
  for (const Table& X : {table(head.Q), table(head.K)})
    for (Index i = 0; i < X.rows; ++i)
      for (Index f = 0; f < W.rows(); ++f)
        least = std::min(least, std::abs(dot(X, i, W, f)) / absolute_dot(X, i, W, f));
  return static_cast<double>(least);
}

Answer attention(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask) {
  return methods().at(params.name())(params, state, head, mask);
}

}  // namespace attnbench::oracle
