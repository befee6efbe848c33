// Mixers. methods.md G.
#include <numbers>

#include "tests/oracle/transcription.hpp"

namespace attnbench::oracle {

namespace {

Real weight(const Tensors& state, const std::string& name, Index i, Index j) {
  return static_cast<Real>(state.at(name)(i, j));
}

Index unpadded(const HeadData<double>& head, Mask mask) {
  return mask.keys < 0 ? head.V.rows() : std::min(mask.keys, head.V.rows());
}

Answer nothing(const HeadData<double>& head) {
  return {Matrix<double>::Zero(head.Q.rows(), head.K.rows()), Matrix<double>::Zero(head.Q.rows(), head.V.cols()),
          std::vector<double>(static_cast<size_t>(head.Q.rows()), 1)};
}

// W2 relu(W1 q_i + b1) + b2, of the networks without a suffix, "_a" and "_c".
Table two_layers(const Tensors& state, const std::string& suffix, const Matrix<double>& Q) {
  const Index hidden = state.at("W1" + suffix).rows(), outputs = state.at("W2" + suffix).rows();
  Table Y(Q.rows(), outputs);
  for (Index i = 0; i < Q.rows(); ++i) {
    std::vector<Real> units;
    for (Index h = 0; h < hidden; ++h) {
      Real sum = weight(state, "b1" + suffix, 0, h);
      for (Index l = 0; l < Q.cols(); ++l) sum += weight(state, "W1" + suffix, h, l) * static_cast<Real>(Q(i, l));
      units.push_back(sum > 0 ? sum : 0);
    }
    for (Index o = 0; o < outputs; ++o) {
      Y(i, o) = weight(state, "b2" + suffix, 0, o);
      for (Index h = 0; h < hidden; ++h) Y(i, o) += weight(state, "W2" + suffix, o, h) * units[static_cast<size_t>(h)];
    }
  }
  return Y;
}

// softmax(B) V; row i has position i + offset, and the state begins at the first position that is not negative.
Answer synthesizer(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask) {
  const Index nq = head.Q.rows(), nk = head.K.rows();
  const auto row = [&](Index i) { return mask.offset >= 0 ? i : i + mask.offset; };
  const std::string kind = params.text("kind");
  std::function<Real(Index, Index)> logit;
  if (kind == "random") logit = [&](Index i, Index j) { return weight(state, "R", row(i), j); };
  if (kind == "factorised")
    logit = [&](Index i, Index j) {
      Real sum = 0;
      for (Index l = 0; l < params.integer("k"); ++l) sum += weight(state, "R1", row(i), l) * weight(state, "R2", j, l);
      return sum;
    };
  if (kind == "dense") logit = [Y = two_layers(state, "", head.Q)](Index i, Index j) { return Y(i, j); };
  if (kind == "factorised-dense") {
    logit = [a = two_layers(state, "_a", head.Q), c = two_layers(state, "_c", head.Q)](Index i, Index j) {
      return a(i, j / c.columns) * c(i, j % c.columns);
    };
  }
  const Weights weights =
      exponential(nq, nk, [&](Index i, Index j) { return sees(mask, i, j) ? logit(i, j) : Real(0); });
  return normalise_visible(weights, head, mask);
}

// Re sum_jc exp(-2 pi i (ij / n)) V_jc exp(-2 pi i (ce / dv)) = sum_jc V_jc cos(2 pi (ij / n + ce / dv)), as
// C_n V C_dv - S_n V S_dv.
Answer fnet(const Params&, const Tensors&, const HeadData<double>& head, Mask mask) {
  const Index n = unpadded(head, mask), dv = head.V.cols();
  const auto angle = [](Index a, Index b, Index period) {
    return 2 * std::numbers::pi_v<Real> * static_cast<Real>(a * b % period) / static_cast<Real>(period);
  };
  Answer answer = nothing(head);
  Table cosines(n, dv), sines(n, dv);  // V C_dv and V S_dv
  for (Index j = 0; j < n; ++j)
    for (Index e = 0; e < dv; ++e)
      for (Index c = 0; c < dv; ++c) {
        cosines(j, e) += static_cast<Real>(head.V(j, c)) * std::cos(angle(c, e, dv));
        sines(j, e) += static_cast<Real>(head.V(j, c)) * std::sin(angle(c, e, dv));
      }
  for (Index i = 0; i < n; ++i) {
    std::vector<Real> row(static_cast<size_t>(dv), 0);
    for (Index j = 0; j < n; ++j) {
      const Real cosine = std::cos(angle(i, j, n)), sine = std::sin(angle(i, j, n));
      for (Index e = 0; e < dv; ++e) row[static_cast<size_t>(e)] += cosine * cosines(j, e) - sine * sines(j, e);
    }
    for (Index e = 0; e < dv; ++e) answer.out(i, e) = static_cast<double>(row[static_cast<size_t>(e)]);
  }
  return answer;
}

// V + W2 GELU(W1 LN(V)), LN over channels.
Answer mixer(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask) {
  const Index n = unpadded(head, mask), dv = head.V.cols(), hidden = state.at("W2").cols();
  Answer answer = nothing(head);
  Table Y(n, dv);
  Real growth = 1;  // of a rounding error of a token when it is normalised
  for (Index j = 0; j < n; ++j) {
    Real mean = 0, variance = 0, largest = 0;
    for (Index c = 0; c < dv; ++c) {
      mean += static_cast<Real>(head.V(j, c)) / static_cast<Real>(dv);
      largest = std::max(largest, std::abs(static_cast<Real>(head.V(j, c))));
    }
    for (Index c = 0; c < dv; ++c)
      variance += std::pow(static_cast<Real>(head.V(j, c)) - mean, Real(2)) / static_cast<Real>(dv);
    for (Index c = 0; c < dv; ++c)
      Y(j, c) = (static_cast<Real>(head.V(j, c)) - mean) / std::sqrt(variance + Real(1e-6L));
    growth = std::max(growth, largest / std::sqrt(variance + Real(1e-6L)));
  }
  if (dv > 1) std::fill(answer.condition.begin(), answer.condition.end(), static_cast<double>(growth));
  for (Index c = 0; c < dv; ++c) {
    std::vector<Real> units;
    for (Index h = 0; h < hidden; ++h) {
      Real z = 0;
      for (Index j = 0; j < n; ++j) z += weight(state, "W1", h, j) * Y(j, c);
      units.push_back(z * (1 + std::erf(z / std::sqrt(Real(2)))) / 2);
    }
    for (Index i = 0; i < n; ++i) {
      Real out = params.flag("residual") ? static_cast<Real>(head.V(i, c)) : 0;
      for (Index h = 0; h < hidden; ++h) out += weight(state, "W2", i, h) * units[static_cast<size_t>(h)];
      answer.out(i, c) = static_cast<double>(out);
    }
  }
  return answer;
}

// V_p o (sum_j W_pj V_j + b_p), over the visible j; rows whose own token is not there are 0.
Answer gmlp(const Params&, const Tensors& state, const HeadData<double>& head, Mask mask) {
  const Index n = unpadded(head, mask);
  Answer answer = nothing(head);
  for (Index i = 0; i < head.Q.rows(); ++i) {
    const Index p = i + mask.offset, place = mask.offset >= 0 ? i : p;
    if (p < 0 || p >= n) continue;
    for (Index c = 0; c < head.V.cols(); ++c) {
      Real gate = weight(state, "b", place, 0);
      for (Index j = 0; j < n; ++j)
        if (sees(mask, i, j)) gate += weight(state, "W", place, j) * static_cast<Real>(head.V(j, c));
      answer.out(i, c) = static_cast<double>(gate * static_cast<Real>(head.V(p, c)));
    }
  }
  return answer;
}

const bool registered = add({.method = "synthesizer", .attention = synthesizer}) &&
                        add({.method = "fnet", .attention = fnet}) && add({.method = "mixer", .attention = mixer}) &&
                        add({.method = "gmlp", .attention = gmlp});

}  // namespace

}  // namespace attnbench::oracle
