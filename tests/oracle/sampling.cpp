// Sampled keys. methods.md S.
#include <algorithm>

#include "tests/oracle/transcription.hpp"

namespace attnbench::oracle {

namespace {

// The probabilities of the first n keys for query i.
std::vector<Real> probabilities(const std::string& law, const HeadData<double>& head, Index i, Index n) {
  const Index dv = head.V.cols();
  std::vector<Real> p(static_cast<size_t>(n), 1);
  const auto at = [&](Index j) -> Real& { return p[static_cast<size_t>(j)]; };
  if (law == "value-norm") {
    for (Index j = 0; j < n; ++j) {
      Real squares = 0;
      for (Index c = 0; c < dv; ++c) squares += static_cast<Real>(head.V(j, c)) * static_cast<Real>(head.V(j, c));
      at(j) = std::sqrt(squares);
    }
  } else if (law != "uniform") {
    Real largest = -INFINITY, sum = 0;
    for (Index j = 0; j < n; ++j) largest = std::max(largest, dot(head.Q, i, head.K, j));
    for (Index j = 0; j < n; ++j) sum += at(j) = std::exp(dot(head.Q, i, head.K, j) - largest);
    for (Index j = 0; j < n; ++j) at(j) /= sum;
  }
  const std::vector<Real> before = p;
  if (law == "optimal") {
    std::vector<Real> output(static_cast<size_t>(dv), 0);
    for (Index j = 0; j < n; ++j)
      for (Index c = 0; c < dv; ++c) output[static_cast<size_t>(c)] += at(j) * static_cast<Real>(head.V(j, c));
    for (Index j = 0; j < n; ++j) {
      Real squares = 0;
      for (Index c = 0; c < dv; ++c) {
        const Real difference = static_cast<Real>(head.V(j, c)) - output[static_cast<size_t>(c)];
        squares += difference * difference;
      }
      at(j) *= std::sqrt(squares);
    }
  }
  Real total = 0;
  for (const Real x : p) total += x;
  if (total == 0 && law == "optimal") return before;  // every value is the output
  for (Real& x : p) x = total == 0 ? 1 / static_cast<Real>(n) : x / total;
  return p;
}

std::vector<Index> drawn_keys(const Params& params, const Matrix<double>& u, Index i, const std::vector<Real>& p) {
  const Index n = std::ssize(p), s = params.integer("s");
  std::vector<Index> keys;
  if (!params.flag("replacement")) {
    const Index count = std::min(s, n);
    for (Index t = 0; t < count; ++t) {
      const Index last = n - count + t;
      const auto key = static_cast<Index>(static_cast<Real>(u(i, t)) * static_cast<Real>(last + 1));
      const bool taken = std::find(keys.begin(), keys.end(), key) != keys.end();
      keys.push_back(taken ? last : key);
    }
    return keys;
  }
  for (Index t = 0; t < s; ++t) {
    Real x = static_cast<Real>(u(i, t)), sum = 0;
    if (params.flag("stratified")) x = (static_cast<Real>(t) + x) / static_cast<Real>(s);
    Index key = 0;
    for (Index j = 0; j < n; ++j) {
      if (p[static_cast<size_t>(j)] > 0) key = j;
      sum += p[static_cast<size_t>(j)];
      if (sum > x) break;
    }
    keys.push_back(key);
  }
  return keys;
}

Answer sampled(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask) {
  const Index nq = head.Q.rows(), nk = head.K.rows(), dv = head.V.cols();
  Answer answer{Matrix<double>::Zero(nq, nk), Matrix<double>::Zero(nq, dv),
                std::vector<double>(static_cast<size_t>(nq), 1)};
  for (Index i = 0; i < nq; ++i) {
    Index n = 0;
    while (n < nk && sees(mask, i, n)) ++n;
    if (n == 0) continue;
    const auto p = probabilities(params.text("law"), head, i, n);
    const auto keys = drawn_keys(params, state.at("u"), i, p);
    std::vector<Real> weight(static_cast<size_t>(nk), 0);
    Real largest = -INFINITY, sum = 0;
    const auto log_weight = [&](Index j) { return dot(head.Q, i, head.K, j) - std::log(p[static_cast<size_t>(j)]); };
    for (const Index j : keys) largest = std::max(largest, log_weight(j));
    for (const Index j : keys) weight[static_cast<size_t>(j)] += std::exp(log_weight(j) - largest);
    for (const Real w : weight) sum += w;
    for (Index j = 0; j < nk; ++j) answer.A(i, j) = static_cast<double>(weight[static_cast<size_t>(j)] / sum);
    for (Index c = 0; c < dv; ++c) {
      Real out = 0;
      for (Index j = 0; j < nk; ++j) out += weight[static_cast<size_t>(j)] / sum * static_cast<Real>(head.V(j, c));
      answer.out(i, c) = static_cast<double>(out);
    }
  }
  return answer;
}

const bool registered = add({.method = "sampled", .attention = sampled, .jumps = [](const Params&) { return true; }});

}  // namespace

}  // namespace attnbench::oracle
