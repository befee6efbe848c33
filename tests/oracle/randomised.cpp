// Randomised attention, LARA and EVA. methods.md A10.
#include <algorithm>

#include "tests/oracle/transcription.hpp"

namespace attnbench::oracle {

namespace {

using Numbers = std::vector<Real>;

Real& at(Numbers& x, Index i) { return x[static_cast<size_t>(i)]; }
Real at(const Numbers& x, Index i) { return x[static_cast<size_t>(i)]; }

Numbers row_of(const Matrix<double>& X, Index i) {
  Numbers x;
  for (Index l = 0; l < X.cols(); ++l) x.push_back(static_cast<Real>(X(i, l)));
  return x;
}

Real inner(const Numbers& x, const Numbers& y) {
  Real sum = 0;
  for (size_t l = 0; l < x.size(); ++l) sum += x[l] * y[l];
  return sum;
}

Numbers sum_of(const Numbers& x, const Numbers& y) {
  Numbers sum;
  for (size_t l = 0; l < x.size(); ++l) sum.push_back(x[l] + y[l]);
  return sum;
}

Real log_sum(const Numbers& logs) {
  const Real largest = *std::max_element(logs.begin(), logs.end());
  Real sum = 0;
  for (const Real log : logs) sum += std::exp(log - largest);
  return largest + std::log(sum);
}

Numbers softmax(const Numbers& logits) {
  const Real all = log_sum(logits);
  Numbers weights;
  for (const Real logit : logits) weights.push_back(std::exp(logit - all));
  return weights;
}

Numbers mean_of(const Matrix<double>& X, const std::vector<Index>& rows) {
  Numbers mean(static_cast<size_t>(X.cols()), 0);
  for (const Index i : rows)
    for (Index l = 0; l < X.cols(); ++l) at(mean, l) += static_cast<Real>(X(i, l)) / static_cast<Real>(rows.size());
  return mean;
}

Index unpadded(Mask mask, Index nk) { return mask.keys < 0 ? nk : std::min(mask.keys, nk); }

// w.k_j - |k_j|^2 / 2 of these keys.
Numbers features(const Numbers& w, const Matrix<double>& K, const std::vector<Index>& keys) {
  Numbers logs;
  for (const Index j : keys) {
    const Numbers k = row_of(K, j);
    logs.push_back(inner(w, k) - inner(k, k) / 2);
  }
  return logs;
}

std::vector<Index> range(Index begin, Index end) {
  std::vector<Index> all;
  for (Index j = begin; j < end; ++j) all.push_back(j);
  return all;
}

Answer empty(const HeadData<double>& head) {
  return {Matrix<double>::Zero(head.Q.rows(), head.K.rows()), Matrix<double>::Zero(head.Q.rows(), head.V.cols()),
          std::vector<double>(static_cast<size_t>(head.Q.rows()), 1)};
}

void write_row(Answer& answer, Index i, const Numbers& weights, const HeadData<double>& head) {
  for (Index j = 0; j < std::ssize(weights); ++j) answer.A(i, j) = static_cast<double>(at(weights, j));
  for (Index l = 0; l < head.V.cols(); ++l) {
    Real out = 0;
    for (Index j = 0; j < std::ssize(weights); ++j) out += at(weights, j) * static_cast<Real>(head.V(j, l));
    answer.out(i, l) = static_cast<double>(out);
  }
}

// ---- Randomised attention

Answer randomised(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask) {
  Answer answer = empty(head);
  const Index m = params.integer("m");
  for (Index i = 0; i < head.Q.rows(); ++i) {
    Index n = 0;
    while (n < head.K.rows() && sees(mask, i, n)) ++n;
    if (n == 0) continue;
    const auto keys = range(0, n);
    const Numbers q = row_of(head.Q, i);
    Numbers logits;
    for (const Index j : keys) logits.push_back(inner(q, row_of(head.K, j)));
    const Numbers a = softmax(logits);
    Numbers weights(static_cast<size_t>(n), 0);
    for (Index t = 0; t < m; ++t) {
      Index key = 0;
      Real sum = 0;
      for (Index j = 0; j < n; ++j) {
        if (at(a, j) > 0) key = j;
        sum += at(a, j);
        if (sum > static_cast<Real>(state.at("u")(i, t))) break;
      }
      const Numbers w = sum_of(sum_of(q, row_of(head.K, key)), row_of(state.at("z"), i * m + t));
      const Numbers f = softmax(features(w, head.K, keys));
      for (Index j = 0; j < n; ++j) at(weights, j) += at(f, j) / static_cast<Real>(m);
    }
    write_row(answer, i, weights, head);
  }
  return answer;
}

// ---- LARA

struct Proposals {
  std::vector<Numbers> qbar, w, features;  // of each proposal; the features of every key
  Numbers own, all;                        // L_cc and log sum_b exp(L_cb)
};

// Those at positions that are not padding, or all of them.
Index counted_queries(const HeadData<double>& head, Mask mask) {
  Index queries = 0;
  for (Index i = 0; i < head.Q.rows(); ++i) queries += mask.keys < 0 || i + mask.offset < mask.keys;
  return queries == 0 ? head.Q.rows() : queries;
}

Proposals proposals(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask) {
  const Index n = unpadded(mask, head.K.rows());
  const Index queries = counted_queries(head, mask);
  const Index C = std::min({params.integer("c"), queries, n});
  Proposals found;
  std::vector<Numbers> mu;
  for (Index c = 0; c < C; ++c) {
    found.qbar.push_back(mean_of(head.Q, range(c * queries / C, (c + 1) * queries / C)));
    mu.push_back(sum_of(found.qbar.back(), mean_of(head.K, range(c * n / C, (c + 1) * n / C))));
    found.w.push_back(sum_of(mu.back(), row_of(state.at("z"), c)));
    found.features.push_back(features(found.w.back(), head.K, range(0, n)));
  }
  for (const Numbers& w : found.w) {
    Numbers L;
    for (const Numbers& mean : mu) L.push_back(inner(w, mean) - inner(mean, mean) / 2);
    found.own.push_back(at(L, std::ssize(found.own)));
    found.all.push_back(log_sum(L));
  }
  return found;
}

// The logarithm of p / q_c without alpha, alpha, and the sum of its absolute terms.
struct Importance {
  Numbers log, alpha, terms;
};

Importance importance(const Params& params, const Proposals& of, const Numbers& q, const HeadData<double>& head,
                      Mask mask) {
  Importance found;
  Numbers near;
  for (const Numbers& mean : of.qbar) near.push_back(inner(q, mean));
  Numbers t = softmax(near);
  if (params.text("weights") == "over-queries")
    for (Index c = 0; c < std::ssize(t); ++c) {
      Numbers of_queries;
      const Index queries = counted_queries(head, mask);
      for (Index i = 0; i < queries; ++i)
        of_queries.push_back(inner(row_of(head.Q, i), of.qbar[static_cast<size_t>(c)]));
      at(t, c) = std::exp(at(near, c) - log_sum(of_queries));
    }
  const Index C = std::ssize(of.w);
  for (Index c = 0; c < C; ++c) {
    const Real density = inner(of.w[static_cast<size_t>(c)], q) + log_sum(of.features[static_cast<size_t>(c)]);
    found.log.push_back(density - at(of.own, c));
    const Real balance = std::exp(at(of.own, c) - at(of.all, c)), uniform = 1 / static_cast<Real>(C);
    const bool by_query = params.text("weights") != "balance";
    found.alpha.push_back(by_query ? std::max(balance + at(t, c) - uniform, static_cast<Real>(1e-8)) : balance);
    found.terms.push_back(by_query ? balance + at(t, c) + uniform : balance);
  }
  return found;
}

Answer lara(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask) {
  Answer answer = empty(head);
  const Index n = unpadded(mask, head.K.rows());
  if (n == 0) return answer;
  const Proposals of = proposals(params, state, head, mask);
  std::vector<Numbers> f;
  for (const Numbers& logs : of.features) f.push_back(softmax(logs));
  for (Index i = 0; i < head.Q.rows(); ++i) {
    const Importance r = importance(params, of, row_of(head.Q, i), head, mask);
    const Real largest = *std::max_element(r.log.begin(), r.log.end());
    Numbers weights(static_cast<size_t>(n), 0);
    Real sum = 0, terms = 0;
    for (Index c = 0; c < std::ssize(f); ++c) {
      const Real size = std::exp(at(r.log, c) - largest);
      sum += size * at(r.alpha, c);
      terms += size * at(r.terms, c);
      for (Index j = 0; j < n; ++j) at(weights, j) += size * at(r.alpha, c) * at(f[static_cast<size_t>(c)], j);
    }
    for (Real& weight : weights) weight /= sum;
    write_row(answer, i, weights, head);
    answer.condition[static_cast<size_t>(i)] = static_cast<double>(terms / sum);
  }
  return answer;
}

Weights lara_weights(const Params& params, const Tensors& state, const HeadData<double>& head) {
  Weights weights(head.Q.rows(), head.K.rows());
  const Proposals of = proposals(params, state, head, {});
  Numbers sums;
  for (const Numbers& logs : of.features) sums.push_back(log_sum(logs));
  for (Index i = 0; i < head.Q.rows(); ++i) {
    const Numbers q = row_of(head.Q, i);
    const Importance r = importance(params, of, q, head, {});
    const Real largest = *std::max_element(r.log.begin(), r.log.end());
    for (Index j = 0; j < head.K.rows(); ++j) {
      weights.log(i, j) = largest - inner(q, q) / 2;
      for (Index c = 0; c < std::ssize(of.w); ++c) {
        const Numbers& logs = of.features[static_cast<size_t>(c)];
        const Real size = std::exp(at(r.log, c) - largest + at(logs, j) - at(sums, c));
        weights.value(i, j) += size * at(r.alpha, c);
        weights.magnitude(i, j) += size * at(r.terms, c);
      }
    }
  }
  return weights;
}

// ---- EVA

// The keys of each chunk: parts of windows, or several windows.
std::vector<std::vector<Index>> chunks_of(Index n, Index c, Index window) {
  const Index windows = (n + window - 1) / window, length = std::min(window, n);
  std::vector<std::vector<Index>> chunks;
  if (c >= windows) {
    const Index parts = std::min(c / windows, length);
    for (Index b = 0; b < windows; ++b)
      for (Index a = 0; a < parts; ++a) {
        const Index begin = b * window + a * length / parts, end = b * window + (a + 1) * length / parts;
        if (begin < n) chunks.push_back(range(begin, std::min(n, end)));
      }
    return chunks;
  }
  const Index together = (windows + c - 1) / c;
  for (Index b = 0; b < windows; b += together)
    chunks.push_back(range(b * window, b + together < windows ? (b + together) * window : n));
  return chunks;
}

Answer eva(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask) {
  Answer answer = empty(head);
  const Index n = unpadded(mask, head.K.rows()), window = params.integer("window");
  if (n == 0) return answer;
  const auto chunks = chunks_of(n, params.integer("c"), window);
  std::vector<Numbers> w;
  for (const auto& chunk : chunks) {
    std::vector<Index> tokens = chunk, queries;
    if (mask.causal && std::ssize(tokens) > window) tokens.resize(static_cast<size_t>(window));
    for (const Index p : tokens)
      if (p - mask.offset >= 0 && p - mask.offset < head.Q.rows()) queries.push_back(p - mask.offset);
    Numbers mean = mean_of(head.K, tokens);
    if (!queries.empty()) mean = sum_of(mean, mean_of(head.Q, queries));
    w.push_back(sum_of(mean, row_of(state.at("z"), std::ssize(w))));
  }
  for (Index i = 0; i < head.Q.rows(); ++i) {
    const Index position = i + mask.offset;
    Index begin = position / window * window;
    if (position < 0) begin = (position + 1) / window * window - window;
    if (mask.causal && position < 0) continue;
    const auto in_window = [&](Index j) { return j >= begin && j < begin + window; };
    const Numbers q = row_of(head.Q, i);
    std::vector<std::vector<Index>> summarised;  // each is one term of the softmax
    Numbers logits;
    std::vector<Numbers> shares;
    for (size_t c = 0; c < chunks.size(); ++c) {
      std::vector<Index> keys;
      for (const Index j : chunks[c])
        if ((!in_window(j) || params.flag("overlapping")) && (!mask.causal || j < begin)) keys.push_back(j);
      if (keys.empty()) continue;
      const Real log_size = params.flag("sizes") ? std::log(static_cast<Real>(keys.size())) : 0;
      logits.push_back(inner(q, mean_of(head.K, keys)) + log_size);
      shares.push_back(softmax(features(w[c], head.K, keys)));
      summarised.push_back(keys);
    }
    for (Index j = 0; j < n; ++j)
      if (in_window(j) && sees(mask, i, j)) {
        logits.push_back(inner(q, row_of(head.K, j)));
        shares.push_back({1});
        summarised.push_back({j});
      }
    if (logits.empty()) continue;
    const Numbers terms = softmax(logits);
    Numbers weights(static_cast<size_t>(n), 0);
    for (size_t s = 0; s < terms.size(); ++s)
      for (size_t place = 0; place < summarised[s].size(); ++place)
        at(weights, summarised[s][place]) += terms[s] * shares[s][place];
    write_row(answer, i, weights, head);
  }
  return answer;
}

const bool registered =
    add({.method = "randomised", .attention = randomised, .jumps = [](const Params&) { return true; }}) &&
    add({.method = "lara", .attention = lara, .weights = lara_weights}) && add({.method = "eva", .attention = eva});

}  // namespace

}  // namespace attnbench::oracle
