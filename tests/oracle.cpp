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

// methods.md A1: mean over omega of exp(omega.q - |q|^2/2) exp(omega.k - |k|^2/2). Extended precision holds exponents
// down to -11000, so taking out the largest exponent of a row is enough up to |omega| (|q| + |k|) of that size.
Weights positive_weights(const HeadData<double>& head, const Tensors& state) {
  const Matrix<double>& W = state.at("projection");
  const auto features = [&](const Matrix<double>& X, std::vector<Real>& log_scale) {
    Table phi(X.rows(), W.rows());
    for (Index i = 0; i < X.rows(); ++i) {
      Real largest = -INFINITY;
      for (Index f = 0; f < W.rows(); ++f) {
        phi(i, f) = dot(X, i, W, f) - dot(X, i, X, i) / 2;
        largest = std::max(largest, phi(i, f));
      }
      for (Index f = 0; f < W.rows(); ++f) phi(i, f) = std::exp(phi(i, f) - largest);
      log_scale.push_back(largest);
    }
    return phi;
  };
  std::vector<Real> log_q, log_k;
  const Table phi_q = features(head.Q, log_q), phi_k = features(head.K, log_k);
  Weights weights(head.Q.rows(), head.K.rows());
  for (Index i = 0; i < phi_q.rows; ++i)
    for (Index j = 0; j < phi_k.rows; ++j) {
      Real sum = 0;
      for (Index f = 0; f < W.rows(); ++f) sum += phi_q(i, f) * phi_k(j, f);
      weights.value(i, j) = weights.magnitude(i, j) = sum / static_cast<Real>(W.rows());
      weights.log(i, j) = log_q[static_cast<size_t>(i)] + log_k[static_cast<size_t>(j)];
    }
  return weights;
}

// methods.md A2: exp((|q|^2 + |k|^2)/2) mean over omega of cos(omega.(q - k)). The method adds cos cos and sin sin,
// each at most 1, hence the magnitude. The angles are taken once a token, then the cosine of their difference (in
// double: it is off by 1e-16, which no condition makes visible, and ten times faster).
Weights trig_weights(const HeadData<double>& head, const Tensors& state) {
  const Matrix<double>& W = state.at("projection");
  const auto angles = [&](const Matrix<double>& X) {
    Table angle(X.rows(), W.rows());
    for (Index i = 0; i < X.rows(); ++i)
      for (Index f = 0; f < W.rows(); ++f) angle(i, f) = dot(X, i, W, f);
    return angle;
  };
  const Table of_q = angles(head.Q), of_k = angles(head.K);
  Weights weights(head.Q.rows(), head.K.rows());
  for (Index i = 0; i < of_q.rows; ++i)
    for (Index j = 0; j < of_k.rows; ++j) {
      Real sum = 0;
      for (Index f = 0; f < W.rows(); ++f) sum += std::cos(static_cast<double>(of_q(i, f) - of_k(j, f)));
      weights.value(i, j) = sum / static_cast<Real>(W.rows());
      weights.magnitude(i, j) = 1;
      weights.log(i, j) = (dot(head.Q, i, head.Q, i) + dot(head.K, j, head.K, j)) / 2;
    }
  return weights;
}

// methods.md C: sum over channels of (elu(q) + 1)(elu(k) + 1).
Weights elu_weights(const HeadData<double>& head, const Tensors&) {
  const auto phi = [](double x) { return x > 0 ? 1 + static_cast<Real>(x) : std::exp(static_cast<Real>(x)); };
  Weights weights(head.Q.rows(), head.K.rows());
  for (Index i = 0; i < head.Q.rows(); ++i)
    for (Index j = 0; j < head.K.rows(); ++j) {
      Real sum = 0;
      for (Index l = 0; l < head.Q.cols(); ++l) sum += phi(head.Q(i, l)) * phi(head.K(j, l));
      weights.value(i, j) = weights.magnitude(i, j) = sum;
    }
  return weights;
}

const std::map<std::string, std::function<Weights(const HeadData<double>&, const Tensors&)>>& feature_maps() {
  static const std::map<std::string, std::function<Weights(const HeadData<double>&, const Tensors&)>> table{
      {"positive", positive_weights}, {"trig", trig_weights}, {"elu", elu_weights}};
  return table;
}

// Linear attention of either kind, before the mask: `linear` may act on unscaled inputs, d^1/4 larger (methods.md 0).
Weights linear_weights(const Params& params, const Tensors& state, HeadData<double> head) {
  if (params.has("inputs") && params.text("inputs") == "unscaled") {
    const double factor = std::sqrt(std::sqrt(static_cast<double>(head.Q.cols())));
    for (Index i = 0; i < head.Q.size(); ++i) head.Q.data()[i] *= factor;
    for (Index i = 0; i < head.K.size(); ++i) head.K.data()[i] *= factor;
  }
  return feature_maps().at(params.text("features"))(head, state);
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

Weights uniform_weights(const HeadData<double>& head) {
  return exponential(head.Q.rows(), head.K.rows(), [](Index, Index) { return Real(0); });
}

Answer softmax(const Params&, const Tensors&, const HeadData<double>& head, Mask mask) {
  return normalise_visible(softmax_weights(head), head, mask);
}

Answer uniform(const Params&, const Tensors&, const HeadData<double>& head, Mask mask) {
  return normalise_visible(uniform_weights(head), head, mask);
}

Answer linear(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask) {
  return normalise_visible(linear_weights(params, state, head), head, mask);
}

Answer vq(const Params&, const Tensors& state, const HeadData<double>& head, Mask mask) {
  return normalise_visible(quantised_weights(head, state), head, mask);
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
  static const std::map<std::string, Method> table{
      {"softmax", softmax}, {"uniform", uniform}, {"linear", linear},       {"performer", linear},
      {"local", local},     {"vq", vq},           {"truncated", truncated}, {"linformer", linformer}};
  return table;
}

}  // namespace

bool transcribes(const std::string& method) { return methods().contains(method); }

std::optional<std::string> unknown_features(const Params& params) {
  if (!params.has("features") || feature_maps().contains(params.text("features"))) return std::nullopt;
  return params.text("features");
}

std::optional<Matrix<double>> kernel(const Params& params, const Tensors& state, const HeadData<double>& head) {
  std::optional<Weights> weights;
  if (params.name() == "softmax") weights = softmax_weights(head);
  if (params.name() == "vq") weights = quantised_weights(head, state);
  if (params.has("features")) weights = linear_weights(params, state, head);
  if (!weights) return std::nullopt;
  Matrix<double> K(head.Q.rows(), head.K.rows());
  for (Index i = 0; i < K.rows(); ++i)
    for (Index j = 0; j < K.cols(); ++j)
      K(i, j) = static_cast<double>(weights->value(i, j) * std::exp(weights->log(i, j)));
  return K;
}

Answer attention(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask) {
  return methods().at(params.name())(params, state, head, mask);
}

}  // namespace attnbench::oracle
