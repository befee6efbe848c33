// Sampled keys beside exact ones: hyper, kdeformer, magicpig and vattention. methods.md S.
#include <algorithm>
#include <random>

#include "tests/oracle/transcription.hpp"

namespace attnbench::oracle {

namespace {

// A key of a row, with the factor of its weight exp(q.k). A key may appear several times.
struct Term {
  Index key;
  Real factor;
};
using Terms = std::vector<Term>;

Answer answer_of(const HeadData<double>& head, const std::function<Terms(Index)>& terms_of_row) {
  const Index nq = head.Q.rows(), nk = head.K.rows(), dv = head.V.cols();
  Answer answer{Matrix<double>::Zero(nq, nk), Matrix<double>::Zero(nq, dv),
                std::vector<double>(static_cast<size_t>(nq), 1)};
  for (Index i = 0; i < nq; ++i) {
    const Terms terms = terms_of_row(i);
    if (terms.empty()) continue;
    std::vector<Real> weight(static_cast<size_t>(nk), 0);
    Real largest = -INFINITY, sum = 0;
    for (const Term& term : terms) largest = std::max(largest, dot(head.Q, i, head.K, term.key));
    for (const Term& term : terms) {
      const Real e = term.factor * std::exp(dot(head.Q, i, head.K, term.key) - largest);
      weight[static_cast<size_t>(term.key)] += e;
      sum += e;
    }
    for (Index j = 0; j < nk; ++j) answer.A(i, j) = static_cast<double>(weight[static_cast<size_t>(j)] / sum);
    for (Index c = 0; c < dv; ++c) {
      Real out = 0;
      for (Index j = 0; j < nk; ++j) out += weight[static_cast<size_t>(j)] / sum * static_cast<Real>(head.V(j, c));
      answer.out(i, c) = static_cast<double>(out);
    }
  }
  return answer;
}

Index seen_by(Mask mask, Index i, Index nk) {
  Index n = 0;
  while (n < nk && sees(mask, i, n)) ++n;
  return n;
}

// All patterns of signs in the order of the Gray code: each half is the one before, reversed, with the next sign set.
std::vector<unsigned> gray_sequence(Index bits) {
  std::vector<unsigned> sequence{0};
  for (Index b = 0; b < bits; ++b)
    for (size_t at = sequence.size(); at-- > 0;) sequence.push_back(sequence[at] + (1U << b));
  return sequence;
}

unsigned signs(const Matrix<double>& planes, Index first, Index bits, const Table& X, Index row) {
  unsigned pattern = 0;
  for (Index b = 0; b < bits; ++b)
    if (dot(X, row, planes, first + b) > 0) pattern += 1U << b;
  return pattern;
}

// Of each query and each key, the place of its pattern of signs in that order.
struct Places {
  std::vector<Index> of_queries, of_keys;
};
std::vector<Index> places_of(const Matrix<double>& planes, const Matrix<double>& X) {
  const auto sequence = gray_sequence(planes.rows());
  const Table numbers = table(X);
  std::vector<Index> places;
  for (Index i = 0; i < X.rows(); ++i) {
    const unsigned pattern = signs(planes, 0, planes.rows(), numbers, i);
    places.push_back(std::find(sequence.begin(), sequence.end(), pattern) - sequence.begin());
  }
  return places;
}

// Rows and keys of one unmasked problem.
struct Problem {
  Index number = 1;
  std::vector<Index> rows, keys;
};

// |V|_op^2 by Jacobi rotations of V^T V.
Real squared_norm(const Matrix<double>& V, Index n) {
  const Index dv = V.cols();
  Table G(dv, dv);
  for (Index a = 0; a < dv; ++a)
    for (Index b = 0; b < dv; ++b)
      for (Index j = 0; j < n; ++j) G(a, b) += static_cast<Real>(V(j, a)) * static_cast<Real>(V(j, b));
  for (int sweep = 0; sweep < 40; ++sweep)
    for (Index a = 0; a < dv; ++a)
      for (Index b = a + 1; b < dv; ++b) {
        if (G(a, b) == 0) continue;
        const Real angle = std::atan2(2 * G(a, b), G(b, b) - G(a, a)) / 2, c = std::cos(angle), s = std::sin(angle);
        for (Index l = 0; l < dv; ++l) {
          const Real x = G(l, a), y = G(l, b);
          G(l, a) = c * x - s * y;
          G(l, b) = s * x + c * y;
        }
        for (Index l = 0; l < dv; ++l) {
          const Real x = G(a, l), y = G(b, l);
          G(a, l) = c * x - s * y;
          G(b, l) = s * x + c * y;
        }
      }
  Real largest = 0;
  for (Index a = 0; a < dv; ++a) largest = std::max(largest, G(a, a));
  return largest;
}

Terms hashed_terms(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask,
                   const Places& places, const std::vector<Real>& value_weights, const Problem& problem, Index row) {
  const Index n = std::ssize(problem.keys), m = std::ssize(problem.rows), block = params.integer("block"),
              s = params.integer("s");
  Terms terms;
  const Index blocks = s >= n ? 1 : (n + block - 1) / block;
  if (blocks == 1) {
    for (const Index key : problem.keys) terms.push_back({key, 1});
    return terms;
  }
  const auto sorted = [&](const std::vector<Index>& place, const std::vector<Index>& members) {
    std::vector<std::pair<Index, Index>> order;
    for (const Index at : members) order.push_back({place[static_cast<size_t>(at)], at});
    std::sort(order.begin(), order.end());
    return order;
  };
  const auto keys = sorted(places.of_keys, problem.keys);
  const auto block_at = [&](Index at, Index count) {  // of place `at` of `count`
    for (Index b = 0;; ++b)
      if (at < (b + 1) * count / blocks) return b;
  };
  Index own = 0;
  const std::string queries = params.has("queries") ? params.text("queries") : "auto";
  if (queries == "sorted" || (queries == "auto" && !mask.causal && head.Q.rows() == head.K.rows())) {
    const auto rows = sorted(places.of_queries, problem.rows);
    for (Index at = 0; at < m; ++at)
      if (rows[static_cast<size_t>(at)].second == row) own = block_at(at, m);
  } else {
    const Index wanted = places.of_queries[static_cast<size_t>(row)];
    Index below = 0, up_to = 0;
    for (const auto& [of_key, key] : keys) {
      below += of_key < wanted;
      up_to += of_key <= wanted;
    }
    own = block_at(std::min((below + up_to) / 2, n - 1), n);
  }
  std::vector<Index> block_of(static_cast<size_t>(head.K.rows()), -1);
  for (Index at = 0; at < n; ++at) {
    const Index key = keys[static_cast<size_t>(at)].second;
    block_of[static_cast<size_t>(key)] = block_at(at, n);
    if (block_at(at, n) == own) terms.push_back({key, 1});
  }
  std::vector<Real> p(static_cast<size_t>(n), 1 / static_cast<Real>(n));
  if (params.name() == "kdeformer") {
    Real total = 0;
    for (size_t j = 0; j < p.size(); ++j) total += p[j] += value_weights[j];
    for (Real& x : p) x /= total;
  }
  const bool mask_own = !params.has("mask_own") || params.flag("mask_own");
  for (Index t = 0; t < s; ++t) {
    const auto x = static_cast<Real>(state.at("u")(problem.number - 1, t));
    Index at = 0;
    for (Real sum = p[0]; sum <= x && at + 1 < n; sum += p[static_cast<size_t>(++at)])
      ;
    const Index key = problem.keys[static_cast<size_t>(at)];
    if (mask_own && block_of[static_cast<size_t>(key)] == own) continue;
    terms.push_back({key, 1 / (static_cast<Real>(s) * p[static_cast<size_t>(at)])});
  }
  return terms;
}

Answer hashed(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask) {
  const Index nq = head.Q.rows(), nk = head.K.rows();
  Index n = 0;
  while (n < nk && (mask.keys < 0 || n < mask.keys)) ++n;
  const Places places{places_of(state.at("planes"), head.Q), places_of(state.at("planes"), head.K)};
  std::vector<Real> value_weights;  // |v_j|^2 / |V|_op^2, or |v_j| / |V|_op^2 of values with a 1 appended
  if (params.name() == "kdeformer") {
    const bool authors = params.text("probabilities") == "authors";
    Matrix<double> V = head.V;
    if (authors) {
      V.conservativeResize(Eigen::NoChange, V.cols() + 1);
      V.rightCols(1).setOnes();
    }
    const Real norm = squared_norm(V, n);
    for (Index j = 0; j < n; ++j) {
      Real squares = 0;
      for (Index c = 0; c < V.cols(); ++c) squares += static_cast<Real>(V(j, c)) * static_cast<Real>(V(j, c));
      value_weights.push_back((authors ? std::sqrt(squares) : squares) / norm);
    }
  }
  const auto terms_of = [&](const Problem& problem, Index i) {
    return hashed_terms(params, state, head, mask, places, value_weights, problem, i);
  };
  return answer_of(head, [&](Index i) -> Terms {
    const Index seen = seen_by(mask, i, nk);
    if (seen == 0) return {};
    Problem problem;
    if (!mask.causal) {
      for (Index r = 0; r < nq; ++r) problem.rows.push_back(r);
      for (Index j = 0; j < n; ++j) problem.keys.push_back(j);
      return terms_of(problem, i);
    }
    Terms all;
    Index begin = 0, size = n, number = 1;
    while (size > params.integer("block")) {
      const Index half = size / 2;
      if (seen <= begin + half) {
        number *= 2;
        size = half;
        continue;
      }
      Problem part{.number = number};
      for (Index r = 0; r < nq; ++r)
        if (const Index of_r = seen_by(mask, r, nk); of_r > begin + half && of_r <= begin + size)
          part.rows.push_back(r);
      for (Index j = begin; j < begin + half; ++j) part.keys.push_back(j);
      for (const Term& term : terms_of(part, i)) all.push_back(term);
      number = 2 * number + 1;
      begin += half;
      size -= half;
    }
    for (Index j = begin; j < seen; ++j) all.push_back({j, 1});
    return all;
  });
}

bool in_sinks_or_window(const Params& params, Mask mask, Index i, Index j) {
  return j < params.integer("sinks") || std::abs(i + mask.offset - j) <= params.integer("window");
}

Answer magicpig(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask) {
  const Index nk = head.K.rows(), d = head.K.cols(), bits = params.integer("bits"), tables = params.integer("tables");
  Index n = 0;
  while (n < nk && (mask.keys < 0 || n < mask.keys)) ++n;
  Table keys(n, d);
  for (Index j = 0; j < n; ++j)
    for (Index c = 0; c < d; ++c) {
      Real sum = 0;
      const Index count = mask.causal ? j + 1 : n;
      for (Index l = 0; l < count; ++l) sum += static_cast<Real>(head.K(l, c));
      keys(j, c) = static_cast<Real>(head.K(j, c)) - sum / static_cast<Real>(count);
    }
  const Table queries = table(head.Q);
  const Matrix<double>& planes = state.at("planes");
  const auto patterns = [&](const Table& X) {
    std::vector<unsigned> all;
    for (Index i = 0; i < X.rows; ++i)
      for (Index t = 0; t < tables; ++t) all.push_back(signs(planes, t * bits, bits, X, i));
    return all;
  };
  const auto of_keys = patterns(keys), of_queries = patterns(queries);
  return answer_of(head, [&](Index i) {
    Terms terms;
    for (Index j = 0; j < seen_by(mask, i, nk); ++j) {
      if (in_sinks_or_window(params, mask, i, j)) {
        terms.push_back({j, 1});
        continue;
      }
      Index collisions = 0;
      for (Index t = 0; t < tables; ++t)
        collisions += of_queries[static_cast<size_t>(i * tables + t)] == of_keys[static_cast<size_t>(j * tables + t)];
      if (collisions < params.integer("collisions")) continue;
      Real product = 0, of_query = 0, of_key = 0;
      for (Index c = 0; c < d; ++c) {
        product += queries(i, c) * keys(j, c);
        of_query += queries(i, c) * queries(i, c);
        of_key += keys(j, c) * keys(j, c);
      }
      const Real lengths = std::sqrt(of_query) * std::sqrt(of_key);
      Real theta = std::acos(static_cast<Real>(0));
      if (of_query == 0 && of_key == 0) theta = 0;
      if (lengths > 0) theta = std::acos(std::max<Real>(-1, std::min<Real>(1, product / lengths)));
      const Real p = std::pow(1 - theta / std::acos(static_cast<Real>(-1)), static_cast<Real>(bits)),
                 L = static_cast<Real>(tables);
      const Real none = std::pow(1 - p, L),
                 one = params.integer("collisions") == 2 ? L * p * std::pow(1 - p, L - 1) : 0;
      const Real epsilon = static_cast<Real>(params.real("epsilon"));
      terms.push_back({j, 1 / (1 - none - one + epsilon)});
    }
    return terms;
  });
}

// The x with Phi(x) = u, by bisection.
Real normal_quantile_of(Real u) {
  Real low = -10, high = 10;
  for (int step = 0; step < 200; ++step) {
    const Real middle = (low + high) / 2;
    (std::erfc(-middle / std::sqrt(static_cast<Real>(2))) / 2 < u ? low : high) = middle;
  }
  return low;
}

Answer vattention(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask) {
  const Index nk = head.K.rows(), base = params.integer("base");
  const Real eps = params.real("eps"), delta = params.real("delta");
  const Real z = normal_quantile_of(params.text("quantile") == "one-sided" ? 1 - delta : 1 - delta / 2);
  return answer_of(head, [&](Index i) {
    Terms terms;
    std::vector<std::pair<Real, Index>> others;  // logit, downwards
    for (Index j = 0; j < seen_by(mask, i, nk); ++j)
      if (in_sinks_or_window(params, mask, i, j))
        terms.push_back({j, 1});
      else
        others.push_back({-dot(head.Q, i, head.K, j), j});
    std::sort(others.begin(), others.end());
    std::vector<Index> rest;
    for (Index t = 0; t < std::ssize(others); ++t)
      if (const Index key = others[static_cast<size_t>(t)].second; t < params.integer("top"))
        terms.push_back({key, 1});
      else
        rest.push_back(key);
    std::sort(rest.begin(), rest.end());
    const auto m = static_cast<Real>(rest.size());
    const auto draw = [&](std::mt19937_64& generator) {
      const double u = (static_cast<double>(generator() >> 12) + 0.5) * 0x1p-52;
      return rest[static_cast<size_t>(static_cast<Real>(u) * m)];
    };
    Real budget = m;
    if (std::ssize(rest) > base) {
      std::mt19937_64 generator(static_cast<std::uint64_t>(state.at("base")(i, 0)));
      Real largest = -INFINITY, exact = 0, sum = 0, squares = 0;
      for (const Term& term : terms) largest = std::max(largest, dot(head.Q, i, head.K, term.key));
      for (const Term& term : terms) exact += std::exp(dot(head.Q, i, head.K, term.key) - largest);
      std::vector<Real> drawn;
      for (Index t = 0; t < base; ++t) drawn.push_back(std::exp(dot(head.Q, i, head.K, draw(generator)) - largest));
      for (const Real e : drawn) sum += e;
      for (const Real e : drawn) squares += (e - sum / static_cast<Real>(base)) * (e - sum / static_cast<Real>(base));
      const Real sigma = std::sqrt(squares / static_cast<Real>(base - 1));
      const Real ratio = z * sigma * m / (eps * (exact + m * sum / static_cast<Real>(base)));
      budget = std::max<Real>(1, std::ceil(ratio * ratio));
    }
    if (budget >= m) {
      for (const Index key : rest) terms.push_back({key, 1});
      return terms;
    }
    std::mt19937_64 generator(static_cast<std::uint64_t>(state.at("draws")(i, 0)));
    const auto exact = std::ssize(terms);
    for (Real t = 0; t < budget; ++t) {
      const Term drawn{draw(generator), m / budget};
      const bool again =
          std::any_of(terms.begin() + exact, terms.end(), [&](const Term& other) { return other.key == drawn.key; });
      if (!again || !params.flag("collapsed")) terms.push_back(drawn);
    }
    return terms;
  });
}

bool jumps(const Params&) { return true; }

const bool registered = add({.method = "hyper", .attention = hashed, .jumps = jumps}) &&
                        add({.method = "kdeformer", .attention = hashed, .jumps = jumps}) &&
                        add({.method = "magicpig", .attention = magicpig, .jumps = jumps}) &&
                        add({.method = "vattention", .attention = vattention, .jumps = jumps});

}  // namespace

}  // namespace attnbench::oracle
