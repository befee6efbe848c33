// Clusters and sorting. methods.md F.
#include <algorithm>
#include <numeric>
#include <set>

#include "tests/oracle/transcription.hpp"

namespace attnbench::oracle {

namespace {

Index unpadded(Mask mask, Index nk) { return mask.keys < 0 ? nk : std::min(mask.keys, nk); }

// ---- Reformer

Real length(const Matrix<double>& X, Index i) { return std::sqrt(dot(X, i, X, i)); }

// h = argmax [x R, -x R], rotations b/2 x d a round.
std::vector<std::vector<Index>> hash_buckets(const Params& params, const Matrix<double>& R, const Matrix<double>& X,
                                             Index n) {
  const Index half = params.integer("buckets") / 2;
  std::vector<std::vector<Index>> of_rounds;
  for (Index r = 0; r < params.integer("rounds"); ++r) {
    auto& bucket = of_rounds.emplace_back();
    for (Index i = 0; i < n; ++i) {
      std::vector<Real> value;
      for (Index b = 0; b < half; ++b) value.push_back(dot(X, i, R, r * half + b));
      for (Index b = 0; b < half; ++b) value.push_back(-value[static_cast<size_t>(b)]);
      bucket.push_back(std::max_element(value.begin(), value.end()) - value.begin());
    }
  }
  return of_rounds;
}

// In which chunk each token lies: of the order by (bucket, position), or of its bucket alone.
std::vector<Index> chunks_of(const std::vector<Index>& bucket, Index chunk, bool of_bucket) {
  std::vector<Index> chunks;
  for (size_t i = 0; i < bucket.size(); ++i) {
    Index before = 0;
    for (size_t j = 0; j < bucket.size(); ++j)
      if ((bucket[j] == bucket[i] && j < i) || (!of_bucket && bucket[j] < bucket[i])) ++before;
    chunks.push_back(before / chunk);
  }
  return chunks;
}

Answer reformer(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask) {
  const Index n = unpadded(mask, head.Q.rows());
  const bool of_bucket = params.text("chunks") == "bucket" || (params.text("chunks") == "auto" && mask.causal);
  const auto buckets = hash_buckets(params, state.at("rotations"), head.Q, n);
  std::vector<std::vector<Index>> chunks;
  for (const auto& bucket : buckets) chunks.push_back(chunks_of(bucket, params.integer("chunk"), of_bucket));
  const auto candidate = [&](Index i, Index j) {
    if (i >= n || j >= n || i == j || (mask.causal && j > i)) return false;
    const auto a = static_cast<size_t>(i), b = static_cast<size_t>(j);
    for (size_t r = 0; r < buckets.size(); ++r)
      if (buckets[r][a] == buckets[r][b] && (chunks[r][b] == chunks[r][a] || chunks[r][b] == chunks[r][a] - 1))
        return true;
    return false;
  };
  const Set seen = [&](Index i, Index j) {
    if (i != j) return candidate(i, j);
    for (Index l = 0; l < n; ++l)
      if (candidate(i, l)) return false;
    return i < n;
  };
  // Q_i.(Q_j / |Q_j|) / sqrt(d) with Q = x d^1/4.
  const Real fourth_root = std::pow(static_cast<Real>(head.Q.cols()), Real(0.25));
  const Weights weights = exponential(head.Q.rows(), head.Q.rows(), [&](Index i, Index j) {
    const Real norm = length(head.Q, j);
    return norm == 0 ? 0 : dot(head.Q, i, head.Q, j) / norm / fourth_root;
  });
  return normalise(weights, head, seen, seen);
}

// ---- Routing

// The places of the largest, the first of equals.
std::set<Index> top_places(const std::vector<Real>& score, Index count) {
  std::vector<Index> order(score.size());
  std::iota(order.begin(), order.end(), Index(0));
  std::stable_sort(order.begin(), order.end(),
                   [&](Index a, Index b) { return score[static_cast<size_t>(a)] > score[static_cast<size_t>(b)]; });
  return {order.begin(), order.begin() + std::min<Index>(count, std::ssize(order))};
}

std::vector<std::set<Index>> routes(const Matrix<double>& X, Index n, const Matrix<double>& centroids, Index top) {
  const Index d = X.cols();
  Table normalised(n, d);
  for (Index i = 0; i < n; ++i) {
    Real mean = 0, variance = 0, size = 0;
    for (Index l = 0; l < d; ++l) mean += static_cast<Real>(X(i, l)) / static_cast<Real>(d);
    for (Index l = 0; l < d; ++l) {
      normalised(i, l) = static_cast<Real>(X(i, l)) - mean;
      variance += normalised(i, l) * normalised(i, l) / static_cast<Real>(d);
    }
    for (Index l = 0; l < d; ++l) size = std::max(size, static_cast<Real>(std::abs(X(i, l))));
    for (Index l = 0; l < d; ++l)  // a constant row is 0
      normalised(i, l) = std::sqrt(variance) > 1e-14L * size ? normalised(i, l) / std::sqrt(variance) : 0;
  }
  std::vector<std::set<Index>> taken;
  for (Index c = 0; c < centroids.rows(); ++c) {
    std::vector<Real> score;
    for (Index i = 0; i < n; ++i) score.push_back(dot(normalised, i, centroids, c));
    taken.push_back(top_places(score, top > 0 ? top : (n + centroids.rows() - 1) / centroids.rows()));
  }
  return taken;
}

Answer routing(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask) {
  const Index nq = head.Q.rows(), nk = head.K.rows(), top = params.integer("top");
  const auto& centroids = state.at("centroids");
  const auto queries = routes(head.Q, nq, centroids, top), keys = routes(head.K, unpadded(mask, nk), centroids, top);
  const Weights weights = softmax_weights(head);
  Answer answer{Matrix<double>::Zero(nq, nk), Matrix<double>::Zero(nq, head.V.cols()),
                std::vector<double>(static_cast<size_t>(nq), 1)};
  std::vector<double> clusters(static_cast<size_t>(nq), 0);
  for (size_t c = 0; c < queries.size(); ++c) {
    const Set seen = [&](Index i, Index j) { return queries[c].contains(i) && keys[c].contains(j); };
    const Answer of_cluster = normalise(weights, head, seen, seen);
    answer.A += of_cluster.A;
    answer.out += of_cluster.out;
    for (const Index i : queries[c]) ++clusters[static_cast<size_t>(i)];
  }
  for (Index i = 0; i < nq; ++i)
    if (const double count = clusters[static_cast<size_t>(i)]; count > 0) {
      answer.A.row(i) /= count;
      answer.out.row(i) /= count;
    }
  return answer;
}

// ---- Clustered

Real squared_distance(const Matrix<double>& X, Index i, const Table& centroids, Index c) {
  Real sum = 0;
  for (Index l = 0; l < X.cols(); ++l) {
    const Real difference = static_cast<Real>(X(i, l)) - centroids(c, l);
    sum += difference * difference;
  }
  return sum;
}

std::vector<Index> nearest_centroids(const Matrix<double>& X, const Table& centroids) {
  std::vector<Index> nearest;
  for (Index i = 0; i < X.rows(); ++i) {
    Index best = 0;
    for (Index c = 1; c < centroids.rows; ++c)
      if (squared_distance(X, i, centroids, c) < squared_distance(X, i, centroids, best)) best = c;
    nearest.push_back(best);
  }
  return nearest;
}

}  // namespace

// k-means++ on 16 rows a centroid, spread evenly, or all: the first centroid at u n; each next at the first row where
// the sum of the squared distances to the nearest one so far passes u times their total. Then Lloyd.
GroupsOfRows group(const Params& params, const Tensors& state, const Matrix<double>& X) {
  const auto& uniforms = state.at("uniforms");
  const Index n = X.rows(), count = std::min(params.integer("clusters"), n), sample = std::min(n, 16 * count);
  const auto sampled = [&](Index i) { return i * n / sample; };
  GroupsOfRows groups{Table(count, X.cols()), {}};
  for (Index c = 0; c < count; ++c) {
    const Real u = static_cast<Real>(uniforms(0, c));
    Index chosen = c == 0 ? static_cast<Index>(u * static_cast<Real>(sample)) : 0;
    if (c > 0) {
      std::vector<Real> distance;
      for (Index i = 0; i < sample; ++i) {
        distance.push_back(INFINITY);
        for (Index b = 0; b < c; ++b)
          distance.back() = std::min(distance.back(), squared_distance(X, sampled(i), groups.centroids, b));
      }
      const Real total = std::accumulate(distance.begin(), distance.end(), Real(0));
      Real passed = 0;
      for (Index i = 0; i < sample && passed <= u * total; ++i)
        if (distance[static_cast<size_t>(i)] > 0) {
          passed += distance[static_cast<size_t>(i)];
          chosen = i;
        }
    }
    for (Index l = 0; l < X.cols(); ++l) groups.centroids(c, l) = static_cast<Real>(X(sampled(chosen), l));
  }
  groups.nearest = nearest_centroids(X, groups.centroids);
  for (Index sweep = 0; sweep < params.integer("sweeps"); ++sweep) {
    for (Index c = 0; c < count; ++c) {
      const auto members = std::count(groups.nearest.begin(), groups.nearest.end(), c);
      for (Index l = 0; members > 0 && l < X.cols(); ++l) {
        Real sum = 0;
        for (Index i = 0; i < n; ++i)
          if (groups.nearest[static_cast<size_t>(i)] == c) sum += static_cast<Real>(X(i, l));
        groups.centroids(c, l) = sum / static_cast<Real>(members);
      }
    }
    const auto moved = nearest_centroids(X, groups.centroids);
    if (moved == groups.nearest) break;
    groups.nearest = moved;
  }
  return groups;
}

namespace {

// Rows of A^c, for each query its group's.
Weights weights_of_groups(const GroupsOfRows& groups, const HeadData<double>& head) {
  return exponential(head.Q.rows(), head.K.rows(), [&](Index i, Index j) {
    return dot(groups.centroids, groups.nearest[static_cast<size_t>(i)], head.K, j);
  });
}

Answer clustered(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask) {
  return normalise_visible(weights_of_groups(group(params, state, head.Q), head), head, mask);
}

Answer improved_clustered(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask) {
  const Index keys = unpadded(mask, head.K.rows());
  const GroupsOfRows groups = group(params, state, head.Q);
  const Weights of_groups = weights_of_groups(groups, head);
  Answer answer = normalise_visible(of_groups, head, mask);
  for (Index i = 0; i < head.Q.rows(); ++i) {
    std::vector<Real> logit;
    for (Index j = 0; j < keys; ++j) logit.push_back(of_groups.log(i, j));
    const auto top = top_places(logit, params.integer("top"));
    Real mass = 0, largest = -INFINITY, sum = 0;
    for (const Index j : top) {
      mass += static_cast<Real>(answer.A(i, j));
      largest = std::max(largest, dot(head.Q, i, head.K, j));
    }
    for (const Index j : top) sum += std::exp(dot(head.Q, i, head.K, j) - largest);
    for (const Index j : top)
      answer.A(i, j) = static_cast<double>(mass * std::exp(dot(head.Q, i, head.K, j) - largest) / sum);
    for (Index l = 0; l < head.V.cols(); ++l) {
      Real out = 0;
      for (Index j = 0; j < keys; ++j) out += static_cast<Real>(answer.A(i, j)) * static_cast<Real>(head.V(j, l));
      answer.out(i, l) = static_cast<double>(out);
    }
  }
  return answer;
}

// Buckets, routes and groups are decided in double for float as well; what the group looks at most is decided by dot
// products in float.
double distance_to_top(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask,
                       double eps) {
  const Index keys = unpadded(mask, head.K.rows()), top = params.integer("top");
  const GroupsOfRows groups = group(params, state, head.Q);
  Real closest = INFINITY;
  for (Index c = 0; c < groups.centroids.rows && top < keys; ++c) {
    std::vector<Real> logit;
    Real longest = 0;
    for (Index j = 0; j < keys; ++j) {
      logit.push_back(dot(groups.centroids, c, head.K, j));
      longest = std::max(longest, length(head.K, j));
    }
    std::sort(logit.begin(), logit.end(), std::greater<>());
    const Real size = std::sqrt(dot(groups.centroids, c, groups.centroids, c)) * longest;
    const Real gap = logit[static_cast<size_t>(top - 1)] - logit[static_cast<size_t>(top)];
    // Equal logits are ordered by their places, which rounding does not change.
    if (gap > 0)
      closest = std::min(closest, gap / (2 * static_cast<Real>(head.Q.cols() + 1) * static_cast<Real>(eps) * size));
  }
  return static_cast<double>(closest);
}

// ---- Sinkhorn

// P, N x N, for n tokens in blocks of b.
Table sorting_matrix(const Params& params, const Tensors& state, const HeadData<double>& head, Index n, Index b) {
  const Index N = (n + b - 1) / b;
  const auto size = [&](Index I) { return static_cast<Real>(std::min(b, n - I * b)); };
  Table P(N, N);
  for (Index I = 0; I < N; ++I)
    for (Index J = 0; J < N; ++J) {
      if (state.contains("R")) {
        P(I, J) = static_cast<Real>(state.at("R")(I, J));
      } else {
        for (Index i = I * b; i < std::min(n, (I + 1) * b); ++i)
          for (Index j = J * b; j < std::min(n, (J + 1) * b); ++j)
            P(I, J) += dot(head.Q, i, head.K, j) / (size(I) * size(J));
      }
      if (params.flag("gumbel")) P(I, J) += static_cast<Real>(state.at("noise")(I, J));
      P(I, J) = std::exp(P(I, J) / static_cast<Real>(params.real("temperature")));
    }
  const auto row_sum = [&](Index I) {
    Real sum = 0;
    for (Index J = 0; J < N; ++J) sum += P(I, J);
    return sum;
  };
  for (Index sweep = 0; sweep < params.integer("sweeps"); ++sweep) {
    for (Index I = 0; I < N; ++I) {
      const Real sum = row_sum(I);
      for (Index J = 0; J < N; ++J) P(I, J) /= sum;
    }
    for (Index J = 0; J < N; ++J) {
      Real sum = 0;
      for (Index I = 0; I < N; ++I) sum += P(I, J);
      for (Index I = 0; I < N; ++I) P(I, J) /= sum;
    }
    Real residual = 0;
    for (Index I = 0; I < N; ++I) residual = std::max(residual, std::abs(row_sum(I) - 1));
    if (residual <= static_cast<Real>(params.real("tolerance"))) break;
  }
  for (Index I = 0; I < N && params.flag("dedup"); ++I) P(I, I) = 0;
  return P;
}

Answer sinkhorn(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask) {
  const Index n = unpadded(mask, head.K.rows()), d = head.K.cols(), dv = head.V.cols();
  Answer answer{Matrix<double>::Zero(head.Q.rows(), head.K.rows()), Matrix<double>::Zero(head.Q.rows(), dv),
                std::vector<double>(static_cast<size_t>(head.Q.rows()), 1)};
  if (n == 0) return answer;
  const Index most = params.integer("blocks"), b = (n + most - 1) / most, N = (n + b - 1) / b;
  const Table P = sorting_matrix(params, state, head, n, b);
  for (Index i = 0; i < head.Q.rows(); ++i) {
    const Index I = std::min(i / b, N - 1), own_end = std::min(n, (I + 1) * b);
    std::vector<Real> logit;  // own keys, then slots
    for (Index j = I * b; j < own_end; ++j) logit.push_back(dot(head.Q, i, head.K, j));
    for (Index t = 0; t < b; ++t) {
      Real mass = 0, mixed = 0;
      for (Index J = 0; J < N && J * b + t < n; ++J) {
        mass += P(I, J);
        for (Index l = 0; l < d; ++l)
          mixed += P(I, J) * static_cast<Real>(head.Q(i, l)) * static_cast<Real>(head.K(J * b + t, l));
      }
      logit.push_back(mass > 0 ? mixed / mass : -INFINITY);
    }
    const Real largest = *std::max_element(logit.begin(), logit.end());
    // A token of block J at place t has the slot's weight times P_IJ.
    std::vector<Real> weight(static_cast<size_t>(n), 0);
    for (Index j = I * b; j < own_end; ++j)
      weight[static_cast<size_t>(j)] = std::exp(logit[static_cast<size_t>(j - I * b)] - largest);
    for (Index j = 0; j < n; ++j)
      weight[static_cast<size_t>(j)] +=
          P(I, j / b) * std::exp(logit[static_cast<size_t>(own_end - I * b + j % b)] - largest);
    const Real sum = std::accumulate(weight.begin(), weight.end(), Real(0));
    for (Index j = 0; j < n; ++j) {
      const Real a = weight[static_cast<size_t>(j)] / sum;
      answer.A(i, j) = static_cast<double>(a);
    }
    for (Index l = 0; l < dv; ++l) {
      Real out = 0;
      for (Index j = 0; j < n; ++j) out += weight[static_cast<size_t>(j)] * static_cast<Real>(head.V(j, l));
      answer.out(i, l) = static_cast<double>(out / sum);
    }
  }
  return answer;
}

const bool registered =
    add({.method = "reformer", .attention = reformer}) && add({.method = "routing", .attention = routing}) &&
    add({.method = "clustered", .attention = clustered}) &&
    add({.method = "improved-clustered", .attention = improved_clustered, .distance_to_jump = distance_to_top}) &&
    add({.method = "sinkhorn", .attention = sinkhorn});

}  // namespace

}  // namespace attnbench::oracle
