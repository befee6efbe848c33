// Low rank. methods.md E.
#include <algorithm>
#include <limits>

#include "tests/oracle/transcription.hpp"

namespace attnbench::oracle {

namespace {

// methods.md E: softmax(q (E k)^T) F over the unpadded keys. Mean pooling averages segment a = [a n / r, (a+1) n / r);
// a convolution of stride s = ceil(n / r) puts w on [a s, (a+1) s).
Answer linformer(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask) {
  const Index nq = head.Q.rows(), nk = head.K.rows();
  const Index keys = mask.keys < 0 ? nk : std::min(mask.keys, nk);
  const std::string& kind = params.text("projection");
  const bool share = params.flag("share");
  Index r = params.integer("r");
  const Index stride = (keys + r - 1) / r;
  if (kind == "convolution" && keys > 0) r = (keys + stride - 1) / stride;
  Table E(r, keys), F(r, keys);
  for (Index a = 0; a < r; ++a)
    for (Index j = 0; j < keys; ++j)
      if (kind == "mean-pool") {
        const Index begin = a * keys / r, end = (a + 1) * keys / r;
        E(a, j) = F(a, j) = j >= begin && j < end ? 1 / static_cast<Real>(end - begin) : 0;
      } else if (kind == "convolution") {
        if (j / stride != a) continue;
        E(a, j) = static_cast<Real>(state.at("w")(j % stride, 0));
        F(a, j) = static_cast<Real>(state.at(share ? "w" : "w_values")(j % stride, 0));
      } else {
        E(a, j) = static_cast<Real>(state.at("E")(a, j));
        F(a, j) = static_cast<Real>(state.at(share ? "E" : "F")(a, j));
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

Table product(const Table& A, const Table& B) {
  Table C(A.rows, B.columns);
  for (Index i = 0; i < A.rows; ++i)
    for (Index j = 0; j < B.columns; ++j)
      for (Index l = 0; l < A.columns; ++l) C(i, j) += A(i, l) * B(l, j);
  return C;
}

Real frobenius(const Table& A) {
  Real sum = 0;
  for (const Real entry : A.entries) sum += entry * entry;
  return std::sqrt(sum);
}

// Means of the segments [a n / m, (a+1) n / m) of the first n rows.
Table segment_means(const Matrix<double>& X, Index n, Index m) {
  Table means(m, X.cols());
  for (Index a = 0; a < m; ++a) {
    const Index begin = a * n / m, end = (a + 1) * n / m;
    for (Index l = 0; l < X.cols(); ++l) {
      for (Index j = begin; j < end; ++j) means(a, l) += static_cast<Real>(X(j, l));
      means(a, l) /= static_cast<Real>(end - begin);
    }
  }
  return means;
}

Table softmax_of(const Table& X, const Table& Y, Index columns) {
  Table A(X.rows, columns);
  for (Index i = 0; i < A.rows; ++i) {
    Real largest = -INFINITY, sum = 0;
    for (Index j = 0; j < columns; ++j) largest = std::max(largest, A(i, j) = dot(X, i, Y, j));
    for (Index j = 0; j < columns; ++j) sum += A(i, j) = std::exp(A(i, j) - largest);
    for (Index j = 0; j < columns; ++j) A(i, j) /= sum;
  }
  return A;
}

// methods.md E: Z <- Z (13 I - A Z (15 I - A Z (7 I - A Z))) / 4.
Table newton_schulz(const Table& A, Index iterations) {
  const Index m = A.rows;
  Real one = 0, infinity = 0;
  for (Index i = 0; i < m; ++i) {
    Real column = 0, row = 0;
    for (Index j = 0; j < m; ++j) {
      column += std::abs(A(j, i));
      row += std::abs(A(i, j));
    }
    one = std::max(one, column);
    infinity = std::max(infinity, row);
  }
  Table Z(m, m);
  for (Index i = 0; i < m; ++i)
    for (Index j = 0; j < m; ++j) Z(i, j) = A(j, i) / (one * infinity);
  const auto minus = [m](Real factor, Table X) {
    for (Index i = 0; i < m; ++i)
      for (Index j = 0; j < m; ++j) X(i, j) = (i == j ? factor : 0) - X(i, j);
    return X;
  };
  for (Index iteration = 0; iteration < iterations; ++iteration) {
    const Table AZ = product(A, Z);
    Z = product(Z, minus(13, product(AZ, minus(15, product(AZ, minus(7, AZ))))));
    for (Real& entry : Z.entries) entry /= 4;
  }
  return Z;
}

// One-sided Jacobi: columns of U are turned in pairs until all are orthogonal; then A = U V^T with U's column norms the
// singular values.
struct Decomposition {
  Table U, V;
  std::vector<Real> sigma;
};

Decomposition decompose(const Table& A) {
  const Index m = A.columns;
  Decomposition of{A, Table(m, m), {}};
  for (Index i = 0; i < m; ++i) of.V(i, i) = 1;
  const auto product_of_columns = [&](Index a, Index b) {
    Real sum = 0;
    for (Index i = 0; i < of.U.rows; ++i) sum += of.U(i, a) * of.U(i, b);
    return sum;
  };
  const auto turn = [](Table& X, Index a, Index b, Real cosine, Real sine) {
    for (Index i = 0; i < X.rows; ++i) {
      const Real left = X(i, a), right = X(i, b);
      X(i, a) = cosine * left - sine * right;
      X(i, b) = sine * left + cosine * right;
    }
  };
  for (int sweep = 0; sweep < 60; ++sweep)
    for (Index a = 0; a < m; ++a)
      for (Index b = a + 1; b < m; ++b) {
        const Real cross = product_of_columns(a, b);
        if (cross == 0) continue;
        const Real zeta = (product_of_columns(b, b) - product_of_columns(a, a)) / (2 * cross);
        const Real tangent = (zeta < 0 ? -1 : 1) / (std::abs(zeta) + std::sqrt(1 + zeta * zeta));
        const Real cosine = 1 / std::sqrt(1 + tangent * tangent);
        turn(of.U, a, b, cosine, cosine * tangent);
        turn(of.V, a, b, cosine, cosine * tangent);
      }
  for (Index a = 0; a < m; ++a) of.sigma.push_back(std::sqrt(product_of_columns(a, a)));
  return of;
}

Table pseudo_inverse_of(const Table& A, Real tolerance) {
  const Decomposition of = decompose(A);
  const Real largest = *std::max_element(of.sigma.begin(), of.sigma.end());
  Table Z(A.rows, A.rows);
  for (Index a = 0; a < A.rows; ++a) {
    const Real sigma = of.sigma[static_cast<size_t>(a)];
    if (sigma <= tolerance * largest) continue;
    for (Index i = 0; i < A.rows; ++i)
      for (Index j = 0; j < A.rows; ++j) Z(i, j) += of.V(i, a) * of.U(j, a) / (sigma * sigma);
  }
  return Z;
}

struct Landmarks {
  Index keys, m;
  Table queries_means, keys_means, between;
};

// Padded keys are in no landmark, nor queries at padded positions unless all are.
Landmarks landmarks(const Params& params, const HeadData<double>& head, Mask mask) {
  const Index nq = head.Q.rows(), nk = head.K.rows();
  const Index keys = mask.keys < 0 ? nk : std::min(mask.keys, nk);
  Index queries = 0;
  for (Index i = 0; i < nq; ++i) queries += mask.keys < 0 || i + mask.offset < mask.keys;
  if (queries == 0) queries = nq;
  const Index m = std::min({params.integer("landmarks"), queries, keys});
  const Table of_queries = segment_means(head.Q, queries, m), of_keys = segment_means(head.K, keys, m);
  return {keys, m, of_queries, of_keys, softmax_of(of_queries, of_keys, m)};
}

// methods.md E: softmax(q k~^T) Z softmax(q~ k^T), and the convolution.
Answer nystrom(const Params& params, const Tensors& state, const HeadData<double>& head, Mask mask) {
  const Index nq = head.Q.rows(), nk = head.K.rows();
  Answer answer{Matrix<double>::Zero(nq, nk), Matrix<double>::Zero(nq, head.V.cols()),
                std::vector<double>(static_cast<size_t>(nq), 1)};
  if (mask.keys == 0) return answer;
  const Landmarks at = landmarks(params, head, mask);
  const Table Z = params.text("inverse") == "exact"
                      ? pseudo_inverse_of(at.between, static_cast<Real>(params.real("tolerance")))
                      : newton_schulz(at.between, params.integer("iterations"));
  const Table left = product(softmax_of(table(head.Q), at.keys_means, at.m), Z);
  Table A = product(left, softmax_of(at.queries_means, table(head.K), at.keys));
  if (params.text("convolution") != "0") {
    const Matrix<double>& w = state.at("convolution");
    for (Index i = 0; i < nq; ++i)
      for (Index j = 0; j < at.keys; ++j) {
        const Index t = j - (i + mask.offset) + w.cols() / 2;
        if (t >= 0 && t < w.cols()) A(i, j) += static_cast<Real>(w(0, t));
      }
  }
  // An error of Am moves Z by |Z|^2 times it, one of the factors beside it by |Z|.
  const Real size = frobenius(Z), condition = std::max(Real(1), size * (1 + size * frobenius(at.between)));
  for (Index i = 0; i < nq; ++i) {
    answer.condition[static_cast<size_t>(i)] = static_cast<double>(condition);
    for (Index j = 0; j < at.keys; ++j) answer.A(i, j) = static_cast<double>(A(i, j));
    for (Index l = 0; l < head.V.cols(); ++l) {
      Real out = 0;
      for (Index j = 0; j < at.keys; ++j) out += A(i, j) * static_cast<Real>(head.V(j, l));
      answer.out(i, l) = static_cast<double>(out);
    }
  }
  return answer;
}

bool cuts_singular_values(const Params& params) { return params.text("inverse") == "exact"; }

// A singular value is cut off or not: entries of Am err by d times the landmarks' logits, relative to themselves.
double distance_to_cut(const Params& params, const Tensors&, const HeadData<double>& head, Mask mask, double eps) {
  if (mask.keys == 0) return INFINITY;
  const Landmarks at = landmarks(params, head, mask);
  const Decomposition of = decompose(at.between);
  const Real least = static_cast<Real>(params.real("tolerance")) * *std::max_element(of.sigma.begin(), of.sigma.end());
  Real closest = INFINITY, L = 0;
  for (const Real sigma : of.sigma) closest = std::min(closest, std::abs(sigma - least));
  for (Index a = 0; a < at.m; ++a)
    L = std::max(L, std::sqrt(dot(at.queries_means, a, at.queries_means, a) * dot(at.keys_means, a, at.keys_means, a)));
  const Real moved = 2 * (static_cast<Real>(head.Q.cols()) * L + static_cast<Real>(at.m)) * frobenius(at.between);
  return static_cast<double>(closest / (moved * static_cast<Real>(eps)));
}

// The left singular vectors of the unpadded keys as rows of E, largest first, their entries summing to no less than 0.
struct Principal {
  Index keys = 0;
  Table E{0, 0};
  Real gap = INFINITY;   // the least distance of a kept singular value to another one, over the largest
  Real sums = INFINITY;  // the least sum of a row of E
};

Principal principal_of(const Params& params, const HeadData<double>& head, Mask mask) {
  const Index nk = head.K.rows(), d = head.K.cols();
  Principal found{.keys = mask.keys < 0 ? nk : std::min(mask.keys, nk)};
  const Decomposition of = decompose(table(head.K.topRows(found.keys)));
  std::vector<size_t> order(of.sigma.size());
  for (size_t a = 0; a < order.size(); ++a) order[a] = a;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return of.sigma[a] > of.sigma[b]; });
  const Index r = std::min({params.integer("r"), d, found.keys});
  found.E = Table(r, found.keys);
  const Real largest = of.sigma[order[0]];
  for (Index a = 0; a < r; ++a) {
    const auto place = static_cast<size_t>(a);
    const Real sigma = of.sigma[order[place]];
    const Real next = place + 1 < order.size() ? of.sigma[order[place + 1]] : 0;
    found.gap = std::min(found.gap, (sigma - next) / largest);
    Real sum = 0;
    for (Index j = 0; j < found.keys; ++j) sum += of.U(j, static_cast<Index>(order[place])) / sigma;
    for (Index j = 0; j < found.keys; ++j)
      found.E(a, j) = (sum < 0 ? -1 : 1) * of.U(j, static_cast<Index>(order[place])) / sigma;
    found.sums = std::min(found.sums, std::abs(sum));
  }
  return found;
}

// softmax(q (E k)^T) E with the projection above, of keys without exact dependencies.
Answer principal_keys(const Params& params, const Tensors&, const HeadData<double>& head, Mask mask) {
  const Index nq = head.Q.rows(), nk = head.K.rows();
  Answer answer{Matrix<double>::Zero(nq, nk), Matrix<double>::Zero(nq, head.V.cols()),
                std::vector<double>(static_cast<size_t>(nq), 1)};
  if (mask.keys == 0) return answer;
  const Principal of = principal_of(params, head, mask);
  const Table Q = table(head.Q), Ek = product(of.E, table(head.K.topRows(of.keys)));
  const Table weights = softmax_of(Q, Ek, of.E.rows), A = product(weights, of.E);
  for (Index i = 0; i < nq; ++i) {
    Real largest = 0, absolute = 0;
    for (Index a = 0; a < of.E.rows; ++a) largest = std::max(largest, std::abs(dot(Q, i, Ek, a)));
    for (Index j = 0; j < of.keys; ++j) {
      answer.A(i, j) = static_cast<double>(A(i, j));
      for (Index a = 0; a < of.E.rows; ++a) absolute += weights(i, a) * std::abs(of.E(a, j));
    }
    // Rounding turns a singular vector by its size over the gap to the next, which moves its logit and its value.
    answer.condition[static_cast<size_t>(i)] =
        static_cast<double>(std::max(Real(1), absolute) * (1 + largest) * std::max(Real(1), 1 / of.gap));
    for (Index l = 0; l < head.V.cols(); ++l) {
      Real out = 0;
      for (Index j = 0; j < of.keys; ++j) out += A(i, j) * static_cast<Real>(head.V(j, l));
      answer.out(i, l) = static_cast<double>(out);
    }
  }
  return answer;
}

// The sign of a component is that of a sum, which rounding may cross.
bool turns_components(const Params&) { return true; }
double distance_to_turn(const Params& params, const Tensors&, const HeadData<double>& head, Mask mask, double eps) {
  if (mask.keys == 0) return INFINITY;
  const Principal of = principal_of(params, head, mask);
  const Real moved = std::sqrt(static_cast<Real>(of.keys)) * static_cast<Real>(eps) / of.gap;
  return static_cast<double>(of.sums / moved);
}

// ---- Skyformer

// The landmarks that add something, C~'s factors over them, and how far an error of 1 in the entries of C may move one.
// Divided by 32^(1/4) in place of d^(1/4).
HeadData<double> sky_scaled(const Params& params, const HeadData<double>& head) {
  if (!params.flag("fixed_scale")) return head;
  const double factor = std::sqrt(std::sqrt(static_cast<double>(head.K.cols()) / 32));
  return {factor * head.Q, factor * head.K, head.V, head.extra};
}

struct SkyLandmarks {
  Table X{0, 0};               // r x d
  Table W{0, 0}, slack{0, 0};  // r x n: C(S, S)^-1 C(S, K)
};

Real gaussian_kernel(const Table& X, Index i, const Table& Y, Index j) {
  Real squares = 0;
  for (Index l = 0; l < X.columns; ++l) squares += (X(i, l) - Y(j, l)) * (X(i, l) - Y(j, l));
  return std::exp(-squares / 2);
}

Table row_as_table(const Matrix<double>& X, Index i) { return table(X.row(i)); }

SkyLandmarks sky_landmarks(const Params& params, const Tensors& state, const HeadData<double>& given, Mask mask) {
  const HeadData<double> head = sky_scaled(params, given);
  const Real ridge = static_cast<Real>(params.real("ridge"));
  const Index nq = head.Q.rows(), nk = head.K.rows(), d = head.K.cols();
  const Index keys = mask.keys < 0 ? nk : std::min(mask.keys, nk);
  const Table K = table(head.K.topRows(keys));
  SkyLandmarks found;
  if (ridge == 0 && params.integer("landmarks") >= nq + nk) {
    found = {K, Table(keys, keys), Table(keys, keys)};
    for (Index j = 0; j < keys; ++j) found.W(j, j) = 1;
    return found;
  }
  std::vector<Table> rows;
  for (Index i = 0; i < nq; ++i)
    if (mask.keys < 0 || i + mask.offset < mask.keys) rows.push_back(row_as_table(head.Q, i));
  if (rows.empty())
    for (Index i = 0; i < nq; ++i) rows.push_back(row_as_table(head.Q, i));
  for (Index j = 0; j < keys; ++j) rows.push_back(row_as_table(head.K, j));
  // Drawn one by one from the rows that are left; the first of them takes the place of the drawn one.
  std::vector<Table> drawn;
  for (Index t = 0; t < params.integer("landmarks") && !rows.empty(); ++t) {
    const auto place =
        static_cast<size_t>(static_cast<Real>(state.at("uniforms")(t, 0)) * static_cast<Real>(rows.size()));
    drawn.push_back(rows[place]);
    rows[place] = rows.front();
    rows.erase(rows.begin());
  }
  // Residuals of the Gaussian kernel after the earlier landmarks, by elimination.
  std::vector<std::vector<Real>> eliminated;
  std::vector<size_t> kept;
  for (size_t t = 0; t < drawn.size(); ++t) {
    Real residual = 1;
    for (const auto& row : eliminated) residual -= row[t] * row[t];
    if (ridge > 0) {
      kept.push_back(t);
      continue;
    }
    if (residual <= 1e-12L) continue;
    std::vector<Real> row;
    for (size_t other = 0; other < drawn.size(); ++other) {
      Real left = gaussian_kernel(drawn[t], 0, drawn[other], 0);
      for (const auto& earlier : eliminated) left -= earlier[t] * earlier[other];
      row.push_back(left / std::sqrt(residual));
    }
    eliminated.push_back(row);
    kept.push_back(t);
  }
  const Index r = std::ssize(kept);
  found = {Table(r, d), Table(r, keys), Table(r, keys)};
  for (Index s = 0; s < r; ++s)
    for (Index l = 0; l < d; ++l) found.X(s, l) = drawn[kept[static_cast<size_t>(s)]](0, l);
  Table C(r, r);
  for (Index s = 0; s < r; ++s)
    for (Index t = 0; t < r; ++t) C(s, t) = gaussian_kernel(found.X, s, found.X, t) + (s == t ? ridge : 0);
  const Table inverse = pseudo_inverse_of(C, 0);
  for (Index j = 0; j < keys; ++j) {
    Real absolute = 1;
    for (Index s = 0; s < r; ++s) {
      for (Index t = 0; t < r; ++t) found.W(s, j) += inverse(s, t) * gaussian_kernel(found.X, t, K, j);
      absolute += std::abs(found.W(s, j));
    }
    for (Index s = 0; s < r; ++s)
      for (Index t = 0; t < r; ++t) found.slack(s, j) += std::abs(inverse(s, t)) * absolute;
  }
  return found;
}

// exp(q.x_s - |x_s|^2/2) over the largest of the row, whose logarithm is `log`.
std::vector<Real> sky_exponentials(const SkyLandmarks& of, const HeadData<double>& head, Index i, Real& log) {
  std::vector<Real> e;
  for (Index s = 0; s < of.X.rows; ++s) {
    Real exponent = -dot(of.X, s, of.X, s) / 2;
    for (Index l = 0; l < of.X.columns; ++l) exponent += static_cast<Real>(head.Q(i, l)) * of.X(s, l);
    e.push_back(exponent);
  }
  log = *std::max_element(e.begin(), e.end());
  for (Real& x : e) x = std::exp(x - log);
  return e;
}

// methods.md E: C~ exp(|k|^2/2) with rows divided by their sums, or C~.
Answer skyformer(const Params& params, const Tensors& state, const HeadData<double>& given, Mask mask) {
  const HeadData<double> head = sky_scaled(params, given);
  const Index nq = head.Q.rows(), nk = head.K.rows();
  Answer answer{Matrix<double>::Zero(nq, nk), Matrix<double>::Zero(nq, head.V.cols()),
                std::vector<double>(static_cast<size_t>(nq), 1)};
  if (mask.keys == 0) return answer;
  const SkyLandmarks of = sky_landmarks(params, state, given, mask);
  const Index keys = of.W.columns, r = of.X.rows;
  const bool normalise = params.flag("normalise");
  Real largest = 0;
  for (Index j = 0; j < keys; ++j) largest = std::max(largest, dot(head.K, j, head.K, j) / 2);
  for (Index i = 0; i < nq; ++i) {
    Real log = 0, denominator = 0, of_landmarks = 0, magnitude = 0;
    const auto e = sky_exponentials(of, head, i, log);
    std::vector<Real> weight(static_cast<size_t>(keys), 0);
    for (Index s = 0; s < r; ++s) {
      Real total = 0;
      for (Index j = 0; j < keys; ++j) {
        // With normalise=false the factors exp(log) and exp(-|q|^2/2) are there, which cancel otherwise.
        const Real scale = normalise ? std::exp(dot(head.K, j, head.K, j) / 2 - largest)
                                     : std::exp(log - dot(head.Q, i, head.Q, i) / 2);
        weight[static_cast<size_t>(j)] += e[static_cast<size_t>(s)] * scale * of.W(s, j);
        magnitude += e[static_cast<size_t>(s)] * scale * (std::abs(of.W(s, j)) + of.slack(s, j));
        total += scale * of.W(s, j);
      }
      denominator += e[static_cast<size_t>(s)] * total;
      of_landmarks += e[static_cast<size_t>(s)] * std::abs(total);
    }
    const bool usable =
        !normalise || std::abs(denominator) > static_cast<Real>(std::numeric_limits<double>::epsilon()) * of_landmarks;
    if (!normalise) denominator = 1;
    answer.condition[static_cast<size_t>(i)] =
        static_cast<double>(std::max(Real(1), magnitude / std::abs(denominator)));
    for (Real& entry : weight) entry = usable ? entry / denominator : 1 / static_cast<Real>(keys);
    for (Index j = 0; j < keys; ++j) answer.A(i, j) = static_cast<double>(weight[static_cast<size_t>(j)]);
    for (Index l = 0; l < head.V.cols(); ++l) {
      Real out = 0;
      for (Index j = 0; j < keys; ++j) out += weight[static_cast<size_t>(j)] * static_cast<Real>(head.V(j, l));
      answer.out(i, l) = static_cast<double>(out);
    }
  }
  return answer;
}

Weights skyformer_weights(const Params& params, const Tensors& state, const HeadData<double>& given) {
  const HeadData<double> head = sky_scaled(params, given);
  Weights weights(head.Q.rows(), head.K.rows());
  const SkyLandmarks of = sky_landmarks(params, state, given, {});
  for (Index i = 0; i < head.Q.rows(); ++i) {
    Real log = 0;
    const auto e = sky_exponentials(of, head, i, log);
    for (Index j = 0; j < head.K.rows(); ++j) {
      weights.log(i, j) = log + (params.flag("normalise") ? dot(head.K, j, head.K, j) : -dot(head.Q, i, head.Q, i)) / 2;
      for (Index s = 0; s < of.X.rows; ++s) {
        weights.value(i, j) += e[static_cast<size_t>(s)] * of.W(s, j);
        weights.magnitude(i, j) += e[static_cast<size_t>(s)] * (std::abs(of.W(s, j)) + of.slack(s, j));
      }
    }
  }
  return weights;
}

const bool registered = add({.method = "skyformer", .attention = skyformer, .weights = skyformer_weights}) &&
                        add({.method = "linformer", .attention = linformer}) &&
                        add({.method = "nystrom",
                             .attention = nystrom,
                             .jumps = cuts_singular_values,
                             .distance_to_jump = distance_to_cut}) &&
                        add({.method = "principal-keys",
                             .attention = principal_keys,
                             .jumps = turns_components,
                             .distance_to_jump = distance_to_turn});

}  // namespace

}  // namespace attnbench::oracle
