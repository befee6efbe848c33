// Linear attention, and every feature map: of random ones (performer), and of deterministic ones (linear).
#include <algorithm>
#include <map>

#include "tests/oracle/transcription.hpp"

namespace attnbench::oracle {

namespace {

// The arguments of a feature map: queries and keys, one a row.
struct Inputs {
  Table q, k;
};

using FeatureMapWeights = std::function<Weights(const Inputs&, const Tensors&, const Params&)>;

Real absolute_dot(const Table& X, Index i, const Matrix<double>& W, Index f) {
  Real sum = 0;
  for (Index l = 0; l < X.columns; ++l) sum += std::abs(X(i, l) * static_cast<Real>(W(f, l)));
  return sum;
}

Real count(const Matrix<double>& W) { return static_cast<Real>(W.rows()); }

// Weights from exponents that are a function (X, row, feature) of both sides.
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

// methods.md A16: phi(x) = all products of two entries of M_(degree/2)(x).
Weights polysketch_weights(const Inputs& in, const Tensors& state, const Params& params) {
  const Matrix<double>& leaves = state.at("leaves");
  const Index r = params.integer("r"), degree = params.integer("degree");
  const auto features = [&](const Table& X, bool absolute) {
    Table phi(X.rows, r * r);
    for (Index i = 0; i < X.rows; ++i) {
      // The sketches of one degree, one after the other; of degree 2 first, from 2 r rows of `leaves` each.
      std::vector<Real> M;
      for (Index node = 0; node < degree / 4; ++node)
        for (Index f = 0; f < r; ++f) {
          const Index first = 2 * node * r + f, second = first + r;
          M.push_back((absolute ? absolute_dot(X, i, leaves, first) * absolute_dot(X, i, leaves, second)
                                : dot(X, i, leaves, first) * dot(X, i, leaves, second)) /
                      std::sqrt(static_cast<Real>(r)));
        }
      Index row = 0;
      while (std::ssize(M) > r) {
        const Matrix<double>& inner = state.at("inner");
        std::vector<Real> factors, products;
        for (Index node = 0; node < std::ssize(M) / r; ++node)
          for (Index f = 0; f < r; ++f, ++row) {
            Real sum = 0;
            for (Index g = 0; g < r; ++g) {
              const Real term = static_cast<Real>(inner(row, g)) * M[static_cast<size_t>(node * r + g)];
              sum += absolute ? std::abs(term) : term;
            }
            factors.push_back(sum);
          }
        for (Index node = 0; node < std::ssize(M) / (2 * r); ++node)
          for (Index f = 0; f < r; ++f)
            products.push_back(factors[static_cast<size_t>(2 * node * r + f)] *
                               factors[static_cast<size_t>((2 * node + 1) * r + f)] / std::sqrt(static_cast<Real>(r)));
        M = products;
      }
      for (Index a = 0; a < r; ++a)
        for (Index b = 0; b < r; ++b) phi(i, a * r + b) = M[static_cast<size_t>(a)] * M[static_cast<size_t>(b)];
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

// methods.md C3: softmax(q).e^k.
Weights softmax_exp_weights(const Inputs& in, const Tensors&, const Params&) {
  Weights weights(in.q.rows, in.k.rows);
  for (Index i = 0; i < in.q.rows; ++i) {
    Real sum = 0;
    for (Index l = 0; l < in.q.columns; ++l) sum += std::exp(in.q(i, l));
    for (Index j = 0; j < in.k.rows; ++j)
      for (Index l = 0; l < in.q.columns; ++l) weights.value(i, j) += std::exp(in.q(i, l)) / sum * std::exp(in.k(j, l));
  }
  weights.magnitude = weights.value;
  return weights;
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

// methods.md K7: u = [relu(x); relu(-x)], features u_i u_(i+j) for j = 1 to nu.
Weights dpfp_weights(const Inputs& in, const Tensors&, const Params& params) {
  const Index d = in.q.columns;
  const auto u = [d](const Table& X, Index i, Index place) {
    const Real x = X(i, place % (2 * d) % d);
    return std::max(Real(0), place % (2 * d) < d ? x : -x);
  };
  Weights weights(in.q.rows, in.k.rows);
  for (Index i = 0; i < in.q.rows; ++i)
    for (Index j = 0; j < in.k.rows; ++j)
      for (Index shift = 1; shift <= params.integer("nu"); ++shift)
        for (Index l = 0; l < 2 * d; ++l)
          weights.value(i, j) += u(in.q, i, l) * u(in.q, i, l + shift) * u(in.k, j, l) * u(in.k, j, l + shift);
  weights.magnitude = weights.value;
  return weights;
}

// methods.md C12: the same of W_q q and W_k k.
Weights hedgehog_weights(const Inputs& in, const Tensors& state, const Params& params) {
  const auto moved = [](const Table& X, const Matrix<double>& W) {
    Table Y(X.rows, W.rows());
    for (Index i = 0; i < X.rows; ++i)
      for (Index l = 0; l < W.rows(); ++l) Y(i, l) = dot(X, i, W, l);
    return Y;
  };
  return softmax_map_weights({moved(in.q, state.at("W_q")), moved(in.k, state.at("W_k"))}, state, params);
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
      {"tensor-sketch", tensor_sketch_weights},
      {"polysketch", polysketch_weights}};
  return table;
}

const std::map<std::string, FeatureMapWeights>& deterministic_maps() {
  static const std::map<std::string, FeatureMapWeights> table{{"dpfp", dpfp_weights},
                                                              {"elu", elu_weights},
                                                              {"exp", exp_weights},
                                                              {"exp-norm", exp_weights},
                                                              {"hedgehog", hedgehog_weights},
                                                              {"relu", relu_weights(1)},
                                                              {"relu2", relu_weights(2)},
                                                              {"softmax", softmax_map_weights},
                                                              {"softmax-exp", softmax_exp_weights}};
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

// A feature that jumps does so at omega.x = 0.
bool features_jump(const Params& params) {
  return params.text("features") == "step" || params.text("features") == "sign";
}

double distance_to_zero(const Params&, const Tensors& state, const HeadData<double>& head, Mask, double eps) {
  const Matrix<double>& W = state.at("projection");
  Real least = INFINITY;
  for (const Table& X : {table(head.Q), table(head.K)})
    for (Index i = 0; i < X.rows; ++i)
      for (Index f = 0; f < W.rows(); ++f)
        least = std::min(least, std::abs(dot(X, i, W, f)) / absolute_dot(X, i, W, f));
  return static_cast<double>(least) / (static_cast<double>(head.Q.cols()) * eps);
}

Answer linear(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask) {
  return normalise_visible(linear_weights(params, state, head), head, mask);
}

Weights weights(const Params& params, const Tensors& state, const HeadData<double>& head) {
  return linear_weights(params, state, head);
}

const bool registered =
    add({.method = "linear", .attention = linear, .weights = weights}) && add({.method = "performer",
                                                                               .attention = linear,
                                                                               .weights = weights,
                                                                               .jumps = features_jump,
                                                                               .distance_to_jump = distance_to_zero});

}  // namespace

// fresh_linear_weights, kept from the last call: tests ask for one head under several masks, of which the weights do
// not depend.
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

std::optional<std::string> unknown_features(const Params& params) {
  if (!params.has("features") || feature_maps(params).contains(params.text("features"))) return std::nullopt;
  return params.text("features");
}

}  // namespace attnbench::oracle
