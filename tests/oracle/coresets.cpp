// Coresets. methods.md E.
#include <algorithm>
#include <limits>
#include <numeric>

#include "tests/oracle/transcription.hpp"

namespace attnbench::oracle {

namespace {

Index unpadded(Mask mask, Index nk) { return mask.keys < 0 ? nk : std::min(mask.keys, nk); }

// ---- WildCat

// The inverse of a symmetric positive definite matrix, by Gauss and Jordan.
Table inverse_of(Table A) {
  const Index m = A.rows;
  Table inverse(m, m);
  for (Index i = 0; i < m; ++i) inverse(i, i) = 1;
  for (Index c = 0; c < m; ++c) {
    const Real pivot = A(c, c);
    for (Index l = 0; l < m; ++l) {
      A(c, l) /= pivot;
      inverse(c, l) /= pivot;
    }
    for (Index i = 0; i < m; ++i) {
      const Real factor = A(i, c);
      if (i == c || factor == 0) continue;
      for (Index l = 0; l < m; ++l) {
        A(i, l) -= factor * A(c, l);
        inverse(i, l) -= factor * inverse(c, l);
      }
    }
  }
  return inverse;
}

// The chosen keys with their weights W_sj, of keys less their mean.
struct Weighted {
  Table keys{0, 0};            // n x d
  std::vector<Real> mean;      // d
  std::vector<Index> chosen;   // S
  Table W{0, 0}, slack{0, 0};  // |S| x n: W, and how far an error of 1 in the entries of G may move it
};

// One bin, keys [begin, end): pivots by the residual diagonal of h after elimination of the earlier ones.
void choose(Weighted& found, Index begin, Index end, const Matrix<double>& uniforms, Index first, Index most,
            Real longest_query) {
  const Index n = end - begin, place = static_cast<Index>(found.chosen.size());
  if (n <= most) {
    for (Index j = begin; j < end; ++j) {
      found.W(place + j - begin, j) = 1;
      found.chosen.push_back(j);
    }
    return;
  }
  Real radius = 0;
  for (Index j = begin; j < end; ++j) radius = std::max(radius, std::sqrt(dot(found.keys, j, found.keys, j)));
  const Real over_tau2 = radius > 0 ? longest_query / (static_cast<Real>(3.94582) * radius) : 0;
  std::vector<Real> squares;  // of the keys over tau
  for (Index j = begin; j < end; ++j) squares.push_back(over_tau2 * dot(found.keys, j, found.keys, j));
  const auto square = [&](Index j) { return squares[static_cast<size_t>(j)]; };
  // h over the roots of its diagonal.
  const auto entry = [&](Index a, Index b) {
    return std::exp(over_tau2 * dot(found.keys, begin + a, found.keys, begin + b) - (square(a) + square(b)) / 2);
  };
  std::vector<std::vector<Real>> eliminated;
  std::vector<Real> residual(static_cast<size_t>(n), 1);
  std::vector<Index> pivots;
  for (Index t = 0; t < most; ++t) {
    Real largest = -INFINITY, total = 0, sum = 0;
    for (Index j = 0; j < n; ++j)
      if (residual[static_cast<size_t>(j)] > 1e-12L) largest = std::max(largest, square(j));
    const auto share = [&](Index j) {
      const Real left = residual[static_cast<size_t>(j)];
      return left > 1e-12L ? left * std::exp(square(j) - largest) : 0;
    };
    for (Index j = 0; j < n; ++j) total += share(j);
    if (total == 0) break;
    Index pivot = -1;
    for (Index j = 0; j < n && sum <= static_cast<Real>(uniforms(first + t, 0)) * total; ++j)
      if (share(j) > 0) {
        pivot = j;
        sum += share(j);
      }
    std::vector<Real> row;
    const Real root = std::sqrt(residual[static_cast<size_t>(pivot)]);
    for (Index j = 0; j < n; ++j) {
      Real left = entry(pivot, j);
      for (const auto& earlier : eliminated)
        left -= earlier[static_cast<size_t>(pivot)] * earlier[static_cast<size_t>(j)];
      row.push_back(left / root);
    }
    for (Index j = 0; j < n; ++j)
      residual[static_cast<size_t>(j)] -= row[static_cast<size_t>(j)] * row[static_cast<size_t>(j)];
    pivots.push_back(pivot);
    for (const Index chosen : pivots) residual[static_cast<size_t>(chosen)] = 0;
    eliminated.push_back(row);
  }
  const Index m = static_cast<Index>(pivots.size());
  Table G(m, m);
  for (Index s = 0; s < m; ++s)
    for (Index t = 0; t < m; ++t) G(s, t) = entry(pivots[static_cast<size_t>(s)], pivots[static_cast<size_t>(t)]);
  const Table inverse = inverse_of(G);
  for (Index j = 0; j < n; ++j) {
    std::vector<Real> weights;
    Real absolute = 1;
    for (Index s = 0; s < m; ++s) {
      Real weight = 0;
      for (Index t = 0; t < m; ++t) weight += inverse(s, t) * entry(pivots[static_cast<size_t>(t)], j);
      weights.push_back(weight);
      absolute += std::abs(weight);
    }
    for (Index s = 0; s < m; ++s) {
      Real of_inverse = 0;
      for (Index t = 0; t < m; ++t) of_inverse += std::abs(inverse(s, t));
      const Real scale = std::exp((square(j) - square(pivots[static_cast<size_t>(s)])) / 2);
      found.W(place + s, begin + j) = scale * weights[static_cast<size_t>(s)];
      found.slack(place + s, begin + j) = scale * of_inverse * absolute;
    }
  }
  for (const Index pivot : pivots) found.chosen.push_back(begin + pivot);
}

Weighted weighted_coreset(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask) {
  const Index n = unpadded(mask, head.K.rows()), d = head.K.cols(), r = params.integer("r");
  const Index bins = n <= r ? 1 : params.integer("bins");
  Weighted found{table(head.K.topRows(n)), std::vector<Real>(static_cast<size_t>(d), 0), {}, {r, n}, {r, n}};
  if (n <= r) found.W = found.slack = Table(n, n);
  for (Index l = 0; l < d; ++l) {
    Real& mean = found.mean[static_cast<size_t>(l)];
    for (Index j = 0; j < n; ++j) mean += found.keys(j, l) / static_cast<Real>(n);
    for (Index j = 0; j < n; ++j) found.keys(j, l) -= mean;
  }
  Real longest = 0;
  Index queries = 0;
  for (Index i = 0; i < head.Q.rows(); ++i) queries += mask.keys < 0 || i + mask.offset < mask.keys;
  if (queries == 0) queries = head.Q.rows();
  for (Index i = 0; i < queries; ++i) longest = std::max(longest, std::sqrt(dot(head.Q, i, head.Q, i)));
  for (Index a = 0; a < bins; ++a)
    choose(found, a * n / bins, (a + 1) * n / bins, state.at("uniforms"), a * r / bins,
           (a + 1) * r / bins - a * r / bins, longest);
  return found;
}

// exp(q.k_s) of the chosen keys over the largest of the row, whose logarithm is `log`.
std::vector<Real> exponentials(const Weighted& of, const HeadData<double>& head, Index i, Real& log) {
  std::vector<Real> e;
  for (const Index s : of.chosen) {
    Real logit = 0;
    for (Index l = 0; l < head.Q.cols(); ++l) logit += static_cast<Real>(head.Q(i, l)) * of.keys(s, l);
    e.push_back(logit);
  }
  log = *std::max_element(e.begin(), e.end());
  for (Real& x : e) x = std::exp(x - log);
  return e;
}

Answer wildcat(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask) {
  const Index nq = head.Q.rows(), nk = head.K.rows(), n = unpadded(mask, nk);
  Answer answer{Matrix<double>::Zero(nq, nk), Matrix<double>::Zero(nq, head.V.cols()),
                std::vector<double>(static_cast<size_t>(nq), 1)};
  if (n == 0) return answer;
  const Weighted of = weighted_coreset(params, state, head, mask);
  for (Index i = 0; i < nq; ++i) {
    Real log = 0, denominator = 0, magnitude = 0, of_keys = 0;
    const auto e = exponentials(of, head, i, log);
    std::vector<Real> weight(static_cast<size_t>(n), 0);
    for (size_t s = 0; s < e.size(); ++s) {
      Real total = 0;
      for (Index j = 0; j < n; ++j) {
        const auto place = static_cast<Index>(s);
        weight[static_cast<size_t>(j)] += e[s] * of.W(place, j);
        magnitude += e[s] * (std::abs(of.W(place, j)) + of.slack(place, j));
        total += of.W(place, j);
      }
      denominator += e[s] * total;
      of_keys += e[s] * std::abs(total);
    }
    const bool usable = std::abs(denominator) > static_cast<Real>(std::numeric_limits<double>::epsilon()) * of_keys;
    answer.condition[static_cast<size_t>(i)] =
        static_cast<double>(std::max(Real(1), magnitude / std::abs(denominator)));
    for (Index j = 0; j < n; ++j)
      answer.A(i, j) =
          static_cast<double>(usable ? weight[static_cast<size_t>(j)] / denominator : 1 / static_cast<Real>(n));
    for (Index l = 0; l < head.V.cols(); ++l) {
      Real out = 0, least = INFINITY, most = -INFINITY;
      for (Index j = 0; j < n; ++j) {
        const Real value = static_cast<Real>(head.V(j, l));
        out += (usable ? weight[static_cast<size_t>(j)] / denominator : 1 / static_cast<Real>(n)) * value;
        least = std::min(least, value);
        most = std::max(most, value);
      }
      answer.out(i, l) = static_cast<double>(params.flag("clip") ? std::clamp(out, least, most) : out);
    }
  }
  return answer;
}

Weights wildcat_weights(const Params& params, const Tensors& state, const HeadData<double>& head) {
  Weights weights(head.Q.rows(), head.K.rows());
  const Weighted of = weighted_coreset(params, state, head, {});
  for (Index i = 0; i < head.Q.rows(); ++i) {
    Real log = 0;
    const auto e = exponentials(of, head, i, log);
    for (Index l = 0; l < head.Q.cols(); ++l) log += static_cast<Real>(head.Q(i, l)) * of.mean[static_cast<size_t>(l)];
    for (Index j = 0; j < head.K.rows(); ++j) {
      weights.log(i, j) = log;
      for (size_t s = 0; s < e.size(); ++s) {
        const auto place = static_cast<Index>(s);
        weights.value(i, j) += e[s] * of.W(place, j);
        weights.magnitude(i, j) += e[s] * (std::abs(of.W(place, j)) + of.slack(place, j));
      }
    }
  }
  return weights;
}

// ---- Thinformer

struct Thinned {
  std::vector<Index> keys;
  std::vector<Real> weights;
};

class Thinning {
 public:
  Thinning(const Params& params, const Matrix<double>& uniforms, const HeadData<double>& head, Index n)
      : coin_(params.text("halving") == "coin"), uniforms_(uniforms), head_(head) {
    std::vector<Index> read(static_cast<size_t>(n));
    std::iota(read.begin(), read.end(), Index(0));
    if (params.flag("strided")) {
      Index fourth = 1;
      while (4 * fourth <= n) fourth *= 4;
      for (Index j = 0; j < fourth; ++j) read[static_cast<size_t>(j)] = j * (n / fourth);
      read.resize(static_cast<size_t>(fourth));
    }
    for (const Index j : read) {
      largest_ = std::max(largest_, dot(head.K, j, head.K, j));
      for (Index l = 0; l < head.V.cols(); ++l) b_ = std::max(b_, std::abs(static_cast<Real>(head.V(j, l))));
    }
    const Index count = static_cast<Index>(read.size());
    Index rounds = 0;
    while (left_after(count, rounds) > params.integer("keep") && (count >> rounds) > 1) ++rounds;
    auto next = read.begin();
    const auto take = [&](Index keys, Index times) {
      const auto left = compress({next, next + keys}, times);
      next += keys;
      for (const Index j : left) {
        thinned.keys.push_back(j);
        thinned.weights.push_back(std::ldexp(Real(1), static_cast<int>(times)));
      }
    };
    take(count >> rounds << rounds, rounds);
    for (Index digit = rounds - 1; digit >= 0; --digit)
      if ((count >> digit) % 2 == 1) take(Index{1} << digit, digit);
  }

  Thinned thinned;

 private:
  static Index left_after(Index count, Index rounds) {
    Index left = count >> rounds;
    for (Index digit = 0; digit < rounds; ++digit) left += (count >> digit) % 2;
    return left;
  }

  Real kernel(Index a, Index b) const {
    const Real values = b_ > 0 ? dot(head_.V, a, head_.V, b) / (b_ * b_) : 0;
    return std::exp(dot(head_.K, a, head_.K, b) - largest_) * (values + 1);
  }

  std::vector<Index> compress(std::vector<Index> keys, Index rounds) {
    const auto count = static_cast<Real>(keys.size());
    Real first_block = 0;
    for (Index round = 1; round <= rounds; ++round) {
      const Index pairs = static_cast<Index>(keys.size()) / 2;
      Index blocks = 1;
      for (Index level = round; level < rounds && blocks < pairs; ++level) blocks *= 4;
      blocks = std::min(blocks, pairs);
      if (round == 1) first_block = count / static_cast<Real>(blocks);
      std::vector<Index> left;
      for (Index a = 0; a < blocks; ++a)
        halve({keys.begin() + 2 * (a * pairs / blocks), keys.begin() + 2 * ((a + 1) * pairs / blocks)},
              4 * first_block * static_cast<Real>(rounds) * count, left);
      keys = left;
    }
    return keys;
  }

  void halve(const std::vector<Index>& block, Real failures, std::vector<Index>& left) {
    const Real multiplier = 0.5L + std::log(failures / static_cast<Real>(block.size()));
    std::vector<Real> signs;
    Real largest = 0;
    for (size_t i = 0; 2 * i < block.size(); ++i) {
      const auto difference = [&](size_t l) {
        return kernel(block[2 * i], block[2 * l]) - kernel(block[2 * i], block[2 * l + 1]) -
               kernel(block[2 * i + 1], block[2 * l]) + kernel(block[2 * i + 1], block[2 * l + 1]);
      };
      const Real size = coin_ ? 0 : std::sqrt(std::max(Real(0), difference(i)));
      largest = std::max(largest, size);
      Real psi = 0;
      for (size_t l = 0; l < i && !coin_; ++l) psi += signs[l] * difference(l);
      const Real coin = 2 * static_cast<Real>(uniforms_(used_++, 0)) - 1, A = multiplier * size * largest;
      const bool second = A > 0 ? coin * A <= psi : coin <= 0;
      signs.push_back(second ? -1 : 1);
      left.push_back(block[2 * i + (second ? 1 : 0)]);
    }
  }

  bool coin_;
  const Matrix<double>& uniforms_;
  const HeadData<double>& head_;
  Real largest_ = 0, b_ = 0;
  Index used_ = 0;
};

Answer thinformer(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask) {
  const Index nq = head.Q.rows(), nk = head.K.rows(), n = unpadded(mask, nk);
  Answer answer{Matrix<double>::Zero(nq, nk), Matrix<double>::Zero(nq, head.V.cols()),
                std::vector<double>(static_cast<size_t>(nq), 1)};
  if (n == 0) return answer;
  const Thinned of = Thinning(params, state.at("uniforms"), head, n).thinned;
  for (Index i = 0; i < nq; ++i) {
    Real largest = -INFINITY, sum = 0;
    for (const Index j : of.keys) largest = std::max(largest, dot(head.Q, i, head.K, j));
    std::vector<Real> weight;
    for (size_t s = 0; s < of.keys.size(); ++s) {
      weight.push_back(of.weights[s] * std::exp(dot(head.Q, i, head.K, of.keys[s]) - largest));
      sum += weight.back();
    }
    for (size_t s = 0; s < of.keys.size(); ++s) answer.A(i, of.keys[s]) = static_cast<double>(weight[s] / sum);
    for (Index l = 0; l < head.V.cols(); ++l) {
      Real out = 0;
      for (size_t s = 0; s < of.keys.size(); ++s) out += weight[s] / sum * static_cast<Real>(head.V(of.keys[s], l));
      answer.out(i, l) = static_cast<double>(out);
    }
  }
  return answer;
}

const bool registered = add({.method = "wildcat", .attention = wildcat, .weights = wildcat_weights}) &&
                        add({.method = "thinformer", .attention = thinformer});

}  // namespace

}  // namespace attnbench::oracle
