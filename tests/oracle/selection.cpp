// Keys chosen by what a row knows of its query. methods.md U. Row i has position p = i + offset.
#include <algorithm>
#include <numeric>

#include "tests/oracle/transcription.hpp"

namespace attnbench::oracle {

namespace {

using Sets = std::vector<std::vector<bool>>;  // of each row, the keys in it

Index seen_by(Mask mask, Index i, Index nk) {
  Index seen = 0;
  while (seen < nk && sees(mask, i, seen)) ++seen;
  return seen;
}

// The first `count` of [0, n) in the order of score, largest first, the first of equals.
template <class Score>
std::vector<Index> best(Index n, Index count, const Score& score) {
  std::vector<Index> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), Index(0));
  std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return score(a) > score(b); });
  order.resize(static_cast<size_t>(std::clamp<Index>(count, 0, n)));
  return order;
}

Answer softmax_over(const Sets& sets, const HeadData<double>& head) {
  const Set chosen = [&](Index i, Index j) { return sets[static_cast<size_t>(i)][static_cast<size_t>(j)]; };
  return normalise(softmax_weights(head), head, chosen, chosen);
}

Sets none(const HeadData<double>& head) {
  return {static_cast<size_t>(head.Q.rows()), std::vector<bool>(static_cast<size_t>(head.K.rows()), false)};
}

// ---- Pages

// score(i, first, end): of the keys [first, end) for row i.
template <class Score>
Sets best_pages(const HeadData<double>& head, Mask mask, Index size, Index keep, const Score& score) {
  Sets sets = none(head);
  const Index nk = head.K.rows();
  for (Index i = 0; i < head.Q.rows(); ++i) {
    const Index seen = seen_by(mask, i, nk), p = i + mask.offset;
    std::vector<std::pair<bool, Real>> scores;  // the row's own page before all others
    for (Index first = 0; first < seen; first += size) {
      const Index end = std::min(first + size, seen);
      scores.emplace_back(p >= first && p < end, score(i, first, end));
    }
    for (const Index page : best(std::ssize(scores), keep, [&](Index at) { return scores[static_cast<size_t>(at)]; }))
      for (Index j = page * size; j < std::min((page + 1) * size, seen); ++j)
        sets[static_cast<size_t>(i)][static_cast<size_t>(j)] = true;
  }
  return sets;
}

Answer quest(const Params& params, const Tensors&, const HeadData<double>& head, Mask mask) {
  const auto bound = [&](Index i, Index first, Index end) {
    Real sum = 0;
    for (Index c = 0; c < head.Q.cols(); ++c) {
      Real most = -INFINITY, least = INFINITY;
      for (Index j = first; j < end; ++j) {
        most = std::max(most, static_cast<Real>(head.K(j, c)));
        least = std::min(least, static_cast<Real>(head.K(j, c)));
      }
      const auto q = static_cast<Real>(head.Q(i, c));
      sum += std::max(q * most, q * least);
    }
    return sum;
  };
  return softmax_over(best_pages(head, mask, params.integer("page"), params.integer("keep"), bound), head);
}

Answer moba(const Params& params, const Tensors&, const HeadData<double>& head, Mask mask) {
  const auto gate = [&](Index i, Index first, Index end) {
    Real sum = 0;
    for (Index j = first; j < end; ++j) sum += dot(head.Q, i, head.K, j);
    return sum / static_cast<Real>(end - first);
  };
  return softmax_over(best_pages(head, mask, params.integer("block"), params.integer("keep"), gate), head);
}

// ---- Vertical-slash

Answer vertical_slash(const Params& params, const Tensors&, const HeadData<double>& head, Mask mask) {
  const Index nq = head.Q.rows(), nk = head.K.rows(), queries = params.integer("rows");
  const std::string& shape = params.text("shape");
  const Real scale = params.flag("scaled") ? 1 : std::sqrt(static_cast<Real>(head.Q.cols()));
  const Index seen_last = seen_by(mask, nq - 1, nk), positions = std::max<Index>(0, nq + mask.offset);
  std::vector<Real> columns(static_cast<size_t>(seen_last), 0), diagonals(static_cast<size_t>(positions), 0);
  for (Index i = std::max<Index>(0, nq - queries); i < nq; ++i) {
    const Index seen = seen_by(mask, i, nk);
    Real largest = -INFINITY, sum = 0;
    const auto logit = [&](Index j) { return scale * dot(head.Q, i, head.K, j); };
    for (Index j = 0; j < seen; ++j) largest = std::max(largest, logit(j));
    for (Index j = 0; j < seen; ++j) sum += std::exp(logit(j) - largest);
    for (Index j = 0; j < seen; ++j) {
      columns[static_cast<size_t>(j)] += std::exp(logit(j) - largest) / sum;
      diagonals[static_cast<size_t>(i + mask.offset - j)] += std::exp(logit(j) - largest) / sum;
    }
  }
  const auto lines = [&](const std::vector<Real>& scores, Index always, Index others) {
    std::vector<bool> on(scores.size(), false);
    const Index n = std::ssize(scores);
    for (Index line = 0; line < std::min(always, n); ++line) on[static_cast<size_t>(line)] = true;
    if (shape != "vertical-slash" || always >= n) return on;
    for (const Index line :
         best(n - always, others, [&](Index at) { return scores[static_cast<size_t>(always + at)]; }))
      on[static_cast<size_t>(always + line)] = true;
    return on;
  };
  const auto vertical = lines(columns, params.integer("first"), params.integer("vertical"));
  const auto slash = lines(diagonals, params.integer("last"), params.integer("slash"));
  Sets sets = none(head);
  for (Index i = 0; i < nq; ++i)
    for (Index j = 0; j < seen_by(mask, i, nk); ++j)
      sets[static_cast<size_t>(i)][static_cast<size_t>(j)] = (shape == "tri" && i >= nq - queries) ||
                                                             vertical[static_cast<size_t>(j)] ||
                                                             slash[static_cast<size_t>(i + mask.offset - j)];
  return softmax_over(sets, head);
}

// ---- Single keys by an estimate of their logits

Answer sparq(const Params& params, const Tensors&, const HeadData<double>& head, Mask mask) {
  const Index nq = head.Q.rows(), nk = head.K.rows(), d = head.Q.cols(), local = params.integer("local");
  Sets sets = none(head);
  std::vector<Real> alpha(static_cast<size_t>(nq), 1);
  for (Index i = 0; i < nq; ++i) {
    const Index seen = seen_by(mask, i, nk);
    if (seen == 0) continue;
    const auto query = [&](Index c) { return static_cast<Real>(head.Q(i, c)); };
    Real read = 0, all = 0;
    const auto channels = best(d, params.integer("r"), [&](Index c) { return std::abs(query(c)); });
    for (const Index c : channels) read += std::abs(query(c));
    for (Index c = 0; c < d; ++c) all += std::abs(query(c));
    std::vector<Real> estimate;
    for (Index j = 0; j < seen; ++j) {
      Real sum = 0;
      for (const Index c : channels) sum += query(c) * static_cast<Real>(head.K(j, c));
      estimate.push_back(read > 0 ? sum / std::sqrt(read / all) : 0);
    }
    const auto chosen = best(seen, params.integer("k"), [&](Index j) {
      return std::pair(std::abs(i + mask.offset - j) < local, estimate[static_cast<size_t>(j)]);
    });
    const Real largest = *std::max_element(estimate.begin(), estimate.end());
    Real of_chosen = 0, of_all = 0;
    for (const Real e : estimate) of_all += std::exp(e - largest);
    for (const Index j : chosen) {
      of_chosen += std::exp(estimate[static_cast<size_t>(j)] - largest);
      sets[static_cast<size_t>(i)][static_cast<size_t>(j)] = true;
    }
    alpha[static_cast<size_t>(i)] = of_chosen / of_all;
  }
  Answer answer = softmax_over(sets, head);
  if (!params.flag("mean")) return answer;
  for (Index i = 0; i < nq; ++i) {
    const Index seen = seen_by(mask, i, nk);
    const auto share = static_cast<double>(alpha[static_cast<size_t>(i)]);
    for (Index j = 0; j < seen; ++j) answer.A(i, j) = share * answer.A(i, j) + (1 - share) / static_cast<double>(seen);
    for (Index l = 0; l < head.V.cols() && seen > 0; ++l) {
      Real mean = 0;
      for (Index j = 0; j < seen; ++j) mean += static_cast<Real>(head.V(j, l)) / static_cast<Real>(seen);
      answer.out(i, l) = static_cast<double>(alpha[static_cast<size_t>(i)] * static_cast<Real>(answer.out(i, l)) +
                                             (1 - alpha[static_cast<size_t>(i)]) * mean);
    }
  }
  return answer;
}

// The k keys of largest (B q).(B k), B from the state.
Answer loki(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask) {
  const Matrix<double>& B = state.at("basis");
  Table queries(head.Q.rows(), B.rows()), keys(head.K.rows(), B.rows());
  for (Index a = 0; a < B.rows(); ++a) {
    for (Index i = 0; i < queries.rows; ++i) queries(i, a) = dot(head.Q, i, B, a);
    for (Index j = 0; j < keys.rows; ++j) keys(j, a) = dot(head.K, j, B, a);
  }
  Sets sets = none(head);
  for (Index i = 0; i < head.Q.rows(); ++i)
    for (const Index j : best(seen_by(mask, i, head.K.rows()), params.integer("k"),
                              [&](Index key) { return dot(queries, i, keys, key); }))
      sets[static_cast<size_t>(i)][static_cast<size_t>(j)] = true;
  return softmax_over(sets, head);
}

// The fewest keys whose weights sum to p.
Answer top_p(const Params& params, const Tensors&, const HeadData<double>& head, Mask mask) {
  const Real p = static_cast<Real>(params.real("p"));
  Sets sets = none(head);
  for (Index i = 0; i < head.Q.rows(); ++i) {
    const Index seen = seen_by(mask, i, head.K.rows());
    const auto order = best(seen, seen, [&](Index j) { return dot(head.Q, i, head.K, j); });
    Real all = 0, sum = 0;
    const auto weight = [&](Index j) {
      return std::exp(dot(head.Q, i, head.K, j) - dot(head.Q, i, head.K, order.front()));
    };
    for (const Index j : order) all += weight(j);
    for (const Index j : order) {
      if (p < 1 && sum >= p * all) break;
      sum += weight(j);
      sets[static_cast<size_t>(i)][static_cast<size_t>(j)] = true;
    }
  }
  return softmax_over(sets, head);
}

// ---- Blocks of keys for blocks of rows

// The mean of rows [first, end) of X, and the mean cosine of all their pairs.
struct PooledBlock {
  PooledBlock(const Matrix<double>& X, Index first, Index end) {
    Real cosines = 0;
    const auto count = static_cast<Real>(end - first);
    for (Index c = 0; c < X.cols(); ++c) {
      mean.push_back(0);
      for (Index i = first; i < end; ++i) mean.back() += static_cast<Real>(X(i, c)) / count;
    }
    for (Index a = first; a < end; ++a)
      for (Index b = first; b < end; ++b) {
        const Real lengths = std::sqrt(dot(X, a, X, a)) * std::sqrt(dot(X, b, X, b));
        if (lengths > 0) cosines += dot(X, a, X, b) / lengths;
      }
    cosine = cosines / (count * count);
  }
  std::vector<Real> mean;
  Real cosine = 0;
};

// Of row i and all rows of its block, the last one that there is.
Index last_of_block(Index i, Index size, Index nq) { return std::min(nq, (i / size + 1) * size) - 1; }

Answer sparge(const Params& params, const Tensors&, const HeadData<double>& head, Mask mask) {
  const Index rows = params.integer("rows"), size = params.integer("block"), nq = head.Q.rows(), nk = head.K.rows();
  const Real similar = static_cast<Real>(params.real("similar")), mass = static_cast<Real>(params.real("mass"));
  const Index there = seen_by({.keys = mask.keys}, 0, nk);
  std::vector<PooledBlock> keys;
  for (Index first = 0; first < there; first += size) keys.emplace_back(head.K, first, std::min(first + size, there));
  Sets sets = none(head);
  for (Index begin = 0; begin < nq; begin += rows) {
    const Index last = last_of_block(begin, rows, nq), blocks = (seen_by(mask, last, nk) + size - 1) / size;
    const PooledBlock query(head.Q, begin, last + 1);
    std::vector<bool> kept(static_cast<size_t>(blocks), false);
    std::vector<Real> weight;
    Real all = 0, sum = 0;
    for (Index J = 0; J < blocks; ++J) {
      const PooledBlock& key = keys[static_cast<size_t>(J)];
      Real logit = 0;
      for (size_t c = 0; c < key.mean.size(); ++c) logit += query.mean[c] * key.mean[c];
      const bool scored = query.cosine > similar && key.cosine > similar;
      if (!scored || (J == 0 && params.flag("sink"))) kept[static_cast<size_t>(J)] = true;
      weight.push_back(scored ? std::exp(logit) : -1);
      if (scored) all += weight.back();
    }
    bool any = false;
    for (const Index J : best(blocks, blocks, [&](Index at) { return weight[static_cast<size_t>(at)]; })) {
      if (weight[static_cast<size_t>(J)] < 0) break;
      sum += weight[static_cast<size_t>(J)];
      if (any && mass < 1 && sum > mass * all) break;
      any = kept[static_cast<size_t>(J)] = true;
    }
    for (Index i = begin; i <= last; ++i)
      for (Index j = 0; j < seen_by(mask, i, nk); ++j)
        sets[static_cast<size_t>(i)][static_cast<size_t>(j)] = kept[static_cast<size_t>(j / size)];
  }
  return softmax_over(sets, head);
}

Answer xattention(const Params& params, const Tensors&, const HeadData<double>& head, Mask mask) {
  const Index size = params.integer("block"), stride = params.integer("stride"), nq = head.Q.rows(), nk = head.K.rows();
  const Real mass = static_cast<Real>(params.real("mass"));
  const Index there = seen_by({.keys = mask.keys}, 0, nk);
  Sets sets = none(head);
  for (Index begin = 0; begin < nq; begin += size) {
    const Index last = last_of_block(begin, size, nq), blocks = (seen_by(mask, last, nk) + size - 1) / size;
    std::vector<Real> score(static_cast<size_t>(blocks), 0);
    for (Index i = begin; i <= last; i += stride) {
      const Index seen = seen_by(mask, std::min(i + stride - 1, last), nk);
      std::vector<Real> logits;
      for (Index j = 0; j < seen; j += stride) {
        logits.push_back(0);
        for (Index u = 0; u < stride; ++u)
          if (i + stride - 1 - u < nq && j + u < there)
            logits.back() += dot(head.Q, i + stride - 1 - u, head.K, j + u) / static_cast<Real>(stride);
      }
      Real largest = -INFINITY, sum = 0;
      for (const Real g : logits) largest = std::max(largest, g);
      for (const Real g : logits) sum += std::exp(g - largest);
      for (size_t b = 0; b < logits.size(); ++b)
        score[b * static_cast<size_t>(stride) / static_cast<size_t>(size)] += std::exp(logits[b] - largest) / sum;
    }
    std::vector<bool> kept(static_cast<size_t>(blocks), false);
    Real all = 0, sum = 0;
    for (Index J = 0; J < blocks; ++J) {
      bool forced = J == 0;
      for (Index i = begin; i <= last; ++i) {
        const Index p = i + mask.offset;
        forced = forced || (p >= J * size && p < (J + 1) * size);
      }
      kept[static_cast<size_t>(J)] = forced && mask.causal;
      all += score[static_cast<size_t>(J)];
      if (kept[static_cast<size_t>(J)]) sum += score[static_cast<size_t>(J)];
    }
    for (const Index J : best(blocks, blocks, [&](Index at) { return score[static_cast<size_t>(at)]; })) {
      if (kept[static_cast<size_t>(J)]) continue;
      if (mass < 1 && sum >= mass * all) break;
      sum += score[static_cast<size_t>(J)];
      kept[static_cast<size_t>(J)] = true;
    }
    for (Index i = begin; i <= last; ++i)
      for (Index j = 0; j < seen_by(mask, i, nk); ++j)
        sets[static_cast<size_t>(i)][static_cast<size_t>(j)] = kept[static_cast<size_t>(j / size)];
  }
  return softmax_over(sets, head);
}

// ---- One set for all rows

// b in A b = right, A symmetric positive definite.
std::vector<Real> solved(Table A, std::vector<Real> right) {
  for (Index c = 0; c < A.rows; ++c)
    for (Index i = c + 1; i < A.rows; ++i) {
      const Real factor = A(i, c) / A(c, c);
      for (Index l = c; l < A.rows; ++l) A(i, l) -= factor * A(c, l);
      right[static_cast<size_t>(i)] -= factor * right[static_cast<size_t>(c)];
    }
  for (Index c = A.rows; c-- > 0;) {
    for (Index l = c + 1; l < A.rows; ++l) right[static_cast<size_t>(c)] -= A(c, l) * right[static_cast<size_t>(l)];
    right[static_cast<size_t>(c)] /= A(c, c);
  }
  return right;
}

// Of the first n keys.
std::vector<Real> key_scores(const std::string& score, const Tensors& state, const HeadData<double>& head, Index n) {
  const Index d = head.K.cols();
  std::vector<Real> scores, mean(static_cast<size_t>(d), 0);
  const bool units = score == "keydiff";
  const auto entry = [&](Index j, Index c) {
    const Real length = std::sqrt(dot(head.K, j, head.K, j));
    return static_cast<Real>(head.K(j, c)) / (units && length > 0 ? length : 1);
  };
  for (Index j = 0; j < n; ++j)
    for (Index c = 0; c < d; ++c) mean[static_cast<size_t>(c)] += entry(j, c) / static_cast<Real>(n);
  const auto centred = [&](Index j, Index c) { return entry(j, c) - mean[static_cast<size_t>(c)]; };
  Table G(d, d);
  for (Index a = 0; a < d; ++a)
    for (Index b = 0; b < d; ++b) {
      G(a, b) = a == b ? 0.01L / std::sqrt(static_cast<Real>(d)) : 0;
      for (Index j = 0; j < n && score == "leverage"; ++j) G(a, b) += centred(j, a) * centred(j, b);
    }
  for (Index j = 0; j < n; ++j) {
    Real of_key = 0;
    if (score == "random") of_key = static_cast<Real>(state.at("uniforms")(j, 0));
    if (score == "knorm") of_key = -std::sqrt(dot(head.K, j, head.K, j));
    if (score == "keydiff")
      for (Index c = 0; c < d; ++c) of_key -= entry(j, c) * mean[static_cast<size_t>(c)];
    if (score == "expected") {
      of_key = std::log(std::sqrt(dot(head.V, j, head.V, j)));
      const Index nq = head.Q.rows();
      Real sum = 0, squares = 0;  // of q.k_j, whose mean and variance the score takes
      for (Index i = 0; i < nq; ++i) sum += dot(head.Q, i, head.K, j);
      for (Index i = 0; i < nq; ++i) squares += std::pow(dot(head.Q, i, head.K, j) - sum / static_cast<Real>(nq), 2);
      of_key += (sum + squares / 2) / static_cast<Real>(nq);
    }
    if (score == "leverage") {
      std::vector<Real> x;
      for (Index c = 0; c < d; ++c) x.push_back(centred(j, c));
      const auto solution = solved(G, x);
      for (size_t c = 0; c < x.size(); ++c) of_key += x[c] * solution[c];
    }
    scores.push_back(of_key);
  }
  return scores;
}

// Which keys are kept of those that the last query sees.
std::vector<bool> kept_of(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask) {
  const std::string& score = params.text("score");
  const Index nq = head.Q.rows(), nk = head.K.rows(), n = seen_by(mask, nq - 1, nk);
  const bool observed = score == "snapkv" || score == "tova" || score == "accumulated";
  const Index rows = score == "snapkv" ? std::min(nq, params.integer("rows")) : score == "tova" ? 1 : nq;
  const Index side = score == "snapkv" ? params.integer("pool") / 2 : 0;
  const bool own = score == "snapkv" || score == "tova";  // the keys of these queries come first and have no score
  const Index window = own ? std::clamp<Index>(nq - rows + mask.offset, 0, n) : n;
  std::vector<Real> scores = observed ? std::vector<Real>() : key_scores(score, state, head, n);
  if (observed) {
    std::vector<Real> sums(static_cast<size_t>(n), 0);
    for (Index i = nq - rows; i < nq; ++i) {
      const Index seen = seen_by(mask, i, nk);
      Real largest = -INFINITY, sum = 0;
      for (Index j = 0; j < seen; ++j) largest = std::max(largest, dot(head.Q, i, head.K, j));
      for (Index j = 0; j < seen; ++j) sum += std::exp(dot(head.Q, i, head.K, j) - largest);
      for (Index j = 0; j < seen; ++j)
        sums[static_cast<size_t>(j)] += std::exp(dot(head.Q, i, head.K, j) - largest) / sum;
    }
    for (Index j = 0; j < n; ++j) {
      scores.push_back(0);
      for (Index l = j - side; l <= j + side; ++l)
        if (l >= 0 && l < window && j < window) scores.back() += sums[static_cast<size_t>(l)];
    }
  }
  std::vector<bool> kept(static_cast<size_t>(n), false);
  for (const Index j : best(n, params.integer("keep"), [&](Index key) {
         return std::tuple(key < params.integer("protect"), key >= window, scores[static_cast<size_t>(key)]);
       }))
    kept[static_cast<size_t>(j)] = true;
  return kept;
}

// Rows of the prompt see all keys. For later ones a dropped key is one of the members of the kept key nearest by angle,
// whose mean key, mean value and number count.
Answer merged(const HeadData<double>& head, Mask mask, Index prompt, const std::vector<bool>& kept) {
  const Index nq = head.Q.rows(), nk = head.K.rows(), d = head.K.cols(), dv = head.V.cols();
  std::vector<std::vector<Index>> groups;
  const auto cosine = [&](Index a, Index b) {
    return dot(head.K, a, head.K, b) / std::sqrt(dot(head.K, a, head.K, a)) / std::sqrt(dot(head.K, b, head.K, b));
  };
  for (Index j = 0; j < std::ssize(kept); ++j)
    if (kept[static_cast<size_t>(j)]) groups.push_back({j});
  for (Index j = 0; j < std::ssize(kept); ++j) {
    if (kept[static_cast<size_t>(j)]) continue;
    size_t nearest = 0;
    for (size_t c = 1; c < groups.size(); ++c)
      if (cosine(j, groups[c][0]) > cosine(j, groups[nearest][0])) nearest = c;
    groups[nearest].push_back(j);
  }
  Answer answer{.A = Matrix<double>::Zero(nq, nk),
                .out = Matrix<double>::Zero(nq, dv),
                .condition = std::vector<double>(static_cast<size_t>(nq), 1)};
  for (Index i = 0; i < nq; ++i) {
    std::vector<std::vector<Index>> seen;
    if (i < prompt) {
      for (Index j = 0; j < seen_by(mask, i, nk); ++j) seen.push_back({j});
    } else {
      seen = groups;
      for (Index j = prompt; j < seen_by(mask, i, nk); ++j) seen.push_back({j});
    }
    std::vector<Real> weights;
    Real sum = 0;
    for (const auto& group : seen) {
      Real logit = 0;
      for (const Index j : group)
        for (Index c = 0; c < d; ++c)
          logit += static_cast<Real>(head.Q(i, c)) * static_cast<Real>(head.K(j, c)) / static_cast<Real>(group.size());
      weights.push_back(static_cast<Real>(group.size()) * std::exp(logit));
      sum += weights.back();
    }
    for (size_t g = 0; g < seen.size(); ++g)
      for (const Index j : seen[g]) {
        answer.A(i, j) = static_cast<double>(weights[g] / sum / static_cast<Real>(seen[g].size()));
        for (Index c = 0; c < dv; ++c) answer.out(i, c) += answer.A(i, j) * head.V(j, c);
      }
  }
  return answer;
}

Answer evict(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask) {
  const Index nq = head.Q.rows(), nk = head.K.rows(), prompt = params.integer("prompt");
  HeadData<double> evicted = head;
  if (prompt > 0) evicted.Q = head.Q.topRows(std::min(nq, prompt));
  const auto kept = kept_of(params, state, evicted, mask);
  if (params.flag("merge")) return merged(head, mask, prompt, kept);
  Sets sets = none(head);
  for (Index i = 0; i < nq; ++i)
    for (Index j = 0; j < seen_by(mask, i, nk); ++j) {
      const bool in_prompt = prompt > 0 && i<prompt, later = prompt> 0 && j >= prompt;
      sets[static_cast<size_t>(i)][static_cast<size_t>(j)] =
          in_prompt || later || j == i + mask.offset || kept[static_cast<size_t>(j)];
    }
  return softmax_over(sets, head);
}

bool always(const Params&) { return true; }
bool with_chosen_lines(const Params& params) { return params.text("shape") == "vertical-slash"; }

const bool registered = add({.method = "quest", .attention = quest, .jumps = always}) &&
                        add({.method = "moba", .attention = moba, .jumps = always}) &&
                        add({.method = "vertical-slash", .attention = vertical_slash, .jumps = with_chosen_lines}) &&
                        add({.method = "sparq", .attention = sparq, .jumps = always}) &&
                        add({.method = "loki", .attention = loki, .jumps = always}) &&
                        add({.method = "top-p", .attention = top_p, .jumps = always}) &&
                        add({.method = "evict", .attention = evict, .jumps = always}) &&
                        add({.method = "sparge", .attention = sparge, .jumps = always}) &&
                        add({.method = "xattention", .attention = xattention, .jumps = always});

}  // namespace

}  // namespace attnbench::oracle
